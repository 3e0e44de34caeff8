"""The common part of HIP C++ templates: includes, names, candidates."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.printing.lines import Lines, Marks
from scheduler.codegen.rocm.caller import ROCmTemplateCaller
from scheduler.codegen.rocm.source import SOURCE_FILE
from scheduler.codegen.template import KernelTemplate


class ROCmTemplate(KernelTemplate):
    """A template whose source is HIP C++ with our headers."""

    prefix: ClassVar[str] = "rocm"
    source_file: ClassVar[str] = SOURCE_FILE
    caller_type: ClassVar[type[TemplateCaller]] = ROCmTemplateCaller

    @cached_property
    def marks(self) -> Marks:
        """Return the marks of the lines of this node's sources."""
        return Marks()

    def lines(self, indent: int = 1) -> Lines:
        """Return empty lines for a source of this node."""
        return Lines(self.marks, indent)

    def header(self) -> str:
        """Return the includes of every kernel."""
        return (
            "#include <hip/hip_runtime.h>\n"
            "#include <kiln/index.h>\n"
            "#include <kiln/pointwise.h>\n"
            "#include <kiln/types.h>\n"
        )
