"""Warm start: configurations that won on similar problems."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from scheduler.codegen.kernel import ConfigValue
from scheduler.codegen.problem import ProblemShape
from scheduler.tuning.ledger import read_winners
from scheduler.tuning.space import TEMPLATE

_MAX_NEAREST = 3


@dataclass(frozen=True)
class PriorResult:
    """A configuration that won, and its template ("": not recorded)."""

    shape: ProblemShape
    config: Mapping[str, ConfigValue]
    template: str = ""

    @property
    def search_config(self) -> Mapping[str, ConfigValue]:
        """The configuration as a search among several templates takes it."""
        return {TEMPLATE: self.template, **self.config} if self.template else self.config


def nearest_configs(
    known: Iterable[PriorResult], shape: ProblemShape
) -> list[Mapping[str, ConfigValue]]:
    """Return at most three different configurations of the nearest problems, the nearest first."""
    at = [(one.shape.distance(shape), place, one.search_config) for place, one in enumerate(known)]
    found: list[Mapping[str, ConfigValue]] = []
    for distance, _, config in sorted(at, key=lambda item: item[:2]):
        if math.isinf(distance) or len(found) == _MAX_NEAREST:
            break
        if dict(config) not in [dict(one) for one in found]:
            found.append(config)
    return found


def read_prior_results(path: Path) -> list[PriorResult]:
    """Return the winners of an earlier run. Raises ``UserError`` if the file is no ledger."""
    return [PriorResult(one.shape, one.config, one.template) for one in read_winners(path)]
