"""Work that is counted instead of timed: a stage stops after so many steps, on every machine alike.

A step is a term of a polynomial that is multiplied or added, a part of a tree that is made anew,
some that are looked at, or a pair that is compared: some ten microseconds. Whoever does such work
calls ``spend``; a stage says with ``counted`` how much all of it may be. What is remembered from
before costs nothing again, so that a process that has seen a graph takes fewer steps for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from scheduler.errors import UserError


class LimitError(UserError):
    """A model asks for more than is done for one; the line says of what, and how much is."""

    place = ""

    def with_location(self, place: str) -> LimitError:
        """The same of a place in the model, unless a place is named already."""
        if self.place:
            return self
        error = type(self)(f"{place}: {self}")
        error.place = place
        return error


class OutOfFuelError(LimitError):
    """A stage took more steps than it may."""


@dataclass
class _Tank:
    what: str
    limit: int
    spent: int = 0


_current: ContextVar[_Tank | None] = ContextVar("steps", default=None)


@contextmanager
def fuel_limit(what: str, limit: int) -> Iterator[None]:
    """Count the steps of ``what``, for the messages; of a stage around it, they count too.

    Raises ``StepLimitError`` once they are more than ``limit``, or than the outer stage has left.
    """
    outer = _current.get()
    left = limit if outer is None else min(limit, outer.limit - outer.spent)
    counter = _Tank(what, left)
    token = _current.set(counter)
    try:
        yield
    finally:
        _current.reset(token)
        if outer is not None:
            outer.spent += counter.spent


def spend_fuel(steps: int = 1) -> None:
    """Count steps where somebody counts. Raises ``StepLimitError`` at the limit."""
    counter = _current.get()
    if counter is not None:
        counter.spent += steps
        if counter.spent > counter.limit:
            raise OutOfFuelError(f"{counter.what} would take more than {counter.limit} steps")
