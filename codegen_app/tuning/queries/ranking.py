"""The ranking of a graph's kernels by their part of its time: the one definition, for all pages, of
a kernel's share, of its percentage of the roofline and of what limits it.

A node's time is that of the kernel that serves it (``serving``). A kernel's time is the sum over
its calls, the nodes of the graph that it serves; its share is that of the graph's measured time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from codegen_app.graphs.models import Graph, TemplateNode
from codegen_app.kernels.modelled.rows import ModelledRow, modelled_rows_of_builds
from codegen_app.kernels.models import Build
from codegen_app.kernels.models.build import WITH_FIGURES
from codegen_app.kernels.queries.resource_use import ResourceUse, resource_use
from codegen_app.tuning.queries import serving
from codegen_app.tuning.queries.coverage import Coverage, count_coverage
from codegen_app.tuning.queries.limits import BOUND_TEXTS, works_at
from codegen_app.tuning.queries.measured_row import MeasuredRow
from codegen_app.tuning.queries.measurements import measurement_fields
from codegen_app.web.row import build_row
from scheduler import targets
from scheduler.tuning import roofline

_FIRST = 8


@dataclass(frozen=True)
class Call:
    """A node that a kernel serves. ``median_ns`` is None if it is not measured; ``share`` is its
    part (0 to 1) of the graph's measured time. ``least_ns`` is the lower bound of its time by the
    roofline of the bucket's board, None if board or work is unknown."""

    id: int
    name: str
    url: str
    median_ns: float | None
    share: float | None
    least_ns: float | None

    @property
    def roofline(self) -> float | None:
        """The lower bound as a part of the time, 0 to 1; None if either is unknown."""
        return self.least_ns / self.median_ns if self.least_ns and self.median_ns else None


@dataclass(frozen=True)
class ModelledBottleneck:
    """The newest modelled result of a kernel's build. Microseconds at the model's low and high
    ends."""

    url: str
    target: str
    board: str
    sizes: Mapping[str, int]
    low_us: float | None
    high_us: float | None
    sentence: str


@dataclass(frozen=True)
class RankedKernel(MeasuredRow):
    """A kernel of a graph with its ``calls``, the longest first, of which ``measured`` have a time.
    ``total_ns`` is the sum of these, ``share`` its part (0 to 1) of the graph's measured time; both
    are None if no call is measured. The metrics are those of the longest call.

    ``least_ns`` is the lower bound of the calls' times by the roofline, of the measured ones if
    there are any, and ``roofline`` its ratio to ``total_ns``; ``bound`` is the resource that sets
    it (memory, products). ``page_url`` is its page for the longest call and the build's target.
    ``selected``: the kernel was selected, it is not the default.
    ``resource_use`` and ``modelled`` are those of its build for the ranking's ``built_for``."""

    rank: int
    kernel: str
    url: str
    page_url: str
    op: str
    problem: str
    selected: bool
    calls: tuple[Call, ...]
    measured: int
    total_ns: float | None
    share: float | None
    least_ns: float | None
    roofline: float | None
    bound: str
    build: int | None
    resource_use: ResourceUse | None
    modelled: ModelledBottleneck | None

    @property
    def title(self) -> str:
        """The op of its calls, with the name of the node if there is only one."""
        return f"{self.calls[0].name} {self.op}" if len(self.calls) == 1 else self.op

    @property
    def bound_text(self) -> str:
        """The resource that sets its lower bound; "" if that is unknown."""
        return BOUND_TEXTS.get(self.bound, "")


