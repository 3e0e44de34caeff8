"""What every template of HIP C++ shares: its includes, its names, its candidates."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.printing.lines import Lines, Marks
from scheduler.codegen.rocm.caller import ROCmTemplateCaller
from scheduler.codegen.rocm.source import SOURCE_FILE
from scheduler.codegen.template import KernelTemplate


class ROCmTemplate(KernelTemplate):
    """A template whose text is HIP C++ with our headers."""

    prefix: ClassVar[str] = "rocm"
    source_file: ClassVar[str] = SOURCE_FILE
    caller_type: ClassVar[type[TemplateCaller]] = ROCmTemplateCaller

    @cached_property
    def marks(self) -> Marks:
        """What the lines of this node's texts compute."""
        return Marks()

    def lines(self, indent: int = 1) -> Lines:
        """Empty lines of a text of this node."""
        return Lines(self.marks, indent)

    def header(self) -> str:
        """Includes of every kernel."""
        return (
            "#include <hip/hip_runtime.h>\n"
            "#include <kiln/index.h>\n"
            "#include <kiln/pointwise.h>\n"
            "#include <kiln/types.h>\n"
        )
