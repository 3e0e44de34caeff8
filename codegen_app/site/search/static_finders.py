"""Finders that need no database: targets, ops and pages."""

from __future__ import annotations

from functools import cache
from urllib.parse import urlencode

from django.urls import reverse

from codegen_app.site.search.model import Hit
from scheduler import targets
from scheduler.lowering.ops.table import table

# Pages by URL name, with other names that users may search for.
_PAGES = (
    ("overview", "Overview", "start home"),
    ("graphs", "Graphs", "models"),
    ("kernels", "Kernels", "table"),
    ("tuning_runs", "Tuning runs", "autotune"),
    ("series_list", "Series", "history times"),
    ("compare_revisions", "Compare revisions", "branches diff"),
    ("alerts", "Alerts", "regressions improvements triage"),
    ("selections", "Selections", "choices serving"),
    ("devices", "Devices", "workers environments gpus"),
    ("ops", "Ops", "operators aten coverage"),
    ("glossary", "Glossary", "words terms help"),
    ("api_docs", "API", "documentation http"),
)


def pages(query: str, limit: int) -> list[Hit]:
    """Find pages by their names and aliases; all pages for an empty query."""
    return [
        Hit("page", title, reverse(name))
        for name, title, words in _PAGES
        if query.lower() in f"{title} {words}".lower()
    ][:limit]


def find_targets(query: str, limit: int) -> list[Hit]:
    """Find targets by name: each links to the kernels with their resources there."""
    hits = []
    for name in targets.names():
        target = targets.find(name)
        if query.lower() in name.lower() and not target.emulates:
            url = f"{reverse('kernels')}?{urlencode({'target': name})}"
            hits.append(Hit("target", name, url, "registers and occupancy of kernels there"))
    return hits[:limit]


def ops(query: str, limit: int) -> list[Hit]:
    """Find ops by name, those that begin with the query first."""
    word = query.lower().removeprefix("aten.")
    names = sorted((not name.startswith(word), name) for name in _op_names() if word in name)
    return [
        Hit("op", name, f"{reverse('ops')}?{urlencode({'words': name})}", "what computes it")
        for _, name in names[:limit]
    ]


@cache
def _op_names() -> tuple[str, ...]:
    return tuple(sorted({row.name for row in table()}))
