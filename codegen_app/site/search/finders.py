"""Finders by name: graphs, nodes, modules, lines of models, kernels, runs; targets, ops, pages,
terms and operations of the API.

A finder of rows is one query limited to the requested number of rows (no sort without an index).
"""

from __future__ import annotations

import re
from functools import cache
from typing import TypeVar
from urllib.parse import urlencode

from django.db.models import Min, Model, Q, QuerySet
from django.urls import reverse
from django.utils.text import slugify

from codegen_app.graphs.models import Graph, GraphNode, TemplateNode
from codegen_app.kernels.models import GeneratedKernel
from codegen_app.site.api.urls import openapi
from codegen_app.site.pages.api.query import api_page
from codegen_app.site.search.model import Hit, has_words
from codegen_app.tuning.models import TuningRun
from codegen_app.web import navigation
from codegen_app.web.pages.glossary.query import glossary
from scheduler import targets
from scheduler.lowering.ops.table import table

M = TypeVar("M", bound=Model)
_RUN = re.compile(r"(?:run\s*)?#?(\d{1,18})", re.IGNORECASE)
_DIGEST = re.compile(r"[0-9a-f]{6,64}")


def graphs(query: str, limit: int) -> list[Hit]:
    """Find graphs by name or the beginning of the digest."""
    matching = has_words(query, "name__icontains") | _digest("digest", query)
    rows = Graph.objects.only("name", "digest", "node_count")
    return [
        Hit("graph", row.name, row.get_absolute_url(), f"{row.node_count} nodes, {row.digest[:12]}")
        for row in _exact_first(rows, Q(name__iexact=query), matching, limit)
    ]


def scheduled(query: str, limit: int) -> list[Hit]:
    """Find scheduled nodes by name and op."""
    matching = has_words(query, "op__icontains", "name__istartswith")
    rows = TemplateNode.objects.select_related("graph").only("name", "op", "kind", "graph__name")
    return [
        Hit("node", f"{row.name} {row.op}", row.get_absolute_url(), f"{row.kind} of {row.graph}")
        for row in _exact_first(rows, Q(name__iexact=query), matching, limit)
    ]


def graph_nodes(query: str, limit: int) -> list[Hit]:
    """Find calls of models by name or op."""
    rows = GraphNode.objects.filter(has_words(query, "name__icontains", "target__icontains"))
    nodes = rows.select_related("graph").order_by("-pk")
    return [
        Hit(
            "graph node",
            row.name,
            _node_url(row.graph_id, row.name),
            f"{row.target} of {row.graph}",
        )
        for row in nodes.only("name", "target", "graph__name")[:limit]
    ]


def modules(query: str, limit: int) -> list[Hit]:
    """Find module paths of models, each once per graph."""
    return _distinct_hits("module_path", "module", query, limit)


def sources(query: str, limit: int) -> list[Hit]:
    """Find lines of models' sources (``mlp.py``, ``mlp.py:12``), each once per graph."""
    return _distinct_hits("source", "source line", query, limit)


def _distinct_hits(field: str, kind: str, query: str, limit: int) -> list[Hit]:
    rows = (
        GraphNode.objects.filter(**{f"{field}__icontains": query})
        .order_by()
        .values(field, "graph", "graph__name")
        .annotate(first=Min("name"))
    )
    return [
        Hit(kind, row[field], _node_url(row["graph"], row["first"]), f"of {row['graph__name']}")
        for row in rows[:limit]
    ]


def kernels(query: str, limit: int) -> list[Hit]:
    """Find kernels by name, template, or the beginning of the source hash."""
    matching = (
        has_words(query, "name__icontains")
        | Q(template__iexact=query)
        | _digest("source_digest", query)
    )
    rows = GeneratedKernel.objects.filter(matching).order_by("-pk")
    return [
        Hit("kernel", row.name, row.get_absolute_url(), row.template)
        for row in rows.only("name", "template")[:limit]
    ]


def runs(query: str, limit: int) -> list[Hit]:
    """Find runs by number (``run 12``), device, target, reason, or the graph's name."""
    numbered = _RUN.fullmatch(query.strip())
    matching = (
        Q(device__icontains=query) | Q(why__icontains=query) | Q(graph__name__icontains=query)
    )
    if numbered:
        matching = Q(pk=int(numbered[1]))
    return _run_hits(TuningRun.objects.filter(matching), limit)


def latest(limit: int) -> list[Hit]:
    """Return the newest graphs and runs, for an empty query (2 queries)."""
    newest = Graph.objects.order_by("-pk").only("name", "node_count")[:limit]
    hits = [
        Hit("graph", row.name, row.get_absolute_url(), f"{row.node_count} nodes") for row in newest
    ]
    return hits + _run_hits(TuningRun.objects.all(), limit)


def _run_hits(rows: QuerySet[TuningRun], limit: int) -> list[Hit]:
    newest = rows.select_related("graph").order_by("-pk")
    return [
        Hit(
            "run",
            f"run {row.pk}",
            row.get_absolute_url(),
            f"{row.graph}, {row.device}, {row.target}, {row.state}",
        )
        for row in newest.only("device", "target", "state", "graph__name")[:limit]
    ]


def _exact_first(rows: QuerySet[M], exact: Q, matching: Q, limit: int) -> list[M]:
    """Return the newest rows of that very name, then the newest others (2 queries): ``op1`` is not
    lost among those that begin with it."""
    named = list(rows.filter(exact).order_by("-pk")[:limit])
    others = rows.filter(matching).exclude(exact).order_by("-pk")
    return [*named, *others[: limit - len(named)]]


def _digest(field: str, query: str) -> Q:
    """Match the beginning of a digest, if the query can be one."""
    return Q(**{f"{field}__startswith": query}) if _DIGEST.fullmatch(query) else Q(pk__in=[])


def _node_url(graph: int, node: str) -> str:
    return f"{reverse('graph', args=[graph])}?{urlencode({'node': node})}"


def pages(query: str, limit: int) -> list[Hit]:
    """Find pages of the bar by their titles and aliases; all of them for an empty query."""
    return [
        Hit("page", page.title, reverse(page.name), page.note)
        for page in navigation.PAGES
        if not page.staff_only and query.lower() in f"{page.title} {page.aliases}".lower()
    ][:limit]


def terms(query: str, limit: int) -> list[Hit]:
    """Find terms of the glossary."""
    page = reverse("glossary")
    return [
        Hit("term", row.term, f"{page}#{slugify(row.term)}", row.meaning)
        for subject in glossary().subjects
        for row in subject.terms
        if query.lower() in row.term.lower()
    ][:limit]


def api_operations(query: str, limit: int) -> list[Hit]:
    """Find operations of the HTTP API by path or summary."""
    page = reverse("api_docs")
    return [
        Hit("operation", f"{row.method} {row.path}", f"{page}#{row.anchor}", row.summary)
        for row in api_page(openapi()).operations
        if query.lower() in f"{row.method} {row.path} {row.summary}".lower()
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
    names = sorted((not name.startswith(word), name) for name in op_names() if word in name)
    return [
        Hit("op", name, f"{reverse('ops')}?{urlencode({'words': name})}", "what computes it")
        for _, name in names[:limit]
    ]


@cache
def op_names() -> tuple[str, ...]:
    """Return the names of all ops."""
    return tuple(sorted({row.name for row in table()}))
