from __future__ import annotations

from scheduler.codegen.benchmark_request import CFunctionRequest
from scheduler.codegen.caller import TemplateBuffer, TemplateCaller


class CuteDSLTemplateBuffer(TemplateBuffer):
    """The results of a CuteDSL kernel."""


class CuteDSLBenchmarkRequest(CFunctionRequest):
    """One CuteDSL kernel at one binding, which a library exports in the same way as a HIP kernel's
    function."""


class CuteDSLTemplateCaller(TemplateCaller):
    """A candidate whose kernel is CuteDSL: makes requests that fit the exported function, and
    describes the kernel's output."""

    request_type = CuteDSLBenchmarkRequest
    buffer_type = CuteDSLTemplateBuffer
