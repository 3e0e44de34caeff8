"""How fast candidates are rendered: every configuration of one matrix product and one convolution.

    python -m tests.benchmarks.rendering

The goal that was set: at least 1,500 candidates a second on one core.
"""

from __future__ import annotations

import sys
import time

from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.targets import find, names
from tests.unit.matrix.contractions import convolution, matmul

PROBLEMS = {
    "addmm 2240x256 @ 256x2048 f16": lambda: matmul(2240, 2048, 256, DType.F16, bias=[2048]),
    "conv2d 1x8x224x224, 64x8x7x7 f16": lambda: convolution(
        (1, 8, 224, 224), (64, 8, 7, 7), DType.F16, stride=2, padding=3
    ),
}


def main() -> None:
    """Print candidates a second, the best of five, analysis of the problem included."""
    for name, make in PROBLEMS.items():
        schedule = make()
        rates = [rate(schedule) for _ in range(5)]
        sys.stdout.write(f"{name}: {max(rates):.0f} candidates a second\n")


def rate(schedule: Schedule) -> float:
    """Candidates a second, from a scheduled node to all its kernels' texts."""
    start = time.perf_counter()
    backend = ROCmCPPScheduling(schedule, tuple(find(name) for name in names()))
    found = backend.candidates(schedule.nodes[0])
    return len(found.callers) / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
