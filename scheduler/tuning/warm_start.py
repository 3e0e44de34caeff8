"""Warm start of a run: the candidates that an earlier run modelled as the fastest, and the
configurations that won on similar problems.

Modelled lines are matched by the problem, its sizes and the configuration; the modelled time is
taken over only if the kernel, named by its content, is the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from scheduler.codegen import bundle_paths
from scheduler.codegen.kernel import ConfigValue
from scheduler.codegen.problem import ProblemShape
from scheduler.errors import UserError
from scheduler.targets.modelled import board_of_device
from scheduler.tuning.ledger import CandidateState, read_lines
from scheduler.tuning.modelled_time import ModelledTime, devices_of, fastest_first
from scheduler.tuning.problems import TuningProblem
from scheduler.tuning.space import TEMPLATE

#: How many of a problem's candidates are measured first.
FIRST_COUNT = 8
_MAX_NEAREST = 3  # configurations of similar problems
_USABLE_STATES = (CandidateState.MODELLED, CandidateState.CHOSEN)
Key: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True)
class LedgerLine:
    """The fields of a ledger line that order a later run."""

    problem: str
    bindings: Mapping[str, int]
    kernel: str
    template: str
    config: Mapping[str, ConfigValue]
    state: CandidateState
    modelled: ModelledTime | None = None


@dataclass(frozen=True)
class WarmStart:
    """The modelled candidates of an earlier run; ``source`` is its name for users."""

    source: str
    lines: Mapping[Key, tuple[str, ModelledTime]] = field(default_factory=dict)

    @property
    def device(self) -> str:
        """The modelled device."""
        return ", ".join(devices_of(modelled for _, modelled in self.lines.values()))

    def check_for(self, target: str) -> None:
        """Raise ``UserError`` if another target was modelled."""
        for device in devices_of(modelled_time for _, modelled_time in self.lines.values()):
            modelled = board_of_device(device).target
            if modelled != target:
                raise UserError(
                    f"{self.source}: modelled for {modelled} ({device}), not for {target}"
                )

    def modelled_times(self, problem: TuningProblem) -> dict[int, ModelledTime]:
        """Return, by candidate index, the modelled times of the problem's exact kernels."""
        return {
            index: modelled
            for index, (kernel, modelled) in self._match(problem).items()
            if kernel == problem.callers[index].name
        }

    def first_candidates(self, problem: TuningProblem) -> list[int]:
        """Return the indices of the candidates to measure first, the least modelled time first,
        without those that contain instructions unknown to the model."""
        known_times = {
            index: modelled
            for index, (_, modelled) in self._match(problem).items()
            if not modelled.unknown
        }
        return fastest_first(known_times)[:FIRST_COUNT]

    def text(self, problems: Iterable[TuningProblem]) -> str:
        """Return one line about the warm start."""
        counts = [len(self._match(problem)) for problem in problems]
        if not any(counts):
            return f"{self.source}: no modelled times for the tuned problems"
        return (
            f"each problem begins with the {FIRST_COUNT} fastest as modelled for {self.device}"
            f" ({self.source}: {sum(counts)} candidates of {sum(map(bool, counts))} of"
            f" {len(counts)} problems)"
        )

    def _match(self, problem: TuningProblem) -> dict[int, tuple[str, ModelledTime]]:
        matches = {}
        for index, caller in enumerate(problem.callers):
            kernel = caller.kernel
            key = key_of(problem.title, problem.bindings, kernel.template, kernel.config)
            if key in self.lines:
                matches[index] = self.lines[key]
        return matches


#: For a run without a warm start.
COLD_START = WarmStart("")


def key_of(
    title: str, bindings: Mapping[str, int], template: str, config: Mapping[str, object]
) -> Key:
    """Return the key that identifies a candidate across runs."""
    sizes = json.dumps(sorted(bindings.items()))
    return title, sizes, json.dumps([template, sorted(config.items())])


def build_warm_start(source: str, lines: Iterable[LedgerLine]) -> WarmStart:
    """Build a warm start from the lines of a ledger."""
    modelled_lines = {
        key_of(line.problem, line.bindings, line.template, line.config): (
            line.kernel,
            line.modelled,
        )
        for line in lines
        if line.modelled is not None and line.state in _USABLE_STATES
    }
    return WarmStart(source, modelled_lines)


def read_warm_start(path: Path) -> WarmStart:
    """Read a ledger, or the bundle that contains it. Raises ``UserError`` if it is none, or nothing
    in it is modelled."""
    file = path / bundle_paths.LEDGER if path.is_dir() else path
    start = build_warm_start(str(path), read_lines(file, LedgerLine))
    if not start.lines:
        raise UserError(f"{path}: no modelled times: give a ledger of a modelled device")
    return start


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
    prior_results: Iterable[PriorResult], shape: ProblemShape
) -> list[Mapping[str, ConfigValue]]:
    """Return at most three different configurations of the nearest problems, the nearest first."""
    nearest: list[Mapping[str, ConfigValue]] = []
    for prior in sorted(prior_results, key=lambda prior: prior.shape.distance(shape)):
        if math.isinf(prior.shape.distance(shape)) or len(nearest) == _MAX_NEAREST:
            break
        if dict(prior.search_config) not in [dict(config) for config in nearest]:
            nearest.append(prior.search_config)
    return nearest


def read_prior_results(path: Path) -> list[PriorResult]:
    """Return the winners of an earlier run. Raises ``UserError`` if the file is no ledger, or for
    an invalid line."""
    return read_lines(path, PriorResult, (CandidateState.CHOSEN,))
