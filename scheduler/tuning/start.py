"""What a measured run begins with: the candidates that an earlier run modelled as the fastest.

Lines are found again by the problem, its sizes and the configuration; the figure itself is taken
over only where the kernel, named by its content, is the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from scheduler.codegen import layout
from scheduler.codegen.kernel import ConfigValue
from scheduler.outcome import UserError
from scheduler.targets.modelled import board_of_device
from scheduler.tuning.ledger import CandidateState, read_lines
from scheduler.tuning.modelled import Modelled, devices_of, fastest_first
from scheduler.tuning.problems import TuningProblem

#: How many of a problem's candidates are measured first.
FIRST = 8
_KEPT = (CandidateState.MODELLED, CandidateState.CHOSEN)
Key: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True)
class Line:
    """What of a ledger's line orders a later run."""

    problem: str
    bindings: Mapping[str, int]
    kernel: str
    template: str
    config: Mapping[str, ConfigValue]
    state: CandidateState
    modelled: Modelled | None = None


@dataclass(frozen=True)
class Start:
    """The modelled candidates of an earlier run, ``source`` as people know it."""

    source: str
    lines: Mapping[Key, tuple[str, Modelled]] = field(default_factory=dict)

    @property
    def device(self) -> str:
        """The device that was modelled."""
        return ", ".join(devices_of(one for _, one in self.lines.values()))

    def check_for(self, target: str) -> None:
        """Raise ``UserError`` where another target was modelled."""
        for device in devices_of(one for _, one in self.lines.values()):
            modelled = board_of_device(device).target
            if modelled != target:
                raise UserError(
                    f"{self.source}: modelled for {modelled} ({device}), which orders nothing on"
                    f" {target}"
                )

    def figures(self, problem: TuningProblem) -> dict[int, Modelled]:
        """Of a problem's candidates by their places, what was modelled of these very kernels."""
        return {
            place: one
            for place, (kernel, one) in self._found(problem).items()
            if kernel == problem.callers[place].name
        }

    def first(self, problem: TuningProblem) -> list[int]:
        """The places of the candidates to measure first, the least modelled time first; none that
        the model does not know whole."""
        found = {place: one for place, (_, one) in self._found(problem).items() if not one.unknown}
        return fastest_first(found)[:FIRST]

    def text(self, problems: Iterable[TuningProblem]) -> str:
        """One line of what the run begins with."""
        counts = [len(self._found(one)) for one in problems]
        if not any(counts):
            return f"{self.source}: nothing in it is modelled of what is tuned"
        return (
            f"each problem begins with the {FIRST} fastest as modelled for {self.device}"
            f" ({self.source}: {sum(counts)} candidates of {sum(map(bool, counts))} of"
            f" {len(counts)} problems)"
        )

    def _found(self, problem: TuningProblem) -> dict[int, tuple[str, Modelled]]:
        found = {}
        for place, caller in enumerate(problem.callers):
            kernel = caller.kernel
            key = key_of(problem.title, problem.bindings, kernel.template, kernel.config)
            if key in self.lines:
                found[place] = self.lines[key]
        return found


#: Of a run that begins with nothing.
NOWHERE = Start("")


def key_of(
    title: str, bindings: Mapping[str, int], template: str, config: Mapping[str, object]
) -> Key:
    """By what a candidate of one run is found in another."""
    sizes = json.dumps(sorted(bindings.items()))
    return title, sizes, json.dumps([template, sorted(config.items())])


def start_of(source: str, lines: Iterable[Line]) -> Start:
    """Of the lines of a ledger."""
    found = {
        key_of(one.problem, one.bindings, one.template, one.config): (one.kernel, one.modelled)
        for one in lines
        if one.modelled is not None and one.state in _KEPT
    }
    return Start(source, found)


def read_start(path: Path) -> Start:
    """From a ledger, or the bundle that it lies in. Raises ``UserError`` where it is none, or
    nothing in it is modelled."""
    file = path / layout.LEDGER if path.is_dir() else path
    start = start_of(str(path), read_lines(file, Line))
    if not start.lines:
        raise UserError(f"{path}: nothing in this ledger is modelled: name one of modelled times")
    return start
