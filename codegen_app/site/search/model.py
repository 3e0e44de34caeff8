"""Kinds of searches and their results. A kind that exceeds its time limit says so, and does not
delay the others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from enum import IntEnum

from django.db import OperationalError, connection, transaction
from django.db.models import Q


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


class Rank(IntEnum):
    """How well a name matches a query; the best first."""

    EXACT, PREFIX, WORD, OTHER = range(4)

    @classmethod
    def of(cls, query: str, text: str) -> Rank:
        """Return the rank of a name: the query is the name or its first word, the name begins with
        it, a word of the name begins with it, or anything else."""
        query, text = query.lower(), text.lower()
        words = [word for word in re.split(r"[\W_]+", text) if word]
        if text == query or text.split(maxsplit=1)[:1] == [query]:
            return cls.EXACT
        if text.startswith(query):
            return cls.PREFIX
        return cls.WORD if any(word.startswith(query) for word in words) else cls.OTHER


def by_rank(query: str, groups: Iterable[Group]) -> tuple[Group, ...]:
    """Return the groups, those with the best matches first; those that timed out last."""
    return tuple(
        sorted(
            groups,
            key=lambda group: min(
                (Rank.of(query, hit.text) for hit in group.hits), default=len(Rank)
            ),
        )
    )


@dataclass(frozen=True)
class Finder:
    """A kind of results: ``find`` gets the query and the maximum number of results. Finders that
    query the database have a time limit (``run_finders``)."""

    key: str
    title: str
    find: Callable[[str, int], list[Hit]]
    asks_database: bool = True


def has_words(query: str, *lookups: str) -> Q:
    """Match the rows in which every word of the query is found by one of the lookups
    (``name__icontains``)."""
    matching = Q()
    for word in query.split():
        matching &= Q(*((lookup, word) for lookup in lookups), _connector=Q.OR)
    return matching


_QUERY_CANCELED = "57014"  # PostgreSQL's query_canceled


def run_finders(
    finders: Iterable[Finder], query: str, limit: int, limit_ms: int
) -> tuple[Group, ...]:
    """Return the results of each finder, at most ``limit``, the best matches first; empty ones are
    left out."""
    groups = []
    with transaction.atomic():
        before = _set_statement_timeout(f"{limit_ms}ms")
        for finder in finders:
            # A cancelled query rolls back only itself.
            savepoint = transaction.atomic() if finder.asks_database else nullcontext()
            try:
                with savepoint:
                    hits = finder.find(query, limit + 1)
            except OperationalError as error:
                if getattr(error.__cause__, "sqlstate", "") != _QUERY_CANCELED:
                    raise
                groups.append(Group(finder.key, finder.title, (), is_cut=True))
                continue
            if hits:
                more = len(hits) > limit
                hits.sort(key=lambda hit: Rank.of(query, hit.text))
                groups.append(Group(finder.key, finder.title, tuple(hits[:limit]), more=more))
        _set_statement_timeout(before)
    return tuple(groups)


def _set_statement_timeout(limit: str) -> str:
    """Set the limit for this transaction only, and return the previous one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('statement_timeout'),"
            " set_config('statement_timeout', %s, true)",
            [limit],
        )
        before: str = cursor.fetchone()[0]
    return before
