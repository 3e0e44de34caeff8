"""The data of an explorer: the page's plots are drawn from it; its tables and JSON view show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.tuning.ledger import CandidateState
from scheduler.tuning.trials.importance import Importance
from scheduler.tuning.trials.parameters import Parameter
from scheduler.tuning.trials.slices import Grid, Slice

MEASURED, EMULATED, MODELLED = "measured", "emulated", "modelled"


@dataclass(frozen=True)
class Trial:
    """One candidate. ``row`` is its row in the page's table; ``state`` its outcome in the ledger's
    terms, with the ``stage`` and ``reason`` of a rejection; ``order`` its position among the tried
    ones, None if not tried; ``at_s`` the time in the run in seconds. The time is of the page's
    kind, with its interval (for modelled ones their band) and its ``n`` samples; ``modelled_us`` is
    the modelled time beside a measured one. ``best`` marks the selected candidate."""

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
    """The best time after this many trials."""

    order: int
    at_s: float | None
    time_us: float


@dataclass(frozen=True)
class Explorer:
    """The trials of one problem. ``times`` says whether they were measured, emulated or modelled,
    ``where`` on which device and target (or board), ``sizes`` at which sizes; ``ordered_by`` is
    their order. ``states`` counts all candidates by outcome, including those without a trial (a
    rule rejected their configuration); ``nodes`` are the nodes of the run that have trials,
    ``node`` is this one. ``parameters`` hold a code per trial, the most important first. ``keys``
    are the keys of the page's table columns in addresses, ``modelled_where`` the board of the
    modelled times beside measured ones."""

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
        """The number of trials with a time."""
        return sum(trial.time_us is not None for trial in self.trials)

    @property
    def candidates(self) -> int:
        """The number of candidates that no rule rejected, tried or not."""
        return sum(self.states.values()) - self.states.get(str(CandidateState.REJECTED), 0)

    @property
    def fewest_n(self) -> int:
        """The fewest samples of any time."""
        return min((trial.n for trial in self.trials if trial.time_us is not None), default=0)

    @property
    def most_n(self) -> int:
        """The most samples of any time."""
        return max((trial.n for trial in self.trials if trial.time_us is not None), default=0)

    def parameter(self, name: str) -> Parameter | None:
        """Return the parameter of that name."""
        return next((row for row in self.parameters if row.name == name), None)
