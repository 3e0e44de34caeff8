"""A candidate whose kernel is HIP C++."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from scheduler.codegen.benchmark_request import BenchmarkRequest
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.rocm.benchmark_request import ROCmBenchmarkRequest
from scheduler.codegen.rocm.buffer import ROCmTemplateBuffer


@dataclass(frozen=True)
class ROCmTemplateCaller(TemplateCaller):
    """Makes requests that fit the exported C++ function, and says what the kernel leaves."""

    request_type: ClassVar[type[BenchmarkRequest]] = ROCmBenchmarkRequest

    def output(self) -> ROCmTemplateBuffer:
        """What the template leaves in place of the node's operations."""
        written = {arg.name for arg in self.kernel.args if arg.is_output}
        pointers = [arg.name for arg in self.kernel.args if arg.type == "ptr"]
        return ROCmTemplateBuffer(
            self.kernel.template,
            tuple(str(self.call.args[name]) for name in pointers if name not in written),
            tuple(self.buffers[str(self.call.args[name])] for name in pointers if name in written),
        )
