from __future__ import annotations

from scheduler.codegen.benchmark_request import CFunctionRequest


class ROCmBenchmarkRequest(CFunctionRequest):
    """One HIP kernel at one binding."""
