"""The overview: where to start, a graph's summary and the next step, then recent changes, runs,
graphs and rejections, and the workers."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count
from django.urls import reverse

from codegen_app.graphs.models import Graph
from codegen_app.graphs.pages.graphs.query import GraphRow, graph_rows
from codegen_app.kernels.models import Build
from codegen_app.site.pages.figures.query import KindHere, kinds_here
from codegen_app.site.pages.overview.changes import OpenAlert, OverviewChanges, overview_changes
from codegen_app.site.pages.overview.next_step import FirstStep, NextStep, first_steps, next_step
from codegen_app.site.pages.overview.start import (
    WorkInProgress,
    explained_regression,
    work_in_progress,
)
from codegen_app.site.pages.overview.summary import OverviewSummary, overview_summary
from codegen_app.tuning.models import Candidate, TuningRun
from codegen_app.tuning.pages.runs.query import RunRow, is_open, run_rows
from codegen_app.tuning.queries.coverage import FEATURED_OF, featured_graph
from codegen_app.workers.models import State
from codegen_app.workers.rows import WorkerRow, worker_rows

_REJECTED = (State.REJECTED, State.QUARANTINED)


@dataclass(frozen=True)
class RejectionCount:
    """A reason for which builds or candidates were rejected, and its count."""

    what: str
    stage: str
    reason: str
    count: int


@dataclass(frozen=True)
class OfferedGraph:
    """The default graph, offered in place of the displayed one because it is newer, or because the
    displayed one has no time."""

    id: int
    name: str
    url: str
    is_newer: bool


@dataclass(frozen=True)
class Overview:
    """The first page. ``summary`` is that of the requested graph, else of the default one
    (``featured_graph``); ``offered`` is set if another was requested. ``first_steps`` are those of
    a site without any time. ``kinds`` are the kinds of figures that the site has. ``regression`` is
    one to read first, ``run`` the newest finished run with measurements."""

    summary: OverviewSummary | None
    offered: OfferedGraph | None
    kinds: tuple[KindHere, ...]
    regression: OpenAlert | None
    run: RunRow | None
    work: tuple[WorkInProgress, ...]
    is_worker_online: bool
    next_step: NextStep | None
    first_steps: tuple[FirstStep, ...]
    graphs: tuple[GraphRow, ...]
    runs: tuple[RunRow, ...]
    workers: tuple[WorkerRow, ...]
    rejections: tuple[RejectionCount, ...]
    changes: OverviewChanges


def overview(graph: int | None = None) -> Overview:
    """Return everything on the first page (33 queries, 3 more if a gain is shown)."""
    rows = graph_rows(Graph.objects.all()[:FEATURED_OF])
    workers, changes = worker_rows(), overview_changes()
    is_worker_online = any(row.alive for row in workers)
    runs = run_rows(TuningRun.objects.all()[:12])
    featured = featured_graph({row.id: row.measured for row in rows})
    offered = next((row for row in rows if row.id == featured), None)
    keys = [key for key in (graph, featured) if key is not None]
    graphs = Graph.objects.only("name", "state", "digest").filter(pk__in=keys)
    selected = sorted(graphs, key=lambda row: row.pk != graph)
    summary = overview_summary(selected[0]) if selected else None
    # The most frequent rejections of configurations that the legality rules allowed.
    rejections = []
    for what, rejected in (
        ("build", Build.objects.filter(state__in=_REJECTED)),
        ("measurement", Candidate.objects.filter(state__in=_REJECTED).exclude(stage="rule")),
    ):
        counted = rejected.order_by().values("stage", "reason").annotate(count=Count("pk"))
        rejections += [
            RejectionCount(what, row["stage"], row["reason"], row["count"])
            for row in counted.order_by("-count", "reason")[:6]
        ]
    return Overview(
        summary=summary,
        offered=_offered_graph(rows, offered, summary),
        kinds=tuple(row for row in kinds_here() if row.sources),
        regression=explained_regression(changes.worst_regressions),
        run=next((run for run in runs if not is_open(run.state) and run.progress.done), None),
        work=work_in_progress(rows, runs, is_worker_online=is_worker_online),
        is_worker_online=is_worker_online,
        next_step=next_step(summary, workers),
        first_steps=first_steps(summary),
        graphs=rows,
        runs=runs,
        workers=workers,
        rejections=tuple(rejections),
        changes=changes,
    )


def _offered_graph(
    rows: tuple[GraphRow, ...], offered: GraphRow | None, summary: OverviewSummary | None
) -> OfferedGraph | None:
    """Return the graph offered to a reader of another one; ``rows`` are the newest graphs first."""
    if offered is None or summary is None or not offered.measured.measured:
        return None
    order, shown = [row.id for row in rows], summary.ranking
    is_newer = shown.graph not in order or order.index(offered.id) < order.index(shown.graph)
    if offered.id == shown.graph or not (is_newer or not shown.measured.measured):
        return None
    return OfferedGraph(offered.id, offered.name, reverse("overview"), is_newer)
