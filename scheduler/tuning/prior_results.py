"""Warm start: configurations that won on similar problems."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from scheduler.codegen.kernel import ConfigValue
from scheduler.codegen.problem import ProblemShape
from scheduler.tuning.ledger import CandidateState, read_lines
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
    nearest: list[Mapping[str, ConfigValue]] = []
    for one in sorted(known, key=lambda one: one.shape.distance(shape)):
        if math.isinf(one.shape.distance(shape)) or len(nearest) == _MAX_NEAREST:
            break
        if dict(one.search_config) not in [dict(config) for config in nearest]:
            nearest.append(one.search_config)
    return nearest


def read_prior_results(path: Path) -> list[PriorResult]:
    """Return the winners of an earlier run. Raises ``UserError`` if the file is no ledger, or for
    an invalid line."""
    return read_lines(path, PriorResult, (CandidateState.CHOSEN,))
