"""Compares fused kernels with the kernels of their operations, each tuned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from scheduler.benchmark.measurement import Measurement
from scheduler.fusion.nodes import Schedule
from scheduler.fusion.split import part_names, split_nodes
from scheduler.tuning.tuner import TuningResult


@dataclass(frozen=True)
class FusionComparison:
    """Times of one fused node and of its parts, in nanoseconds; None if something was not measured.
    The parts are selected only if the sum of the slow ends of their intervals lies below the fast
    end of the fused kernel's."""

    node: str
    parts: tuple[str, ...]
    fused_ns: float | None
    unfused_ns: float | None
    unfused_is_faster: bool

    def to_json(self) -> dict[str, Any]:
        """Return its line of the ledger; ``apart_ns`` and ``apart`` are the keys of the first
        ledgers."""
        return asdict(self) | {"apart_ns": self.unfused_ns, "apart": self.unfused_is_faster}


def unfuse_all(plan: Schedule) -> tuple[Schedule, Mapping[str, tuple[str, ...]]]:
    """Return the schedule with every splittable fused kernel split, and the parts of each such
    node."""
    unfused = split_nodes(plan, {node.name for node in plan.nodes})
    return unfused, {name: part_names(plan, name) for name in unfused.split}


def compare_fusion(
    result: TuningResult, parts: Mapping[str, tuple[str, ...]]
) -> tuple[FusionComparison, ...]:
    """Compare each fused node with its parts, which were tuned in the same run."""
    best: dict[str, Measurement | None] = {
        node: problem_result.chosen.measurement if problem_result.chosen else None
        for problem_result in result.problems
        for node in problem_result.problem.nodes
    }
    comparisons = []
    for node, names in parts.items():
        fused = best.get(node)
        measured = [part for name in names if (part := best.get(name)) is not None]
        if fused is None or len(measured) < len(names):
            fused_ns = None if fused is None else fused.median_ns
            comparisons.append(FusionComparison(node, names, fused_ns, None, False))
            continue
        unfused_ns = sum(part.median_ns for part in measured)
        is_faster = sum(part.high_ns for part in measured) < fused.low_ns
        comparisons.append(FusionComparison(node, names, fused.median_ns, unfused_ns, is_faster))
    return tuple(comparisons)