@dataclass(frozen=True)
class KernelRanking:
    """The kernels of a graph in one bucket: those with a time by their time, then the others by
    their lower bound. ``total_ns`` is the sum of the medians of the ``measured`` nodes, None if
    there are none; ``samples`` are the fewest and the most samples of a median. ``built_for`` is
    the target of the builds, "" if there are none."""

    graph: int
    name: str
    url: str
    bucket: serving.Bucket | None
    measured: Coverage
    total_ns: float | None
    samples: tuple[int, int]
    built_for: str
    kernels: tuple[RankedKernel, ...]

    @property
    def hottest(self) -> RankedKernel | None:
        """The kernel with the largest share; None if none is measured."""
        return next((row for row in self.kernels if row.share is not None), None)

    @property
    def missing(self) -> tuple[RankedKernel, ...]:
        """The kernels without any time, whose calls are not in the sum."""
        return tuple(row for row in self.kernels if row.total_ns is None)

    @property
    def has_occupancy(self) -> bool:
        """Whether the registers and the occupancy of a measured kernel are known."""
        return any(row.resource_use and row.total_ns is not None for row in self.kernels)

    @property
    def first_kernels(self) -> tuple[RankedKernel, ...]:
        """The first rows, for a page that is not about the kernels alone."""
        return self.kernels[:_FIRST]

    @property
    def calls(self) -> dict[int, Call]:
        """The calls by the keys of their nodes."""
        return {call.id: call for row in self.kernels for call in row.calls}

    def find(self, kernel: str) -> RankedKernel | None:
        """Return the row of a kernel; None if it serves no node of the graph."""
        return next((row for row in self.kernels if row.kernel == kernel), None)


def kernel_ranking(graph: Graph, times: str = "") -> KernelRanking:
    """Return the ranking of a graph's kernels in the bucket of that name, else in the graph's first
    (8 queries)."""
    nodes = TemplateNode.objects.filter(graph=graph).select_related("problem")
    node_buckets = serving.node_buckets(
        nodes.defer("problem__text", "rejected").order_by("position")
    )
    bucket = node_buckets.find(times)
    return rank_kernels(graph, node_buckets, bucket, serving.served_kernels(node_buckets, bucket))


def rank_kernels(
    graph: Graph,
    node_buckets: serving.NodeBuckets,
    bucket: serving.Bucket | None,
    served: Mapping[int, serving.ServedKernel],
) -> KernelRanking:
    """Return the ranking of the kernels that serve a graph's nodes in a bucket (3 queries)."""
    nodes = [node for node in node_buckets.nodes if node.pk in served]
    measured = [row.measured.result for row in served.values() if row.measured is not None]
    total_ns = sum(result.median_ns for result in measured) if measured else None
    counts = [len(result.samples_ns) for result in measured]
    limits = _limits(nodes, bucket)
    builds, built_for = _builds({row.kernel.pk for row in served.values()}, bucket)
    modelled = _modelled(builds, bucket)
    nodes_by_kernel: dict[int, list[TemplateNode]] = defaultdict(list)
    for node in nodes:
        nodes_by_kernel[served[node.pk].kernel.pk].append(node)
    rows = [
        _ranked_kernel(of_kernel, served, limits, total_ns, builds.get(pk), modelled.get(pk))
        for pk, of_kernel in nodes_by_kernel.items()
    ]
    rows.sort(key=lambda row: (-(row.total_ns or 0.0), -(row.least_ns or 0.0)))
    return KernelRanking(
        graph=graph.pk,
        name=graph.name,
        url=graph.get_absolute_url(),
        bucket=bucket,
        measured=count_coverage(
            ((node.kind, served[node.pk].measured is not None) for node in nodes),
            emulated=bucket is not None and bucket.emulated,
        ),
        total_ns=total_ns,
        samples=(min(counts), max(counts)) if counts else (0, 0),
        built_for=built_for,
        kernels=tuple(replace(row, rank=rank) for rank, row in enumerate(rows, 1)),
    )


