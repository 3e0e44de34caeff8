"""The list of kernels: their times and their use of a device's resources."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, QuerySet
from django.urls import reverse

from codegen_app.graphs.models import TemplateNode
from codegen_app.kernels.models import Build, GeneratedKernel, KernelUse
from codegen_app.kernels.queries.resource_use import ResourceUse, resource_use
from codegen_app.tuning.models.benchmark_result import BenchmarkResult
from codegen_app.tuning.queries import serving
from codegen_app.tuning.queries.measured_columns import format_pairs, resource_columns
from codegen_app.tuning.queries.serving import Bucket
from codegen_app.web.tables import Column, Kind, Table, TableQuery, build_table
from codegen_app.workers.models import State
from scheduler import targets
from scheduler.codegen.languages import language_of
from scheduler.stats.intervals import bounds_of, bounds_text

PAGE_SIZE = 200


@dataclass(frozen=True)
class KernelRow:
    """One kernel in the list. The time is the latest in the page's bucket, for the problem where it
    takes longest; ``share`` is its part (0 to 1) of the measured time of the graph ``share_of``,
    which it serves. ``resource_use`` is that of its build for ``target``."""

    name: str
    url: str
    language: str
    template: str
    config: dict[str, object]
    nodes: int
    builds: int
    results: int
    target: str = ""
    device: str = ""
    emulated: bool = False
    sizes: Mapping[str, int] = field(default_factory=dict)
    median_ns: float | None = None
    low_ns: float | None = None
    high_ns: float | None = None
    n: int = 0
    share: float | None = None
    share_of: str = ""
    resource_use: ResourceUse | None = None


def _interval(row: KernelRow) -> str:
    if row.low_ns is None or row.high_ns is None or not bounds_of(row.n):
        return "" if row.median_ns is None else f"n = {row.n}: no interval"
    ends = (f"{ns / 1000:,.3f} µs" for ns in (row.low_ns, row.high_ns))
    return f"{bounds_text(row.n, *ends)}, n = {row.n}"


COLUMNS: tuple[Column[KernelRow], ...] = (
    Column("name", "Kernel", lambda row: row.name, Kind.KERNEL, link=lambda row: row.url),
    Column(
        "share",
        "Share",
        lambda row: None if row.share is None else 100 * row.share,
        Kind.SHARE,
        "%",
        "of the measured time of the graph that selects it",
        hover=lambda row: f"of {row.share_of}" if row.share_of else "",
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
    Column("target", "Target", lambda row: row.target or None, note="for registers and occupancy"),
    Column("device", "Device", lambda row: row.device or None, note="where the time was measured"),
    Column("sizes", "Sizes", lambda row: format_pairs(row.sizes), Kind.CODE, shown=False),
    Column("template", "Template", lambda row: row.template),
    Column("language", "Language", lambda row: row.language, shown=False),
    Column("nodes", "Nodes", lambda row: row.nodes, Kind.WHOLE, note="for which it is a candidate"),
    Column("builds", "Builds", lambda row: row.builds, Kind.WHOLE, shown=False),
    Column("results", "Results", lambda row: row.results, Kind.WHOLE, shown=False),
    Column("config", "Configuration", lambda row: format_pairs(row.config), Kind.CODE),
)
DEFAULT_SORT = "-share"


@dataclass(frozen=True)
class KernelList:
    """A page of kernels. Times are those of ``bucket`` out of ``buckets``, registers those of
    ``target`` out of ``targets``."""

    query: str
    language: str
    languages: tuple[str, ...]
    total: int
    start: int
    bucket: Bucket | None
    buckets: tuple[Bucket, ...]
    target: str
    targets: tuple[str, ...]
    kernels: tuple[KernelRow, ...]


def kernel_list(
    query: TableQuery, language: str = "", times: str = "", target: str = ""
) -> tuple[KernelList, Table[KernelRow]]:
    """Return the kernels that the address asks for (12 queries), ``PAGE_SIZE`` at a time, in one
    language if given. ``times`` names the bucket, ``target`` the one whose builds' registers are
    shown: by default the bucket's own if it is a GPU's, else the one with the most builds."""
    nodes = TemplateNode.objects.select_related("problem", "graph").only(
        *("problem__symbols", "graph__name", "name", "position", "kind")
    )
    node_buckets = serving.node_buckets(nodes)
    bucket = node_buckets.find(times)
    counts = _counts_by(Build.objects.filter(state=State.DONE), "target")
    if target not in counts:
        gpus = [name for name in counts if not targets.find(name).emulates and name != "cpu"]
        default_target = max(gpus or counts, key=lambda name: (counts[name], name), default="")
        target = bucket.target if bucket is not None and bucket.target in gpus else default_target
    costs = _costs(node_buckets, bucket)
    measured = _kernel_times(node_buckets, bucket)
    built = Build.objects.filter(target=target, state=State.DONE).order_by("created_at", "pk")
    resources: dict[int, dict[str, Any]] = {  # of the latest build of each kernel
        kernel: {"target": target, "resource_use": resource_use(figures, target)}
        for kernel, figures in (built.values_list("kernel", "resources") if target else ())
    }
    nodes_of, builds_of, results_of = (
        _counts_by(queryset, "kernel")
        for queryset in (
            KernelUse.objects.all(),
            Build.objects.all(),
            BenchmarkResult.objects.all(),
        )
    )
    kernels = GeneratedKernel.objects.order_by("name").values_list(
        "pk", "name", "template", "config", "source_file"
    )
    address = reverse("kernel", args=["-"]).removesuffix("-")
    rows = [
        KernelRow(
            name=name,
            url=f"{address}{name}",
            language=language_of(file),
            template=template,
            config=config,
            nodes=nodes_of.get(pk, 0),
            builds=builds_of.get(pk, 0),
            results=results_of.get(pk, 0),
            **measured.get(pk, {}),
            **costs.get(pk, {}),
            **resources.get(pk, {}),
        )
        for pk, name, template, config, file in kernels
    ]
    table = build_table(
        "kernels", COLUMNS, (r for r in rows if language in ("", r.language)), query, PAGE_SIZE
    )
    languages = tuple(sorted({row.language for row in rows}))
    page = KernelList(
        query=query.filter,
        language=language,
        languages=languages,
        total=table.matching,
        start=table.start,
        bucket=bucket,
        buckets=node_buckets.buckets,
        target=target,
        targets=tuple(sorted(counts)),
        kernels=tuple(table.rows),
    )
    return page, table


def _counts_by(rows: QuerySet[Any], field: str) -> dict[Any, int]:
    return dict(rows.order_by().values_list(field).annotate(Count("pk")))


def _costs(node_buckets: serving.NodeBuckets, bucket: Bucket | None) -> dict[int, dict[str, Any]]:
    """Return each kernel's largest part of a graph's measured time, with that graph (2 queries)."""
    spent: dict[tuple[int, int], float] = defaultdict(float)
    totals: dict[int, float] = defaultdict(float)
    graphs = {node.pk: node.graph for node in node_buckets.nodes}
    for node, served in serving.served_kernels(node_buckets, bucket).items():
        if served.measured is not None:
            graph, median_ns = graphs[node].pk, served.measured.result.median_ns
            spent[served.kernel.pk, graph] += median_ns
            totals[graph] += median_ns
    names = {graph.pk: graph.name for graph in graphs.values()}
    largest: dict[int, dict[str, Any]] = {}
    for (kernel, graph), ns in spent.items():
        share = ns / totals[graph]
        if share > largest.get(kernel, {"share": 0.0})["share"]:
            largest[kernel] = {"share": share, "share_of": names[graph]}
    return largest


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
