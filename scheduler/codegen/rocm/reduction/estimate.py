"""Estimated time of a reduction whose rows are shared by blocks on AMD GPUs: for the default only;
tuning measures.

Constants were fitted to the cycle model (scheduler/cycles) for softmax of 1 to 200 rows of 32000 to
a million f16 on gfx942.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scheduler.arithmetic import ceil_div
from scheduler.codegen.rocm.machine import Machine, machine_of, minimax_candidate
from scheduler.codegen.rocm.reduction.split import SPLITS, THREADS, SplitReduction
from scheduler.codegen.rocm.reduction.split_body import Split
from scheduler.ir.dtypes import DType
from scheduler.targets import Target

# Cycles of a thread's step: its load, and the computation per element; of a block's step, the use
# of the unit's pipes.
_LATENCY, _ELEMENT = 500.0, 58.0
_ISSUED, _ISSUED_ELEMENT = 60.0, 55.0
_EXPOSED = 0.3  # part of the shorter of waiting and the unit's work
_LAUNCH_US = 1.3


def fastest_split(shared: SplitReduction, vector: int, targets: Sequence[Target]) -> Split | None:
    """Return the split of rows that are read along, in packs of at most ``vector``; None if no
    split is valid."""
    tried = [
        Split(THREADS, width, split=split)
        for split in SPLITS[1:]
        for width in dict.fromkeys((vector, max(vector // 2, 1)))
    ]
    serving = [shares for shares in tried if shared.reject(shares) is None]
    if not serving:
        return None
    machines = [machine_of(target, DType.F32) for target in targets]
    return minimax_candidate(serving, [_make_estimator(shared, machine) for machine in machines])


def estimate_split(steps: int, rows: int, loops: int, shares: Split, machine: Machine) -> float:
    """Return microseconds of ``loops`` over ``rows`` of ``steps`` each: each thread waits for its
    own steps, and a unit's blocks share its pipes; every loop is a launch, and the part that
    follows is another."""
    own = ceil_div(rows * shares.split, machine.units)
    each = loops * ceil_div(steps, shares.split * shares.lanes * shares.vector)
    waits = each * (_LATENCY + _ELEMENT * shares.vector)
    works = each * own * (_ISSUED + _ISSUED_ELEMENT * shares.vector)
    cycles = max(waits, works) + _EXPOSED * min(waits, works)
    return (loops + 1) * _LAUNCH_US + cycles / machine.cycles_per_us


def _make_estimator(shared: SplitReduction, machine: Machine) -> Callable[[Split], float]:
    template = shared.template
    steps = template.hint(shared.nest.inner_numel)
    rows = max(template.hint(shared.nest.outer_numel), 1)
    loops = sum(bool(stage.loop) for stage in shared.stages)
    return lambda shares: estimate_split(steps, rows, loops, shares, machine)
