"""The overview's summary of one graph: total time, ranking of kernels, tuning gain, bottleneck and
regressions.

Every figure equals that of the page it links to: sum, shares and the modelled sentence come from
``ranking``, the gain from Compare's own comparison, the regressions from their alerts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from codegen_app.graphs.models import Graph, TemplateNode
from codegen_app.kernels.models import Build, KernelUse
from codegen_app.kernels.pages.compare.verdict import TimeComparison, comparable_times, verdicts
from codegen_app.site.pages.overview.changes import OpenAlert, graph_regressions
from codegen_app.tuning.queries import serving
from codegen_app.tuning.queries.measurements import CurrentMeasurement
from codegen_app.tuning.queries.ranking import KernelRanking, RankedKernel, rank_kernels
from scheduler import targets
from scheduler.isa.occupancy import rules_of


@dataclass(frozen=True)
class TuningGain:
    """The largest tuning gain at a node: the selected kernel against the default, as Compare shows
    it for the measured builds."""

    node: str
    url: str
    comparison: TimeComparison


@dataclass(frozen=True)
class OccupancyBottleneck:
    """The kernel in use with the lowest number of waves on a device."""

    kernel: str
    url: str
    target: str
    waves: str
    unit: str
    limiter: str
    spills: bool
    is_full: bool


@dataclass(frozen=True)
class OverviewSummary:
    """The summary of one graph, of whose nodes ``tuned`` have a selected kernel. ``elsewhere``: the
    kernels are built for another target than that of the times. ``narrowest`` has the lowest
    occupancy; ``modelled`` is the first of the ranking with a modelled result, ``drifted`` the
    first that became slower without a change of its code. ``regressions`` are open alerts of the
    graph's own problems, the most urgent first."""

    state: str
    ranking: KernelRanking
    tuned: int
    gain: TuningGain | None
    elsewhere: bool
    narrowest: OccupancyBottleneck | None
    modelled: RankedKernel | None
    drifted: RankedKernel | None
    regressions: tuple[OpenAlert, ...]

    @property
    def current_regressions(self) -> tuple[OpenAlert, ...]:
        """The regressions that have not recovered."""
        return tuple(alert for alert in self.regressions if not alert.recovered)


def overview_summary(graph: Graph) -> OverviewSummary:
    """Return the summary of one graph in its first bucket, as its own page shows it (14 queries at
    most)."""
    nodes = TemplateNode.objects.filter(graph=graph).select_related("problem")
    node_buckets = serving.node_buckets(
        nodes.defer("problem__text", "rejected").order_by("position")
    )
    bucket = node_buckets.find("")
    served = serving.served_kernels(node_buckets, bucket)
    ranking = rank_kernels(graph, node_buckets, bucket, served)
    slower = (row for row in ranking.kernels if row.drift and row.drift.ratio > 1)
    return OverviewSummary(
        state=graph.state,
        ranking=ranking,
        tuned=sum(row.selected for row in served.values()),
        gain=_tuning_gain(node_buckets.nodes, served, bucket),
        elsewhere=bool(ranking.built_for and bucket and bucket.target != ranking.built_for),
        narrowest=_occupancy_bottleneck(ranking.kernels),
        modelled=next((row for row in ranking.kernels if row.modelled), None),
        drifted=next(slower, None),
        regressions=graph_regressions(graph.pk),
    )


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


def _occupancy_bottleneck(kernels: Sequence[RankedKernel]) -> OccupancyBottleneck | None:
    """Return the kernel with the lowest share of the possible waves."""
    uses = [(row.resource_use, row) for row in kernels if row.resource_use is not None]
    if not uses:
        return None
    use, row = min(uses, key=lambda pair: (pair[0].occupancy_percent, pair[1].kernel))
    rules = rules_of(targets.find(use.target))
    assert rules is not None, "there are figures by these rules"
    waves, by = rules.waves_heading
    return OccupancyBottleneck(
        kernel=row.kernel,
        url=f"{row.url}?build={row.build}",
        target=use.target,
        waves=use.words,
        unit=f"{waves.lower()} {by}",
        limiter=use.limiter,
        spills=use.spills,
        is_full=use.waves >= use.max_waves,
    )
