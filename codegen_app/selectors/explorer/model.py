"""What an explorer shows: the page's plots are drawn from it, its tables and its twin are it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.tuning.trials.importance import Importance
from scheduler.tuning.trials.parameters import Parameter
from scheduler.tuning.trials.slices import Grid, Slice

MEASURED, EMULATED, MODELLED = "measured", "emulated", "modelled"


@dataclass(frozen=True)
class Trial:
    """One candidate. ``row`` is its row in the page's table; ``state`` what became of it in a
    ledger's words, with the ``stage`` and ``reason`` of a rejection; ``order`` its place
    among those that were tried, None where it was not; ``at_s`` seconds of the run. The
    time is the page's kind, with its interval (of modelled ones its band), and the ``n`` samples
    that it is of; ``modelled_us`` what the model says, beside a measured one. ``best`` marks what
    is chosen, or serves."""

    row: int
    kernel: str
    url: str
    state: str
    stage: str = ""
    reason: str = ""
    order: int | None = None
    at_s: float | None = None
    time_us: float | None = None
    low_us: float | None = None
    high_us: float | None = None
    n: int = 0
    modelled_us: float | None = None
    best: bool = False


@dataclass(frozen=True)
class BestPoint:
    """The best time after so many trials."""

    order: int
    at_s: float | None
    time_us: float


@dataclass(frozen=True)
class Explorer:
    """The trials of one problem. ``times`` says whether they were measured, emulated or modelled,
    ``where`` on which device and target (or board), ``sizes`` at which sizes; ``ordered_by`` what
    their order is. ``states`` counts all candidates by what became of them, those that no trial
    was made of (a rule rejected their configuration) among them; ``nodes`` are those of the run
    that have trials, of which this is ``node``. ``parameters`` have codes for each trial, the most
    important first. ``keys`` is what addresses call the columns of the page's table,
    ``modelled_where`` of which board the modelled times beside measured ones are."""

    node: str
    problem: str
    times: str
    where: str
    sizes: Mapping[str, int]
    ordered_by: str
    states: Mapping[str, int]
    trials: tuple[Trial, ...]
    parameters: tuple[Parameter, ...]
    best: tuple[BestPoint, ...]
    importance: Importance
    slices: tuple[Slice, ...]
    grid: Grid | None
    cell: str
    keys: Mapping[str, str]
    nodes: tuple[str, ...] = ()
    modelled_where: str = ""

    @property
    def timed(self) -> int:
        """Trials with a time."""
        return sum(one.time_us is not None for one in self.trials)

    @property
    def fewest_n(self) -> int:
        """The fewest samples that a time is of."""
        return min((one.n for one in self.trials if one.time_us is not None), default=0)

    @property
    def most_n(self) -> int:
        """The most samples that a time is of."""
        return max((one.n for one in self.trials if one.time_us is not None), default=0)

    def parameter(self, name: str) -> Parameter | None:
        """A parameter of that name."""
        return next((one for one in self.parameters if one.name == name), None)
