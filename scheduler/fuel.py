"""Fuel: work is counted, not timed, so that a stage stops after the same work on every machine.

A step is a polynomial term that is multiplied or added, a tree node that is rebuilt, several that
are visited, or a pair that is compared: about ten microseconds. Code that does such work calls
``spend_fuel``; a stage sets its limit with ``fuel_limit``. Cached results cost nothing, so a
process that has seen a graph before takes fewer steps for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from scheduler.errors import UserError


class LimitError(UserError):
    """A model exceeds a limit; the message names the limit and its value."""

    place = ""

    def with_location(self, place: str) -> LimitError:
        """Return the error prefixed with a place in the model, unless it names one already."""
        if self.place:
            return self
        error = type(self)(f"{place}: {self}")
        error.place = place
        return error


class OutOfFuelError(LimitError):
    """A stage took more steps than its limit."""


@dataclass
class _Tank:
    what: str
    limit: int
    spent: int = 0


_current: ContextVar[_Tank | None] = ContextVar("steps", default=None)


@contextmanager
def fuel_limit(what: str, limit: int) -> Iterator[None]:
    """Limit the steps of a stage; they also count for the enclosing stage.

    ``what`` names the stage in messages. ``spend_fuel`` raises ``OutOfFuelError`` once the steps
    exceed ``limit``, or what the enclosing stage has left.
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
    """Count steps if a limit is active. Raises ``OutOfFuelError`` beyond the limit."""
    counter = _current.get()
    if counter is not None:
        counter.spent += steps
        if counter.spent > counter.limit:
            raise OutOfFuelError(f"{counter.what} exceeds the limit of {counter.limit} steps")
