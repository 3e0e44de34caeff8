from __future__ import annotations

from scheduler.codegen.benchmark_request import CFunctionRequest


class CuteDSLBenchmarkRequest(CFunctionRequest):
    """One CuteDSL kernel at one binding, which a library exports in the same way as a HIP kernel's
    function."""
