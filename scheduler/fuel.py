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

    location = ""

    def with_location(self, location: str) -> LimitError:
        """Return the error prefixed with its location in the model, unless it names one already."""
        if self.location:
            return self
        error = type(self)(f"{location}: {self}")
        error.location = location
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
    remaining = limit if outer is None else min(limit, outer.limit - outer.spent)
    tank = _Tank(what, remaining)
    token = _current.set(tank)
    try:
        yield
    finally:
        _current.reset(token)
        if outer is not None:
            outer.spent += tank.spent


def spend_fuel(steps: int = 1) -> None:
    """Count steps if a limit is active. Raises ``OutOfFuelError`` beyond the limit."""
    tank = _current.get()
    if tank is not None:
        tank.spent += steps
        if tank.spent > tank.limit:
            raise OutOfFuelError(f"{tank.what} exceeds the limit of {tank.limit} steps")
