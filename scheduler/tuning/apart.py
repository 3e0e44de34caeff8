"""Fused or apart: a fused kernel against the kernels of its operations, each at its best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.benchmark.measurement import Measurement
from scheduler.fusion.nodes import Schedule
from scheduler.fusion.split import part_names, split
from scheduler.tuning.ledger import Entry, Fate
from scheduler.tuning.tuner import TuningResult


@dataclass(frozen=True)
class Verdict:
    """Times of one fused node and of its parts, in nanoseconds; None where something was not
    measured. ``apart`` is chosen only where even the slow end of the parts' intervals, added up,
    lies below the fast end of the fused kernel's."""

    node: str
    parts: tuple[str, ...]
    fused_ns: float | None
    apart_ns: float | None
    apart: bool


def taken_apart(plan: Schedule) -> tuple[Schedule, Mapping[str, tuple[str, ...]]]:
    """The schedule with everything taken apart that can be, and the parts of each such node."""
    whole = {node.name for node in plan.nodes}
    everything = split(plan, whole)
    return everything, {name: part_names(plan, name) for name in everything.split}


def compare(result: TuningResult, parts: Mapping[str, tuple[str, ...]]) -> tuple[Verdict, ...]:
    """What the run says of each fused node; its parts were problems of the same run."""
    best: dict[str, Measurement | None] = {
        node: _chosen(one.entries) for one in result.problems for node in one.problem.nodes
    }
    verdicts = []
    for node, names in parts.items():
        fused = best.get(node)
        each = [best.get(name) for name in names]
        measured = [one for one in each if one is not None]
        if fused is None or len(measured) < len(names):
            fused_ns = None if fused is None else fused.median_ns
            verdicts.append(Verdict(node, names, fused_ns, None, False))
            continue
        apart_ns = sum(one.median_ns for one in measured)
        is_faster = sum(one.high_ns for one in measured) < fused.low_ns
        verdicts.append(Verdict(node, names, fused.median_ns, apart_ns, is_faster))
    return tuple(verdicts)


def _chosen(entries: tuple[Entry, ...]) -> Measurement | None:
    return next((entry.measurement for entry in entries if entry.fate is Fate.CHOSEN), None)
