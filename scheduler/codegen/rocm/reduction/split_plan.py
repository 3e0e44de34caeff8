"""The launches of a reduction whose rows are shared by blocks.

With one block per row there is one launch; otherwise each launch runs up to the next sums, and the
following one begins with the results that its blocks left in the workspace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from scheduler.codegen.rocm.reduction.split_body import Split, SplitBody
from scheduler.codegen.rocm.reduction.stages import Stage

_GATHERING_LANES, _MOST_GATHERING = 16, 64
_GATHERED = 8  # parts of a row that a thread combines


@dataclass(frozen=True)
class DeviceFunction:
    """A device function: ``before`` are the stages whose results it takes from the workspace (the
    last one's rows are not stored yet), ``own`` the stages that it runs itself; with ``saves``
    their sums are left to the next function. A function that ``totals`` only combines parts for the
    others."""

    before: tuple[Stage, ...]
    own: tuple[Stage, ...]
    saves: bool
    totals: bool = False

    @property
    def loops(self) -> bool:
        """Whether it loops over rows."""
        return any(stage.loop for stage in self.own)

    def name(self, number: int) -> str:
        """Return the suffix of its name, as the launch of that number."""
        if self.totals:
            return f"total{number}"
        if self.saves:
            return f"part{number}"
        return "rest" if self.loops else "finish"

    @property
    def about(self) -> str:
        """Return the purpose of its launch."""
        if self.saves:
            return "Each block's part of the sums, to the workspace."
        if self.totals:
            return "All parts together, always in one order, to the workspace."
        return "All parts together, always in one order, and what follows from them."

    @property
    def only_combines(self) -> bool:
        """Whether it reads only the workspace of the launch before."""
        return bool(self.before) and not self.loops


def plan_functions(stages: Sequence[Stage], shares: Split) -> tuple[DeviceFunction, ...]:
    """Return the launches: one with one block per row, otherwise one up to each set of sums.

    Every block of the next launch combines the parts of its rows. With columns that would be as
    much to read as the columns themselves: their parts are combined by a launch in between.
    """
    if shares.split == 1:
        return (DeviceFunction((), tuple(stages), saves=False),)
    found: list[DeviceFunction] = []
    done = 0
    for position, stage in enumerate(stages):
        if stage.reductions:
            own = tuple(stages[done : position + 1])
            found.append(DeviceFunction(tuple(stages[:done]), own, saves=True))
            done = position + 1
            if shares.columns and any(later.loop for later in stages[done:]):
                found.append(DeviceFunction((stage,), (), saves=False, totals=True))
    found.append(DeviceFunction(tuple(stages[:done]), tuple(stages[done:]), saves=False))
    return tuple(found)


def gather_split(shares: Split) -> Split:
    """Return the split of a launch that only combines parts: a few for each thread."""
    if shares.columns:
        lanes = max(min(_GATHERING_LANES, shares.split), min(_MOST_GATHERING, shares.split // 8))
        return replace(shares, columns=1, lanes=lanes)
    lanes = max(1, shares.split // _GATHERED)
    return replace(shares, vector=1, lanes=lanes)


def print_function(body: SplitBody, function: DeviceFunction) -> None:
    """Print a device function with ``body``."""
    body.outer()
    if function.totals:
        (stage,) = function.before
        body.gather(stage)
        body.save(stage, "kSplit")
        return
    for position, stage in enumerate(function.before):
        last = position == len(function.before) - 1
        if stage.reductions and body.shares.columns and (function.loops or not last):
            body.recall(stage)
        elif stage.reductions:
            body.gather(stage)
        body.finish(stage, stores=last)
    for position, stage in enumerate(function.own):
        body.reduce(stage)
        if function.saves and position == len(function.own) - 1:
            body.save(stage)
        else:
            body.finish(stage, stores=True)
