from __future__ import annotations

from scheduler.codegen.benchmark_request import CFunctionRequest
from scheduler.codegen.caller import TemplateBuffer, TemplateCaller


class ROCmTemplateBuffer(TemplateBuffer):
    """The results of a HIP C++ kernel."""


class ROCmBenchmarkRequest(CFunctionRequest):
    """One HIP kernel at one binding."""


class ROCmTemplateCaller(TemplateCaller):
    """A candidate whose kernel is HIP C++: makes requests that fit the exported function, and
    describes the kernel's output."""

    request_type = ROCmBenchmarkRequest
    buffer_type = ROCmTemplateBuffer
