"""Search: everything that has what is typed in its name, by kind; and the palette's short list."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from codegen_app.selectors.searching import actions, code, known, rows
from codegen_app.selectors.searching.bounds import grouped
from codegen_app.selectors.searching.model import Finder, Group

LIMIT, SHORT = 50, 6
_MOST_PAGES = 50
_SHORTEST = 2  # characters: fewer are in nearly every name

_ROWS = (
    Finder("graphs", "Graphs", rows.graphs),
    Finder("nodes", "Scheduled nodes", rows.scheduled),
    Finder("kernels", "Kernels", rows.kernels),
    Finder("parameters", "Parameters", code.parameters),
    Finder("instructions", "Instructions", code.instructions),
    Finder("with_instruction", "Kernels with the instruction", code.with_instruction),
    Finder("modules", "Module paths", rows.modules),
    Finder("sources", "Lines of models", rows.sources),
    Finder("graph_nodes", "Graph nodes", rows.graph_nodes),
    Finder("runs", "Tuning runs", rows.runs),
    Finder("series", "Series", rows.series),
)
_KNOWN = (
    Finder("targets", "Targets", known.found_targets, asks_database=False),
    Finder("ops", "Ops", known.ops, asks_database=False),
    Finder("pages", "Pages", known.pages, asks_database=False),
)
_PEOPLE = Finder("people", "People", rows.people)


@dataclass(frozen=True)
class Found:
    """What a search found, at most ``limit`` of each kind; ``groups`` without any are left out.
    ``is_short``: too little was typed to look for."""

    query: str
    groups: tuple[Group, ...]
    limit: int = LIMIT
    is_short: bool = False

    @property
    def total(self) -> int:
        """Hits that are listed."""
        return sum(len(group.hits) for group in self.groups)

    @property
    def more(self) -> bool:
        """Whether there is more than is listed."""
        return any(group.more for group in self.groups)

    @property
    def cut(self) -> tuple[str, ...]:
        """Kinds that there was no time to look through."""
        return tuple(group.title for group in self.groups if group.is_cut)


def search(query: str, *, with_people: bool = False) -> Found:
    """Everything that has the query in its name (39 queries, each with a limit in time; none
    where too little is typed)."""
    query = query.strip()
    if _is_short(query):
        return Found(query, (), is_short=bool(query))
    finders = (*_ROWS, *([_PEOPLE] if with_people else []), *_KNOWN)
    return Found(query, grouped(finders, query, LIMIT, settings.SEARCH_MS))


def palette(query: str, at: str, account: actions.Account) -> Found:
    """What the palette lists: actions first, then a few of each kind; without a query what can be
    done with the page ``at``, the pages, and what is new."""
    query = query.strip()
    doing = Finder(
        "actions", "Actions", lambda text, most: actions.actions(text, at, account, most)
    )
    if not query:
        newest = Finder("latest", "Newest", lambda _, most: rows.latest(most // 2))
        found = grouped((doing, newest), "", SHORT, settings.SEARCH_MS)
        pages = Group("pages", "Pages", tuple(known.pages("", _MOST_PAGES)))
        return Found("", (*found, pages), SHORT)
    finders = [doing]
    if not _is_short(query):
        finders += [*_ROWS, *([_PEOPLE] if account.is_authenticated else [])]
    finders += _KNOWN
    return Found(query, grouped(finders, query, SHORT, settings.SEARCH_MS), SHORT)


def _is_short(query: str) -> bool:
    return len(query) < _SHORTEST and not query.isdigit()
