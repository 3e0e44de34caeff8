"""What a search finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Hit:
    """One thing found: what it is called, its address, and what tells it from others."""

    kind: str
    text: str
    url: str
    where: str = ""


@dataclass(frozen=True)
class Group:
    """What was found of one kind. ``more``: there is more than is listed; ``is_cut``: it could not
    be looked through within the time that a search has."""

    key: str
    title: str
    hits: tuple[Hit, ...]
    more: bool = False
    is_cut: bool = False

    @property
    def count(self) -> str:
        """How many, "50+" where there are more, "?" where nobody knows."""
        return "?" if self.is_cut else f"{len(self.hits)}{'+' if self.more else ''}"


@dataclass(frozen=True)
class Finder:
    """A kind of things: ``find`` is given what was typed and how many to find at most. Those that
    ask the database are given a time (``bounds.py``)."""

    key: str
    title: str
    find: Callable[[str, int], list[Hit]]
    asks_database: bool = True
