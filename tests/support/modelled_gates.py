"""The modelled figures that must not get worse: as they are today, target by target."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.support import kernel_bars
from tests.support.families import FAMILIES, Family, Figures

FILE = Path(__file__).parents[1] / "unit" / "cycles" / "gates.json"
COMMAND = "python -m tests.benchmarks.cycles gates"
TARGETS = ("gfx942", "gfx950", "gfx90a", "gfx1100", "gfx1201")
#: Worse by more than this share of its ratchet, a figure fails; better by more, it may be raised.
MARGIN = 0.03


@dataclass(frozen=True)
class Gate:
    """One family on one target."""

    target: str
    family: Family

    @property
    def title(self) -> str:
        return f"{self.target}: {self.family.name}"


GATES = tuple(Gate(target, family) for target in TARGETS for family in FAMILIES)

Ratchets = Mapping[str, Mapping[str, Mapping[str, float]]]


def read() -> Ratchets:
    """By target, family and figure."""
    found: Ratchets = json.loads(FILE.read_text())
    return found


def held(family: Family, figures: Figures) -> dict[str, float]:
    """What stands in the file: the time says the same as the share of the peak; how busy matrix
    pipes are is no aim of what memory bounds."""
    left_out = {"time_us"} if family.matrix else {"time_us", "matrix_busy"}
    return {name: value for name, value in asdict(figures).items() if name not in left_out}


def missed(gate: Gate, figures: Figures) -> tuple[str, ...]:
    """What no ratchet allows: a line for each bar of every kernel that is not reached."""
    narrow = 0.0 if gate.family.few_results else figures.narrow
    return tuple(kernel_bars.missed(figures.conflict, figures.spills, narrow))


def worse(found: Mapping[str, float], ratchet: Mapping[str, float]) -> Iterator[str]:
    """A line for each figure that is worse than its ratchet by more than the margin."""
    for name, value, bound in _compared(found, ratchet):
        if _loss(name, value, bound) > MARGIN:
            yield f"{name}: {value:g}, {bound:g} before ({_loss(name, value, bound):.0%} worse)"


def better(found: Mapping[str, float], ratchet: Mapping[str, float]) -> Iterator[str]:
    """A line for each figure that is better than its ratchet by more than the margin."""
    for name, value, bound in _compared(found, ratchet):
        if _loss(name, value, bound) < -MARGIN:
            yield f"{name}: {value:g}, {bound:g} before"


def _compared(
    found: Mapping[str, float], ratchet: Mapping[str, float]
) -> Iterator[tuple[str, float, float]]:
    return ((name, found[name], bound) for name, bound in ratchet.items())


def _loss(name: str, value: float, bound: float) -> float:
    """How much worse, as a share of the ratchet: of conflicts less is better, of the rest more. Of
    registers and of a share the difference."""
    if name in ("spills", "narrow"):
        return value - bound
    if bound == 0:
        return 0.0 if value >= 0 else 1.0
    return (value - bound) / bound if name == "conflict" else (bound - value) / bound
