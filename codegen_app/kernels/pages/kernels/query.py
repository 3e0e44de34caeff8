"""The list of a graph's kernels: shares, times, and use of a device's resources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, QuerySet
from django.urls import reverse

from codegen_app.graphs.models import Graph, TemplateNode
from codegen_app.kernels.models import Build, GeneratedKernel, KernelUse
from codegen_app.kernels.models.build import WITH_FIGURES
from codegen_app.kernels.queries.resource_use import ResourceUse, resource_use
from codegen_app.tuning.models.benchmark_result import BenchmarkResult
from codegen_app.tuning.queries import serving
from codegen_app.tuning.queries.coverage import FEATURED_OF, featured_graph, graph_coverages
from codegen_app.tuning.queries.limits import BOUND_TEXTS
from codegen_app.tuning.queries.measured_columns import format_pairs, resource_columns
from codegen_app.tuning.queries.ranking import KernelRanking, RankedKernel, rank_kernels
from codegen_app.tuning.queries.serving import Bucket
from codegen_app.web.tables import Column, Kind, Table, TableQuery, build_table
from codegen_app.web.templatetags.kiln import us
from scheduler import targets
from scheduler.codegen.languages import language_of
from scheduler.stats.intervals import bounds_of, bounds_text

PAGE_SIZE = 200


@dataclass(frozen=True)
class KernelRow:
    """One kernel in the list. ``url`` is its page, for the longest of its calls if it has any. The
    time is the latest in the page's bucket, for the problem where it takes longest. ``calls`` is
    the number of nodes of the page's graph that it serves, ``total_ns`` the sum of their medians,
    ``share`` its part (0 to 1) of the graph's measured time, ``roofline`` the ratio of their lower
    bound ``least_ns``, which ``bound`` sets, to it (``tuning/queries/ranking.py``).
    ``nodes`` is the number of nodes that it is a candidate for. ``resource_use`` is that of its
    build for ``target``."""

    name: str
    url: str
    language: str
    template: str
    config: dict[str, object]
    nodes: int
    builds: int
    results: int
    rank: int | None = None
    calls: int | None = None
    total_ns: float | None = None
    share: float | None = None
    least_ns: float | None = None
    roofline: float | None = None
    bound: str = ""
    target: str = ""
    device: str = ""
    emulated: bool = False
    sizes: Mapping[str, int] = field(default_factory=dict)
    median_ns: float | None = None
    low_ns: float | None = None
    high_ns: float | None = None
    n: int = 0
    resource_use: ResourceUse | None = None


def _interval(row: KernelRow) -> str:
    if row.low_ns is None or row.high_ns is None or not bounds_of(row.n):
        return "" if row.median_ns is None else f"n = {row.n}: no interval"
    ends = (f"{ns / 1000:,.3f} µs" for ns in (row.low_ns, row.high_ns))
    return f"{bounds_text(row.n, *ends)}, n = {row.n}"


COLUMNS: tuple[Column[KernelRow], ...] = (
    Column("name", "Kernel", lambda row: row.name, Kind.KERNEL, link=lambda row: row.url),
    Column(
        "calls",
        "Calls",
        lambda row: row.calls,
        Kind.WHOLE,
        note="nodes of the graph that use it",
        sparse=True,
    ),
    Column(
        "total",
        "Total",
        lambda row: None if row.total_ns is None else row.total_ns / 1000,
        Kind.TIME,
        "µs",
        "of all calls; ≥: not measured, the lower bound by the roofline",
        emulated=lambda row: row.emulated,
        after=lambda row: f"≥ {us(row.least_ns)}" if row.total_ns is None and row.least_ns else "",
        sparse=True,
    ),
    Column(
        "share",
        "Share",
        lambda row: None if row.share is None else 100 * row.share,
        Kind.SHARE,
        "%",
        "of the sum of medians of the graph",
        sparse=True,
    ),
    Column(
        "roofline",
        "Roofline",
        lambda row: None if row.roofline is None else 100 * row.roofline,
        Kind.SHARE,
        "%",
        "lower bound of the time by the roofline / measured time",
        sparse=True,
    ),
    Column(
        "bound",
        "Roof",
        lambda row: BOUND_TEXTS.get(row.bound),
        note="what sets the lower bound of the roofline",
        sparse=True,
    ),
    Column(
        "time",
        "Median",
        lambda row: None if row.median_ns is None else row.median_ns / 1000,
        Kind.TIME,
        "µs",
        "per launch, for the slowest problem",
        hover=_interval,
        emulated=lambda row: row.emulated,
    ),
    *resource_columns(lambda row: row.resource_use),
    Column(
        "spills",
        "Spills",
        lambda row: (
            None if row.resource_use is None else "spills" if row.resource_use.spills else "none"
        ),
        shown=False,
    ),
    Column(
        "target",
        "Target",
        lambda row: row.target or None,
        note="for registers and occupancy",
        shown=False,
    ),
    Column(
        "device",
        "Device",
        lambda row: row.device or None,
        note="where the time was measured",
        shown=False,
    ),
    Column("sizes", "Sizes", lambda row: format_pairs(row.sizes), Kind.CODE, shown=False),
    Column("template", "Template", lambda row: row.template, shown=False),
    Column("language", "Language", lambda row: row.language, shown=False),
    Column(
        "nodes",
        "Nodes",
        lambda row: row.nodes,
        Kind.WHOLE,
        note="for which it is a candidate",
        shown=False,
    ),
    Column("builds", "Builds", lambda row: row.builds, Kind.WHOLE, shown=False),
    Column("results", "Results", lambda row: row.results, Kind.WHOLE, shown=False),
    Column("config", "Configuration", lambda row: format_pairs(row.config), Kind.CODE),
)
DEFAULT_SORT = "-share"


@dataclass(frozen=True)
class GraphChoice:
    """A graph whose kernels can be listed."""

    id: int
    name: str


@dataclass(frozen=True)
class KernelList:
    """A page of the kernels of one graph out of ``graphs``, whose times are summed in ``ranking``;
    of all graphs, without shares, if it is None. Times are those of ``bucket`` out of ``buckets``,
    registers those of ``target`` out of ``targets``."""

    query: str
    language: str
    languages: tuple[str, ...]
    total: int
    start: int
    graphs: tuple[GraphChoice, ...]
    ranking: KernelRanking | None
    bucket: Bucket | None
    buckets: tuple[Bucket, ...]
    target: str
    targets: tuple[str, ...]
    kernels: tuple[KernelRow, ...]


ALL_GRAPHS = 0


def kernel_list(
    query: TableQuery,
    language: str = "",
    times: str = "",
    target: str = "",
    graph: int | None = None,
) -> tuple[KernelList, Table[KernelRow]]:
    """Return the kernels that the address asks for (20 queries), ``PAGE_SIZE`` at a time, in one
    language if given. ``graph`` is the graph whose candidates are listed, by default the featured
    one, or ``ALL_GRAPHS``. ``times`` names the bucket, ``target`` the one whose builds' registers
    are shown: by default the bucket's own if it is a GPU's, else the one with the most builds."""
    graphs = {row.pk: row for row in Graph.objects.only("name")}
    if graph is None:
        graph = featured_graph(graph_coverages(list(graphs)[:FEATURED_OF]))
    selected = graphs.get(graph) if graph else None
    nodes = TemplateNode.objects.select_related("problem").only(
        *("graph_id", "problem__symbols", "problem__summary", "name", "op", "position", "kind")
    )
    node_buckets = serving.node_buckets(nodes.filter(graph=selected) if selected else nodes)
    bucket = node_buckets.find(times)
    counts = _counts_by(Build.objects.filter(WITH_FIGURES), "target")
    measured_gpu = bucket.target if bucket is not None and _is_gpu(bucket.target) else ""
    if measured_gpu:
        counts.setdefault(measured_gpu, 0)
    if target not in counts:
        gpus = [name for name in counts if _is_gpu(name)]
        most_built = max(gpus or counts, key=lambda name: (counts[name], name), default="")
        target = measured_gpu or most_built
    ranking = None
    if selected is not None:
        served = serving.served_kernels(node_buckets, bucket)
        ranking = rank_kernels(selected, node_buckets, bucket, served)
    rows = _kernel_rows(node_buckets, bucket, target, ranking)
    table = build_table(
        "kernels", COLUMNS, (r for r in rows if language in ("", r.language)), query, PAGE_SIZE
    )
    page = KernelList(
        query=query.filter,
        language=language,
        languages=tuple(sorted({row.language for row in rows})),
        total=table.matching,
        start=table.start,
        graphs=tuple(GraphChoice(row.pk, row.name) for row in graphs.values()),
        ranking=ranking,
        bucket=bucket,
        buckets=node_buckets.buckets,
        target=target,
        targets=tuple(sorted(counts)),
        kernels=tuple(table.rows),
    )
    return page, table


def _kernel_rows(
    node_buckets: serving.NodeBuckets,
    bucket: Bucket | None,
    target: str,
    ranking: KernelRanking | None,
) -> list[KernelRow]:
    """Return the kernels of the ranking's graph, those in use first by their rank, or all kernels
    without a ranking (6 queries)."""
    measured = _kernel_times(node_buckets, bucket)
    built = Build.objects.filter(WITH_FIGURES, target=target).order_by("created_at", "pk")
    resources: dict[int, dict[str, Any]] = {  # of the latest build of each kernel
        kernel: {"target": target, "resource_use": resource_use(figures, target)}
        for kernel, figures in (built.values_list("kernel", "resources") if target else ())
    }
    uses, kernels = KernelUse.objects.all(), GeneratedKernel.objects.order_by("name")
    if ranking is not None:
        uses = uses.filter(template_node__graph=ranking.graph)
        kernels = kernels.filter(pk__in=uses.values("kernel"))
    nodes_of, builds_of, results_of = (
        _counts_by(queryset, "kernel")
        for queryset in (uses, Build.objects.all(), BenchmarkResult.objects.all())
    )
    ranked = {row.kernel: row for row in ranking.kernels} if ranking else {}
    address = reverse("kernel", args=["-"]).removesuffix("-")
    rows = [
        KernelRow(
            name=name,
            url=ranked[name].page_url if name in ranked else f"{address}{name}",
            language=language_of(file),
            template=template,
            config=config,
            nodes=nodes_of.get(pk, 0),
            builds=builds_of.get(pk, 0),
            results=results_of.get(pk, 0),
            **_in_use(ranked.get(name)),
            **measured.get(pk, {}),
            **resources.get(pk, {}),
        )
        for pk, name, template, config, file in kernels.values_list(
            "pk", "name", "template", "config", "source_file"
        )
    ]
    return sorted(rows, key=lambda row: row.rank or len(rows) + 1)


def _is_gpu(target: str) -> bool:
    return target != "cpu" and not targets.find(target).emulates


def _in_use(row: RankedKernel | None) -> dict[str, Any]:
    """Return the fields of a kernel that serves nodes of the graph."""
    if row is None:
        return {}
    return {
        "rank": row.rank,
        "calls": len(row.calls),
        "total_ns": row.total_ns,
        "share": row.share,
        "least_ns": row.least_ns,
        "roofline": row.roofline,
        "bound": row.bound,
    }


def _counts_by(rows: QuerySet[Any], field: str) -> dict[Any, int]:
    return dict(rows.order_by().values_list(field).annotate(Count("pk")))


def _kernel_times(
    node_buckets: serving.NodeBuckets, bucket: Bucket | None
) -> dict[int, dict[str, Any]]:
    """Return the times in the bucket, each for the problem where it is longest (1 query)."""
    if bucket is None:
        return {}
    all_kernels = GeneratedKernel.objects.values_list("pk", flat=True)
    slowest: dict[int, BenchmarkResult] = {}
    for (_, kernel), counts in serving.measurements(
        node_buckets.nodes, bucket, all_kernels
    ).items():
        result = counts.result
        if kernel not in slowest or result.median_ns > slowest[kernel].median_ns:
            slowest[kernel] = result
    return {
        kernel: {
            "device": bucket.device_name,
            "emulated": result.emulated,
            "sizes": bucket.bindings,
            "median_ns": result.median_ns,
            "low_ns": result.low_ns if bounds_of(len(result.samples_ns)) else None,
            "high_ns": result.high_ns if bounds_of(len(result.samples_ns)) else None,
            "n": len(result.samples_ns),
        }
        for kernel, result in slowest.items()
    }
