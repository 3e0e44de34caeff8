"""Estimated time of a reduction whose rows are shared by blocks on AMD GPUs: for the default only;
tuning measures.

Constants were fitted to the cycle model (scheduler/cycles) for softmax of 1 to 200 rows of 32000 to
a million f16 on gfx942.
"""

from __future__ import annotations

from functools import partial

from scheduler.arithmetic import ceil_div
from scheduler.codegen.rocm.machine import Machine, machine_of, minimax_candidate
from scheduler.codegen.rocm.reduction.configs import SPLITS, THREADS, Split, reject_split
from scheduler.codegen.rocm.reduction.problem import ReductionProblem
from scheduler.ir.dtypes import DType

# Cycles of a thread's step: its load, and the computation per element; of a block's step, the use
# of the unit's pipes.
_STEP_CYCLES, _ELEMENT_CYCLES = 500.0, 58.0
_ISSUE_CYCLES, _ELEMENT_ISSUE_CYCLES = 60.0, 55.0
_EXPOSED_SHARE = 0.3  # part of the shorter of waiting and the unit's work
_LAUNCH_US = 1.3


def fastest_split(problem: ReductionProblem) -> Split | None:
    """Return the split of rows that are read along, in the widest packs or half as wide; None if no
    split is valid."""
    vector = problem.widest_vector
    candidates = [
        Split(THREADS, width, split=split)
        for split in SPLITS[1:]
        for width in dict.fromkeys((vector, max(vector // 2, 1)))
    ]
    valid = [split for split in candidates if reject_split(problem, split) is None]
    if not valid:
        return None
    rows, loops = max(problem.rows, 1), problem.split_loops
    estimate = partial(estimate_split, problem.steps, rows, loops)
    machines = [machine_of(target, DType.F32) for target in problem.targets]
    return minimax_candidate(valid, [partial(estimate, machine=machine) for machine in machines])


def estimate_split(steps: int, rows: int, loops: int, split: Split, machine: Machine) -> float:
    """Return microseconds of ``loops`` over ``rows`` of ``steps`` each: each thread waits for its
    own steps, and a unit's blocks share its pipes; every loop is a launch, and the part that
    follows is another."""
    blocks_per_unit = ceil_div(rows * split.split, machine.units)
    thread_steps = loops * ceil_div(steps, split.split * split.lanes * split.vector)
    wait_cycles = thread_steps * (_STEP_CYCLES + _ELEMENT_CYCLES * split.vector)
    step_issue_cycles = _ISSUE_CYCLES + _ELEMENT_ISSUE_CYCLES * split.vector
    issue_cycles = thread_steps * blocks_per_unit * step_issue_cycles
    cycles = max(wait_cycles, issue_cycles) + _EXPOSED_SHARE * min(wait_cycles, issue_cycles)
    return (loops + 1) * _LAUNCH_US + cycles / machine.cycles_per_us
