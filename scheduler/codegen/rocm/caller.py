from __future__ import annotations

from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.rocm.benchmark_request import ROCmBenchmarkRequest
from scheduler.codegen.rocm.buffer import ROCmTemplateBuffer


class ROCmTemplateCaller(TemplateCaller):
    """A candidate whose kernel is HIP C++: makes requests that fit the exported function, and
    describes the kernel's output."""

    request_type = ROCmBenchmarkRequest
    buffer_type = ROCmTemplateBuffer
