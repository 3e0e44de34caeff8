"""Warm start: configurations that won on problems like this one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scheduler.codegen.kernel import ConfigValue
from scheduler.tuning.ledger import CandidateState, read_jsonl

_MOST = 3


@dataclass(frozen=True)
class Shape:
    """What makes problems comparable (``template``, element types, number of extents), and the
    extents of all operands one after the other, which say how near they are."""

    template: str
    dtypes: tuple[str, ...]
    extents: tuple[int, ...]

    def distance(self, other: Shape) -> float:
        """Sum of the extents' ratios, in powers of two; infinite for another kind of problem."""
        mine, theirs = (self.template, self.dtypes), (other.template, other.dtypes)
        if mine != theirs or len(self.extents) != len(other.extents):
            return math.inf
        pairs = zip(self.extents, other.extents, strict=True)
        return sum(abs(math.log2((a + 1) / (b + 1))) for a, b in pairs)


@dataclass(frozen=True)
class Known:
    """A configuration that won."""

    shape: Shape
    config: Mapping[str, ConfigValue]


def nearest(known: Iterable[Known], shape: Shape) -> list[Mapping[str, ConfigValue]]:
    """At most three different configurations of the nearest problems, the nearest first."""
    at = [(one.shape.distance(shape), place, one.config) for place, one in enumerate(known)]
    found: list[Mapping[str, ConfigValue]] = []
    for distance, _, config in sorted(at, key=lambda item: item[:2]):
        if math.isinf(distance) or len(found) == _MOST:
            break
        if dict(config) not in [dict(one) for one in found]:
            found.append(config)
    return found


def from_ledger(path: Path) -> list[Known]:
    """The winners of an earlier run. Raises ``UserError`` where the file is no ledger."""
    return [
        Known(_shape(line["shape"]), line["config"])
        for line in read_jsonl(path)
        if line["fate"] == CandidateState.CHOSEN
    ]


def shape_to_json(shape: Shape) -> dict[str, Any]:
    """As the ledger keeps it."""
    return {
        "template": shape.template,
        "dtypes": list(shape.dtypes),
        "extents": list(shape.extents),
    }


def _shape(data: Mapping[str, Any]) -> Shape:
    extents: Sequence[int] = data["extents"]
    return Shape(data["template"], tuple(data["dtypes"]), tuple(int(one) for one in extents))
