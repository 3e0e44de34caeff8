from __future__ import annotations

from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.cutedsl.benchmark_request import CuteDSLBenchmarkRequest
from scheduler.codegen.cutedsl.buffer import CuteDSLTemplateBuffer


class CuteDSLTemplateCaller(TemplateCaller):
    """A candidate whose kernel is CuteDSL: makes requests that fit the exported function, and
    describes the kernel's output."""

    request_type = CuteDSLBenchmarkRequest
    buffer_type = CuteDSLTemplateBuffer
