"""Search over graphs, scheduled nodes, the model's nodes and kernels."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q
from django.urls import reverse

from codegen_app.models import GeneratedKernel, Graph, GraphNode, TemplateNode

LIMIT = 50


@dataclass(frozen=True)
class Hit:
    """One thing found."""

    kind: str
    text: str
    url: str
    where: str


@dataclass(frozen=True)
class Found:
    """What a search found; at most ``LIMIT`` of each kind."""

    query: str
    hits: tuple[Hit, ...]


def search(query: str) -> Found:
    """Everything whose name, digest or op holds the query (4 queries; none where it is empty)."""
    query = query.strip()
    if not query:
        return Found("", ())
    graphs = Graph.objects.filter(Q(name__icontains=query) | Q(digest__startswith=query))
    kernels = GeneratedKernel.objects.filter(
        Q(name__icontains=query) | Q(source_digest__startswith=query)
    )
    scheduled = TemplateNode.objects.filter(Q(name__icontains=query) | Q(op__icontains=query))
    nodes = GraphNode.objects.filter(Q(name__icontains=query) | Q(module_path__icontains=query))
    hits = [
        Hit("graph", row.name, row.get_absolute_url(), row.digest[:12])
        for row in graphs.only("name", "digest")[:LIMIT]
    ]
    hits += [
        Hit("kernel", row.name, row.get_absolute_url(), row.template)
        for row in kernels.only("name", "template")[:LIMIT]
    ]
    hits += [
        Hit("node", f"{row.name} {row.op}", row.get_absolute_url(), row.graph.name)
        for row in scheduled.select_related("graph").only("name", "op", "graph__name")[:LIMIT]
    ]
    hits += [
        Hit(
            "graph node",
            row.name,
            f"{reverse('graph', args=[row.graph_id])}?node={row.name}",
            f"{row.graph.name} {row.module_path}",
        )
        for row in nodes.select_related("graph").only("name", "module_path", "graph__name")[:LIMIT]
    ]
    return Found(query, tuple(hits))
