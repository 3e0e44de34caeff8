"""Search by name, grouped by kind; and the palette's short list."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from codegen_app.site.search import actions, code, finders, tracking
from codegen_app.site.search.model import Finder, Group, by_rank, run_finders

LIMIT, PALETTE_LIMIT = 50, 6
_MAX_PAGES = 50
_SHORTEST = 2  # characters: shorter queries match nearly every name

_ROW_FINDERS = (
    Finder("graphs", "Graphs", finders.graphs),
    Finder("nodes", "Scheduled nodes", finders.scheduled),
    Finder("kernels", "Kernels", finders.kernels),
    Finder("parameters", "Parameters", code.parameters),
    Finder("instructions", "Instructions", code.instructions),
    Finder("with_instruction", "Kernels with the instruction", code.with_instruction),
    Finder("modules", "Module paths", finders.modules),
    Finder("sources", "Model lines", finders.sources),
    Finder("graph_nodes", "Graph nodes", finders.graph_nodes),
    Finder("runs", "Tuning runs", finders.runs),
    Finder("series", "Series", tracking.series),
    Finder("alerts", "Alerts", tracking.alerts),
    Finder("revisions", "Revisions", tracking.revisions),
    Finder("devices", "Devices", tracking.devices),
)
_STATIC_FINDERS = (
    Finder("targets", "Targets", finders.find_targets, asks_database=False),
    Finder("ops", "Ops", finders.ops, asks_database=False),
    Finder("pages", "Pages", finders.pages, asks_database=False),
    Finder("terms", "Glossary", finders.terms, asks_database=False),
    Finder("operations", "API", finders.api_operations, asks_database=False),
)
_PEOPLE = Finder("people", "Users", tracking.people)


@dataclass(frozen=True)
class SearchResult:
    """The results of a search, at most ``limit`` of each kind; ``groups`` without results are left
    out. ``is_short``: the query is too short."""

    query: str
    groups: tuple[Group, ...]
    limit: int = LIMIT
    is_short: bool = False

    @property
    def total(self) -> int:
        """The number of listed results."""
        return sum(len(group.hits) for group in self.groups)

    @property
    def more(self) -> bool:
        """Whether there are more than are listed."""
        return any(group.more for group in self.groups)

    @property
    def cut(self) -> tuple[str, ...]:
        """The kinds whose search timed out."""
        return tuple(group.title for group in self.groups if group.is_cut)


def search(query: str, *, with_people: bool = False) -> SearchResult:
    """Return everything that has the query in its name (50 queries, each with a time limit; none if
    the query is too short)."""
    query = query.strip()
    if _is_short(query):
        return SearchResult(query, (), is_short=bool(query))
    kinds = (*_ROW_FINDERS, *([_PEOPLE] if with_people else []), *_STATIC_FINDERS)
    return SearchResult(query, run_finders(kinds, query, LIMIT, settings.SEARCH_MS))


def palette(query: str, at: str, account: actions.Account) -> SearchResult:
    """Return the palette's list: a few results of each kind, the kinds with the best matches first;
    without a query the actions for the page ``at``, the pages, and the newest objects."""
    query = query.strip()
    action_finder = Finder(
        "actions", "Actions", lambda text, limit: actions.actions(text, at, account, limit)
    )
    if not query:
        newest = Finder("latest", "Newest", lambda _, limit: finders.latest(limit // 2))
        groups = run_finders((action_finder, newest), "", PALETTE_LIMIT, settings.SEARCH_MS)
        pages = Group("pages", "Pages", tuple(finders.pages("", _MAX_PAGES)))
        return SearchResult("", (*groups, pages), PALETTE_LIMIT)
    kinds = [action_finder]
    if not _is_short(query):
        kinds += [*_ROW_FINDERS, *([_PEOPLE] if account.is_authenticated else [])]
    kinds += _STATIC_FINDERS
    groups = run_finders(kinds, query, PALETTE_LIMIT, settings.SEARCH_MS)
    return SearchResult(query, by_rank(query, groups), PALETTE_LIMIT)


def _is_short(query: str) -> bool:
    return len(query) < _SHORTEST and not query.isdigit()
