"""The results of a search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Hit:
    """One result: its name, its address, and what distinguishes it from others."""

    kind: str
    text: str
    url: str
    where: str = ""


@dataclass(frozen=True)
class Group:
    """The results of one kind. ``more``: there are more than listed; ``is_cut``: the search of this
    kind timed out."""

    key: str
    title: str
    hits: tuple[Hit, ...]
    more: bool = False
    is_cut: bool = False

    @property
    def count(self) -> str:
        """The number of results, "50+" if there are more, "?" if unknown."""
        return "?" if self.is_cut else f"{len(self.hits)}{'+' if self.more else ''}"


@dataclass(frozen=True)
class Finder:
    """A kind of results: ``find`` gets the query and the maximum number of results. Finders that
    query the database have a time limit (``timeouts.py``)."""

    key: str
    title: str
    find: Callable[[str, int], list[Hit]]
    asks_database: bool = True
