"""A request of a HIP kernel."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.codegen.benchmark_request import CFunctionRequest


@dataclass(frozen=True)
class ROCmBenchmarkRequest(CFunctionRequest):
    """One HIP kernel at one binding."""
