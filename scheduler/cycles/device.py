"""From a compute unit to the device: blocks per unit, their rounds, and shared resources.

Blocks are assigned in order to the first unit with room. If they differ in length (causal
attention), their cycles are interpolated, by executed instructions, between blocks that were run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heapreplace

import numpy as np

from scheduler.cycles.block_durations import Durations, is_uniform
from scheduler.cycles.cuts import Cut
from scheduler.cycles.decode import DecodedInstruction
from scheduler.cycles.paths import BlockPaths
from scheduler.cycles.report import Pipe
from scheduler.cycles.unit import MemoryShare, Unit, UnitResult
from scheduler.targets import Board
from scheduler.targets.cycle_model import Rates

_MAX_SCHEDULED = 200_000  # blocks that are assigned to units one by one
_ROUNDS = 4  # rounds of blocks that are run in sequence on a unit
_INSTRUCTIONS = 60_000  # per run of a unit, if fewer rounds show the same
_MOST_INSTRUCTIONS = 240_000


@dataclass(frozen=True)
class UnitShare:
    """One compute unit's share of a board: bytes per cycle of L2 and of the memory behind it; lines
    of its caches."""

    setting: MemoryShare
    units: int


def unit_share(board: Board, rates: Rates, blocks: int, last_level: float) -> UnitShare:
    """Return the share in a launch of so many blocks. ``last_level`` is the hit rate of the cache
    behind L2."""
    units = min(board.compute_units // rates.units, max(1, blocks))
    hertz = board.clock_mhz * 1e6
    memory = board.memory_bytes_per_s * rates.memory_share
    if rates.last_level_bytes_s and last_level > 0:
        behind = (1 - last_level) / memory + last_level / rates.last_level_bytes_s
        memory = 1 / behind
    # In the last round some units are idle and leave their bandwidth to the others.
    busy = blocks / -(-blocks // units)
    unit_memory = memory / hertz / busy
    return UnitShare(
        MemoryShare(
            memory_bytes_cycle=min(unit_memory, rates.units * rates.l1_bytes_cycle),
            l2_bytes_cycle=rates.l2_bytes_cycle,
            l1_lines=rates.l1_bytes // rates.line,
            code_lines=board.instruction_cache_bytes // rates.instruction_line,
        ),
        units,
    )


@dataclass(frozen=True)
class DeviceTime:
    """``cycles`` of the launch, ``alone`` those of a unit's first round. ``weights`` is how many
    blocks of the launch each of ``outcomes`` represents; ``tail`` is the idle share of the units'
    time."""

    cycles: float
    alone: float
    rounds: float
    tail: float
    outcomes: tuple[UnitResult, ...]
    weights: tuple[float, ...]


def device_time(
    decoded: Sequence[DecodedInstruction],
    classes: Sequence[BlockClass],
    executed: Durations,
    *,
    resident: int,
    rates: Rates,
    shared: UnitShare,
    timeline: int = 0,
) -> DeviceTime:
    """Return the time of a launch whose blocks execute so many instructions each. ``classes`` are
    blocks that were run, one if all are alike; ``resident`` blocks fit on a unit."""
    blocks = len(executed)
    per_unit = -(-blocks // shared.units)
    concurrent = min(resident, per_unit)
    if len(classes) == 1:
        return _uniform_time(
            *(decoded, classes[0].paths, blocks, per_unit, concurrent, rates, shared),
            timeline=timeline,
        )
    outcomes, cycles = [], []
    for number, block_class in enumerate(classes):
        first = _max_copies(block_class.paths, concurrent, _MOST_INSTRUCTIONS)
        unit = Unit(decoded, rates, shared.setting, first, 0 if number else timeline)
        outcome = unit.run([block_class.paths.paths] * first)
        outcomes.append(outcome)
        whole = _mean(outcome.ends) + left_out_cycles(block_class.paths, outcome)
        # If fewer were run than fit, all are assumed to share one pipe.
        cycles.append(max(whole, busiest_cycles(outcome, rates) * first) * concurrent / first)
    block_cycles = np.interp(
        executed, [block_class.paths.executed for block_class in classes], cycles
    )
    # Each block goes to the first free slot.
    step = max(1, -(-blocks // _MAX_SCHEDULED))
    slots = [0.0] * max(1, min(shared.units * concurrent, len(block_cycles[::step])))
    for length in block_cycles[::step].tolist():
        heapreplace(slots, slots[0] + length * step)
    total, busy = max(slots), float(block_cycles.sum()) / len(slots)
    return DeviceTime(
        total,
        max(cycles),
        blocks / (shared.units * concurrent),
        1 - busy / total if total else 0.0,
        tuple(outcomes),
        tuple(block_class.weight for block_class in classes),
    )


def apply_memory_bound(time: DeviceTime, distinct: float, board: Board, rates: Rates) -> DeviceTime:
    """Raise the time to what the memory needs for the distinct bytes, each once: the data that
    caches keep from one block for another is estimated from a few blocks, and may be
    overestimated."""
    seconds = distinct / (board.memory_bytes_per_s * rates.memory_share)
    return replace(time, cycles=max(time.cycles, seconds * board.clock_mhz * 1e6))


@dataclass(frozen=True)
class BlockClass:
    """Equal blocks: one of them, and how many blocks of the launch it represents."""

    paths: BlockPaths
    weight: float


def classify_blocks(sampled: Sequence[BlockPaths], executed: Durations) -> list[BlockClass]:
    """Return the shortest, a middle and the longest of the run blocks, shortest first, each with
    the number of blocks it represents; a single one if all are alike."""
    ordered = sorted(sampled, key=lambda block: (block.executed, block.block))
    if is_uniform({block.block: block.executed for block in ordered}):
        return [BlockClass(ordered[len(ordered) // 2], float(len(executed)))]
    middle = (ordered[0].executed + ordered[-1].executed) / 2
    between = min(ordered, key=lambda block: abs(block.executed - middle))
    chosen = {block.executed: block for block in (ordered[0], between, ordered[-1])}
    points = sorted(chosen)
    weights = [
        float(np.interp(executed, points, np.eye(len(points))[n]).sum()) for n in range(len(points))
    ]
    return [
        BlockClass(chosen[point], weight) for point, weight in zip(points, weights, strict=True)
    ]


def _max_copies(paths: BlockPaths, count: int, instructions: int = _INSTRUCTIONS) -> int:
    """Return how many copies of a block to run at most, at least one."""
    length = sum(len(path.indices) for path in paths.paths)
    return max(1, min(count, instructions // max(1, length)))


def _uniform_time(
    decoded: Sequence[DecodedInstruction],
    paths: BlockPaths,
    blocks: int,
    per_unit: int,
    concurrent: int,
    rates: Rates,
    shared: UnitShare,
    *,
    timeline: int,
) -> DeviceTime:
    """Return the time of equal blocks: the first round, then all further rounds at the pace of the
    last one that was run."""
    first = min(concurrent, _max_copies(paths, concurrent, _MOST_INSTRUCTIONS // 2))
    rounds = max(2, min(_ROUNDS, _max_copies(paths, _ROUNDS * first) // first))
    runs = min(per_unit, rounds * first)
    scale = concurrent / first  # if fewer were run than fit, all are assumed to share one pipe
    later = (per_unit / scale - first) / max(1, runs - first)
    weights = [1.0 if number < first else later for number in range(runs)]
    outcome = Unit(decoded, rates, shared.setting, first, timeline).run(
        [paths.paths] * runs, weights
    )
    more = left_out_cycles(paths, outcome)
    ends = sorted(outcome.ends)
    served = busiest_cycles(outcome, rates) * first
    alone = max(max(ends[:first]) + more, served) * scale
    if per_unit <= concurrent:
        cycles = alone
    else:
        # A further round takes as long as the last one that was run.
        last = min(first, len(ends) - first)
        pace = ends[-1]
        if last > 0:
            pace = _mean(ends[-last:]) - _mean(ends[-first - last : len(ends) - first])
        pace = max(pace + more, served)
        cycles = alone + pace * scale * (per_unit - concurrent) / concurrent
    tail = 1 - blocks / (per_unit * shared.units)
    return DeviceTime(
        *(cycles, alone, blocks / (shared.units * concurrent), tail, (outcome,), (float(blocks),))
    )


def busiest_cycles(outcome: UnitResult, rates: Rates) -> float:
    """Return the cycles per run block of the unit's busiest resource, including omitted iterations:
    a lower bound in any case."""
    pipes = (Pipe.MATRIX, Pipe.VECTOR, Pipe.SCALAR, Pipe.BRANCH)
    of_simds = (outcome.totals.pipes[pipe] / rates.simds for pipe in pipes)
    return max(*outcome.totals.served.values(), *of_simds) / outcome.blocks


def left_out_cycles(paths: BlockPaths, outcome: UnitResult) -> float:
    """Return the cycles of one block's omitted iterations: those of its slowest wave, as a mean
    over the run blocks."""
    by_block: dict[int, float] = {}
    for wave in outcome.waves:
        omitted: list[tuple[Cut, float]] = []
        for cut in sorted(paths.cuts[wave.wave], key=lambda cut: cut.end - cut.start):
            length = wave.marks.get(cut.end, wave.ended) - wave.marks.get(cut.start, wave.started)
            length += sum(
                cycles
                for inner, cycles in omitted
                if cut.start <= inner.start and inner.end <= cut.end
            )
            omitted.append((cut, length * cut.left_out / cut.measured))
        of_wave = sum(cycles for _, cycles in omitted)
        by_block[wave.block] = max(by_block.get(wave.block, 0.0), of_wave)
    return _mean(list(by_block.values()))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
