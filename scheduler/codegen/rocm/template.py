"""The common part of HIP C++ templates: includes, names, candidates."""

from __future__ import annotations

from typing import ClassVar

from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.languages import HIP_SOURCE
from scheduler.codegen.rocm.caller import ROCmTemplateCaller
from scheduler.codegen.template import KernelTemplate


class ROCmTemplate(KernelTemplate):
    """A template whose source is HIP C++ with our headers."""

    prefix: ClassVar[str] = "rocm"
    source_file: ClassVar[str] = HIP_SOURCE
    caller_type: ClassVar[type[TemplateCaller]] = ROCmTemplateCaller

    def header(self) -> str:
        """Return the includes of every kernel."""
        return (
            "#include <hip/hip_runtime.h>\n"
            "#include <kiln/index.h>\n"
            "#include <kiln/pointwise.h>\n"
            "#include <kiln/types.h>\n"
        )
