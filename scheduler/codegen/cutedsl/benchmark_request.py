"""A request of a CuteDSL kernel, which a library exports in the same way as a HIP kernel's
function."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.codegen.benchmark_request import CFunctionRequest


@dataclass(frozen=True)
class CuteDSLBenchmarkRequest(CFunctionRequest):
    """One CuteDSL kernel at one binding."""
