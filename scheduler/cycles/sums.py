"""Summarizes what waves did on a unit: sums by instruction, and the timeline of a few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from scheduler.cycles.decode import DecodedInstruction
from scheduler.cycles.report import Pipe, Span, StallReason
from scheduler.cycles.steps import REASON_CODES, Cycles
from scheduler.cycles.waves import Wave
from scheduler.isa.rocm.instruction_set.row import IssueClass
from scheduler.targets.cycle_model import Rates

_SPANS = 1200  # per wave of the timeline
_REASONS = list(REASON_CODES)


@dataclass
class Totals:
    """Sums over all waves, by instruction; cycles as executed, with the weights of the paths.
    ``served`` is the busy cycles of the resources that the unit has once."""

    executed: list[float]
    busy: list[float]
    stalls: dict[StallReason, list[float]]
    spent: list[float]
    pipes: dict[Pipe, float]
    served: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("memory", "l2", "addresses", "banks"), 0.0)
    )
    l1_hits: float = 0.0
    l1_lines: float = 0.0


@dataclass(frozen=True)
class _Waits:
    """For each instruction of a wave: when it could have issued, when it did; what it waited for (a
    number of ``_REASONS``, -1 for nothing) and until when, before waiting for its pipe."""

    base: Cycles
    time: Cycles
    reason: np.ndarray[tuple[int], np.dtype[np.int64]]
    until: Cycles
    queued: np.ndarray[tuple[int], np.dtype[np.bool_]]


def _waits(wave: Wave, rates: Rates) -> _Waits:
    time = np.array(wave.times)
    count = len(time)
    base = np.empty(count)
    base[:1] = wave.started
    base[1:] = (time + wave.prepared.after[:count])[:-1]
    ready, reason = base.copy(), np.full(count, -1)
    if wave.held:
        positions, ends, codes = (list(column) for column in zip(*wave.held, strict=True))
        ready[positions], reason[positions] = ends, codes
    # The way to a barrier is no wait; a wave waits from its arrival.
    for position, arrived in wave.arrived.items():
        base[position] = arrived
    # The few cycles until its SIMD considers it again count as part of the wait.
    until = np.where(time - ready < rates.cadence, time, np.minimum(ready, time))
    until = np.where(reason >= 0, until, base)
    queued = time - until >= rates.cadence
    queued[wave.own] = False
    return _Waits(base, time, reason, until, queued)


def sum_waves(decoded: Sequence[DecodedInstruction], rates: Rates, waves: Sequence[Wave]) -> Totals:
    """Sum all waves, without the traffic behind L1, which the unit counts."""
    size = len(decoded)
    totals = Totals(
        [0.0] * size,
        [0.0] * size,
        {reason: [0.0] * size for reason in StallReason},
        [0.0] * size,
        dict.fromkeys(Pipe, 0.0),
    )
    if not waves:
        return totals
    counts = [len(wave.times) for wave in waves]
    prepared_waves = [
        (wave, wave.prepared, count) for wave, count in zip(waves, counts, strict=True)
    ]
    index = np.concatenate([prepared.indices[:count] for _, prepared, count in prepared_waves])
    weight = np.concatenate(
        [prepared.weights[:count] * wave.block.weight for wave, prepared, count in prepared_waves]
    )
    busy = weight * np.concatenate([prepared.busy[:count] for _, prepared, count in prepared_waves])
    after = np.concatenate([prepared.after[:count] for _, prepared, count in prepared_waves])
    waits_by_wave = [_waits(wave, rates) for wave in waves]
    base, time = (
        np.concatenate([getattr(one, name) for one in waits_by_wave]) for name in ("base", "time")
    )
    reason = np.concatenate([one.reason for one in waits_by_wave])
    until = np.concatenate([one.until for one in waits_by_wave])
    queued = np.concatenate([one.queued for one in waits_by_wave])
    totals.executed = _sum_by_index(index, weight, size)
    totals.busy = _sum_by_index(index, busy, size)
    totals.spent = _sum_by_index(index, weight * (time + after - base), size)
    for why, number in REASON_CODES.items():
        if (prepared := reason == number).any():
            totals.stalls[why] = _sum_by_index(
                index[prepared], (weight * (until - base))[prepared], size
            )
    totals.stalls[StallReason.PIPE] = _sum_by_index(
        index[queued], (weight * (time - until))[queued], size
    )
    for one, cycles, executed in zip(decoded, totals.busy, totals.executed, strict=True):
        if one.pipe is not None:
            totals.pipes[one.pipe] += cycles
        if one.issue_class is IssueClass.MATRIX:
            totals.pipes[Pipe.VECTOR] += executed * rates.vector
        elif one.issue_class is IssueClass.MEMORY:
            totals.served["addresses"] += cycles / rates.units
    banks = [
        weight[start + at] * cost[1]
        for start, (_, prepared, count) in zip(
            np.cumsum([0, *counts]).tolist(), prepared_waves, strict=False
        )
        for at, cost in prepared.local.items()
        if at < count
    ]
    totals.served["banks"] = float(sum(banks))
    return totals


def _sum_by_index(
    index: np.ndarray[tuple[int], np.dtype[np.int64]], values: Cycles, size: int
) -> list[float]:
    sums: list[float] = np.bincount(index, values, size).tolist()
    return sums


def wave_spans(decoded: Sequence[DecodedInstruction], rates: Rates, wave: Wave) -> tuple[Span, ...]:
    """Return what a wave of the timeline waited for and did, in order."""
    waits, spans = _waits(wave, rates), list[Span]()

    def add(
        start: float, end: float, index: int, pipe: Pipe | None, reason: StallReason | None
    ) -> None:
        if end > start:
            spans.append(Span(int(start), int(end), index, pipe, reason))

    rows = zip(
        waits.base.tolist(),
        waits.until.tolist(),
        waits.time.tolist(),
        waits.reason.tolist(),
        waits.queued.tolist(),
        wave.path.indices,
        strict=False,
    )
    served = wave.served or {}
    for position, (base, until, time, reason, queued, index) in enumerate(rows):
        if len(spans) >= _SPANS:
            break
        instruction = decoded[index]
        if reason >= 0:
            add(base, until, index, None, _REASONS[reason])
        if queued:
            add(until, time, index, None, StallReason.PIPE)
        if instruction.pipe is not None:
            add(time, served.get(position, time + instruction.busy), index, instruction.pipe, None)
    return tuple(spans[:_SPANS])
