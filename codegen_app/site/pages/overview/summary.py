"""The overview's summary of one graph: total time, tuning gain, hottest kernel, bottleneck.

Every figure equals that of the page it links to: the graph's sum and its nodes' times from
``serving``, the gain from Compare's own comparison, registers and waves from the list of kernels,
the modelled sentence from its report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from codegen_app.graphs.models import Graph, TemplateNode
from codegen_app.kernels.modelled.rows import modelled_rows_of_builds
from codegen_app.kernels.models import Build, KernelUse
from codegen_app.kernels.pages.compare.verdict import TimeComparison, comparable_times, verdicts
from codegen_app.kernels.queries.resource_use import resource_use
from codegen_app.tuning.queries import serving
from codegen_app.tuning.queries.coverage import Coverage, count_coverage
from codegen_app.tuning.queries.measured_row import MeasuredRow
from codegen_app.tuning.queries.measurements import CurrentMeasurement, measurement_fields
from codegen_app.workers.models import State
from scheduler import targets
from scheduler.isa.occupancy import rules_of


@dataclass(frozen=True)
class NodeCost(MeasuredRow):
    """The hottest node, with the time of the kernel that serves it; ``share`` is its part of the
    graph's measured time. ``selected``: the kernel won a run, it is not the default."""

    id: int
    name: str
    op: str
    url: str
    kernel: str
    kernel_url: str
    share: float
    selected: bool


@dataclass(frozen=True)
class TuningGain:
    """The largest tuning gain at a node: the selected kernel against the default, as Compare shows
    it for the measured builds."""

    node: str
    url: str
    comparison: TimeComparison


@dataclass(frozen=True)
class OccupancyBottleneck:
    """The selected kernel with the lowest number of waves on a device."""

    kernel: str
    url: str
    target: str
    waves: str
    unit: str
    limiter: str
    spills: bool
    is_full: bool


@dataclass(frozen=True)
class ModelledBottleneck:
    """The selected kernel with the longest modelled time, and its main stall. Microseconds at the
    model's low and high ends."""

    kernel: str
    url: str
    board: str
    sizes: Mapping[str, int]
    low_us: float | None
    high_us: float | None
    sentence: str


@dataclass(frozen=True)
class OverviewSummary:
    """The summary of one graph. ``total_ns`` is the sum of the medians of the ``measured`` nodes in
    ``bucket``, None if there is none; ``tuned`` counts nodes with a selected kernel. ``samples``
    are the fewest and the most samples of a time. ``held_on`` is the target of the figures on waves
    and stalls, "" if there are none; ``held_elsewhere``: the times are from another target."""

    graph: int
    name: str
    url: str
    state: str
    bucket: serving.Bucket | None
    measured: Coverage
    total_ns: float | None
    samples: tuple[int, int]
    tuned: int
    learned: TuningGain | None
    top: NodeCost | None
    held_on: str
    held_elsewhere: bool
    narrowest: OccupancyBottleneck | None
    stalled: ModelledBottleneck | None
    drifted: NodeCost | None


def overview_summary(graph: Graph) -> OverviewSummary:
    """Return the summary of one graph in its first bucket, as its own page shows it (13 queries at
    most)."""
    nodes = TemplateNode.objects.filter(graph=graph).select_related("problem")
    node_buckets = serving.node_buckets(
        nodes.defer("problem__text", "rejected").order_by("position")
    )
    bucket = node_buckets.find("")
    served = serving.served_kernels(node_buckets, bucket)
    costs = _costs(node_buckets.nodes, served)
    times = [cost.n for cost in costs]
    builds = _builds(served, bucket)
    held_on = builds[0].target if builds else ""
    return OverviewSummary(
        graph=graph.pk,
        name=graph.name,
        url=graph.get_absolute_url(),
        state=graph.state,
        bucket=bucket,
        measured=count_coverage(
            (
                (node.kind, served[node.pk].measured is not None)
                for node in node_buckets.nodes
                if node.pk in served
            ),
            emulated=bucket is not None and bucket.emulated,
        ),
        total_ns=sum(cost.median_ns or 0.0 for cost in costs) if costs else None,
        samples=(min(times), max(times)) if times else (0, 0),
        tuned=sum(1 for row in served.values() if row.selected),
        learned=_tuning_gain(node_buckets.nodes, served, bucket),
        top=costs[0] if costs else None,
        held_on=held_on,
        held_elsewhere=bool(held_on and bucket and bucket.target != held_on),
        narrowest=_occupancy_bottleneck(builds),
        stalled=_modelled_bottleneck(builds),
        drifted=next((cost for cost in costs if cost.drift and cost.drift.ratio > 1), None),
    )


