"""Search over graphs, scheduled nodes, the model's nodes and kernels; and the list of kernels."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Q
from django.urls import reverse

from codegen_app.models import GeneratedKernel, Graph, GraphNode, TemplateNode

LIMIT = 50
PAGE = 200


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


@dataclass(frozen=True)
class KernelRow:
    """One kernel in the list."""

    name: str
    url: str
    template: str
    config: dict[str, object]
    nodes: int
    builds: int
    results: int


@dataclass(frozen=True)
class KernelList:
    """A page of kernels by name."""

    query: str
    total: int
    start: int
    kernels: tuple[KernelRow, ...]

    @property
    def previous(self) -> int | None:
        """Where the page before this one starts; None on the first."""
        return max(0, self.start - PAGE) if self.start else None

    @property
    def end(self) -> int:
        """The position behind the last kernel shown."""
        return self.start + len(self.kernels)


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


def kernel_list(query: str, start: int) -> KernelList:
    """Kernels by name, ``PAGE`` at a time (4 queries)."""
    kernels = GeneratedKernel.objects.order_by("name")
    if query:
        kernels = kernels.filter(Q(name__icontains=query) | Q(template__icontains=query))
    shown = list(kernels.only("name", "template", "config")[start : start + PAGE])
    ids = [kernel.pk for kernel in shown]

    def count(of: str) -> dict[int, int]:
        rows = GeneratedKernel.objects.filter(pk__in=ids).order_by().values_list("pk")
        return dict(rows.annotate(Count(of, distinct=True)))

    nodes, builds, results = count("uses"), count("builds"), count("results")
    rows = tuple(
        KernelRow(
            name=kernel.name,
            url=kernel.get_absolute_url(),
            template=kernel.template,
            config=kernel.config,
            nodes=nodes[kernel.pk],
            builds=builds[kernel.pk],
            results=results[kernel.pk],
        )
        for kernel in shown
    )
    return KernelList(query, kernels.count(), start, rows)