def _ranked_kernel(
    nodes: Sequence[TemplateNode],
    served: Mapping[int, serving.ServedKernel],
    limits: Mapping[int, roofline.Limit],
    graph_ns: float | None,
    build: Build | None,
    modelled: ModelledBottleneck | None,
) -> RankedKernel:
    """Return the row, without its rank, of the kernel that serves these nodes."""
    calls = []
    for node in nodes:
        current, limit = served[node.pk].measured, limits.get(node.pk)
        median_ns = current.result.median_ns if current else None
        calls.append(
            Call(
                id=node.pk,
                name=node.name,
                url=node.get_absolute_url(),
                median_ns=median_ns,
                share=median_ns / graph_ns if median_ns is not None and graph_ns else None,
                least_ns=limit.least_ns if limit else None,
            )
        )
    calls.sort(key=lambda call: (-(call.median_ns or 0.0), -(call.least_ns or 0.0)))
    times = [call.median_ns for call in calls if call.median_ns is not None]
    total_ns = sum(times) if times else None
    bounds = [call.least_ns for call in calls[: len(times) or None]]  # measured calls are first
    least_ns = sum(ns for ns in bounds if ns is not None) if None not in bounds else None
    longest = next(node for node in nodes if node.pk == calls[0].id)
    serves = served[longest.pk]
    return RankedKernel(
        rank=0,
        kernel=serves.kernel.name,
        url=serves.kernel.get_absolute_url(),
        page_url=serves.kernel.page_url(node=longest.pk, target=build.target if build else ""),
        op=longest.op,
        problem=longest.problem.summary if longest.problem else "",
        selected=serves.selected,
        calls=tuple(calls),
        measured=len(times),
        total_ns=total_ns,
        share=total_ns / graph_ns if total_ns is not None and graph_ns else None,
        least_ns=least_ns,
        roofline=least_ns / total_ns if least_ns is not None and total_ns else None,
        bound=limits[longest.pk].bound if longest.pk in limits else "",
        build=build.pk if build else None,
        resource_use=resource_use(build.resources, build.target) if build else None,
        modelled=modelled,
        **measurement_fields(serves.measured),
    )


def _limits(
    nodes: Sequence[TemplateNode], bucket: serving.Bucket | None
) -> dict[int, roofline.Limit]:
    """Return the roofline's limits of nodes by their keys (1 query): none for the emulation, and
    for a device that is not in the table of boards."""
    if bucket is None or bucket.emulated:
        return {}
    board = targets.board_of(bucket.target, bucket.device_name)
    if board is None:
        return {}
    works = works_at({node.problem_id for node in nodes if node.problem_id}, bucket.bindings)
    return {
        node.pk: roofline.limit(works[node.problem_id], board)
        for node in nodes
        if node.problem_id in works
    }


def _builds(
    kernels: Collection[int], bucket: serving.Bucket | None
) -> tuple[dict[int, Build], str]:
    """Return the latest builds by kernel for the bucket's target if it is a GPU, else for the
    target with the most builds, and that target (1 query)."""
    rows = (
        Build.objects.filter(WITH_FIGURES, kernel__in=kernels)
        .only("target", "resources", "kernel")
        .order_by("created_at", "pk")
    )
    latest: dict[str, dict[int, Build]] = {}
    for row in rows:
        if not targets.find(row.target).emulates and row.resources:
            latest.setdefault(row.target, {})[row.kernel_id] = row
    if bucket is not None and bucket.target in latest:
        return latest[bucket.target], bucket.target
    target = max(latest, key=lambda name: (len(latest[name]), name), default="")
    return latest.get(target, {}), target


def _modelled(
    builds: Mapping[int, Build], bucket: serving.Bucket | None
) -> dict[int, ModelledBottleneck]:
    """Return the newest modelled result of each kernel, preferably at the bucket's sizes (1
    query)."""
    kernels = {build.pk: kernel for kernel, build in builds.items()}
    rows: dict[int, ModelledRow] = {}
    for row in modelled_rows_of_builds(kernels):
        known = rows.setdefault(row.build, row)
        if bucket and dict(row.sizes) == bucket.bindings != dict(known.sizes):
            rows[row.build] = row
    return {kernels[pk]: build_row(ModelledBottleneck, row) for pk, row in rows.items()}