def _costs(
    nodes: Sequence[TemplateNode], served: Mapping[int, serving.ServedKernel]
) -> tuple[NodeCost, ...]:
    """Return the measured nodes, the longest first."""
    timed = [
        (node, served[node.pk], measured)
        for node in nodes
        if node.pk in served and (measured := served[node.pk].measured) is not None
    ]
    total = sum(measured.result.median_ns for _, _, measured in timed)
    rows = [
        NodeCost(
            id=node.pk,
            name=node.name,
            op=node.op,
            url=node.get_absolute_url(),
            kernel=selection.kernel.name,
            kernel_url=reverse("kernel", args=[selection.kernel.name]),
            share=measured.result.median_ns / total,
            selected=selection.selected,
            **measurement_fields(measured),
        )
        for node, selection, measured in timed
    ]
    return tuple(sorted(rows, key=lambda row: -(row.median_ns or 0.0)))


def _tuning_gain(
    nodes: Sequence[TemplateNode],
    served: Mapping[int, serving.ServedKernel],
    bucket: serving.Bucket | None,
) -> TuningGain | None:
    """Return the largest time saved by a selected kernel over the default, both measured (4
    queries)."""
    tuned = [node for node in nodes if node.pk in served and served[node.pk].selected]
    defaults = dict(
        KernelUse.objects.filter(template_node__in=tuned, is_default=True).values_list(
            "template_node", "kernel"
        )
    )
    before = serving.measurements(tuned, bucket, set(defaults.values()))
    gains: list[tuple[float, TemplateNode, CurrentMeasurement, CurrentMeasurement]] = []
    for node in tuned:
        now = served[node.pk].measured
        then = before.get((node.problem_id or 0, defaults.get(node.pk, 0)))
        if now and then and now.result.build_id != then.result.build_id:
            gains.append((then.result.median_ns - now.result.median_ns, node, then, now))
    if not gains:
        return None
    _, node, then, now = max(gains, key=lambda gain: gain[0])
    keys = (then.result.build_id, now.result.build_id)
    builds = Build.objects.select_related("kernel").defer("log", "kernel__source").in_bulk(keys)
    rows = [builds[key] for key in keys]
    (comparison,) = verdicts(rows, ("the default", "the selected kernel"), comparable_times(rows))
    url = f"{reverse('compare')}?{urlencode({'build': keys}, doseq=True)}"
    return TuningGain(node.name, url, comparison)


def _builds(
    served: Mapping[int, serving.ServedKernel], bucket: serving.Bucket | None
) -> tuple[Build, ...]:
    """Return the latest builds of the selected kernels, for the bucket's target if it is a GPU,
    else for the target with the most builds (1 query)."""
    kernels = {row.kernel.pk for row in served.values()}
    rows = (
        Build.objects.filter(kernel__in=kernels, state=State.DONE)
        .select_related("kernel")
        .only("target", "resources", "code_digest", "kernel__name")
        .order_by("created_at", "pk")
    )
    latest: dict[str, dict[int, Build]] = {}
    for row in rows:
        if not targets.find(row.target).emulates and row.resources:
            latest.setdefault(row.target, {})[row.kernel_id] = row
    if bucket is not None and bucket.target in latest:
        return tuple(latest[bucket.target].values())
    target = max(latest, key=lambda name: (len(latest[name]), name), default="")
    return tuple(latest.get(target, {}).values())


def _occupancy_bottleneck(builds: Sequence[Build]) -> OccupancyBottleneck | None:
    """Return the build with the lowest share of the possible waves."""
    uses = [(use, row) for row in builds if (use := resource_use(row.resources, row.target))]
    if not uses:
        return None
    use, row = min(uses, key=lambda pair: (pair[0].occupancy_percent, pair[1].kernel.name))
    rules = rules_of(targets.find(row.target))
    assert rules is not None, "there are figures by these rules"
    waves, by = rules.waves_heading
    return OccupancyBottleneck(
        kernel=row.kernel.name,
        url=f"{row.kernel.get_absolute_url()}?build={row.pk}",
        target=row.target,
        waves=use.words,
        unit=f"{waves.lower()} {by}",
        limiter=use.limiter,
        spills=use.spills,
        is_full=use.waves >= use.max_waves,
    )


def _modelled_bottleneck(builds: Sequence[Build]) -> ModelledBottleneck | None:
    """Return the longest modelled time (1 query)."""
    rows = [row for row in modelled_rows_of_builds([build.pk for build in builds]) if row.is_shown]
    if not rows:
        return None
    row = max(rows, key=lambda row: row.time_us or 0.0)
    kernel = next(build.kernel.name for build in builds if build.pk == row.build)
    return ModelledBottleneck(
        kernel=kernel,
        url=row.url,
        board=row.board,
        sizes=row.sizes,
        low_us=row.low_us,
        high_us=row.high_us,
        sentence=row.sentence,
    )
