"""Retunes and remeasurements of an alert: what is possible, what was requested, and the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from django.db.models import Max, Min

from codegen_app.tracking.bisecting import walk
from codegen_app.tracking.models import (
    Alert,
    AlertRun,
    Bisection,
    BisectionMeans,
    BisectionStep,
    Change,
    MeasurementRequest,
    RemeasuredPoint,
    Remeasurement,
)
from codegen_app.tracking.queries.remeasurable import (
    MAX_SERIES,
    blocked_reason,
    changes_of,
    device_models,
    own_series,
    points_with_builds,
    retune_outlook,
)
from codegen_app.tracking.queries.revision_links import RevisionLinks, revision_links
from codegen_app.tuning.models import Candidate
from codegen_app.web.row import build_row
from codegen_app.workers.live_queues import RepositoryBuilders, repository_builders
from codegen_app.workers.models import OPEN_STATES, State
from scheduler.stats.intervals import Bounds, bounds_of
from scheduler.track.ratios import ratio_of_sums

MAX_SHOWN = 50
MAX_BISECTIONS = 5
_TIMED_STEPS = 20


@dataclass(frozen=True)
class Offer:
    """The number of series for which an action is possible, and each distinct reason why it is not
    possible for the others."""

    series: int
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class BisectOption(Offer):
    """Means of a bisection, and what they involve for the largest change for which they are
    possible."""

    means: str
    title: str
    note: str


@dataclass(frozen=True)
class RunRow:
    """A tuning run that was started from the alert. ``decision`` is what decided on its fastest
    kernel, and whether it was selected."""

    id: int
    url: str
    series: str
    state: str
    decision: str


@dataclass(frozen=True)
class PointRow:
    """A remeasured build: its revision and its side of the change. ``value`` is None if there is
    none, for the ``reason``; ``original`` is the previous value, None for a build between the
    sides, for which the series has no point."""

    revision: str
    side: str
    kernel: str
    original: float | None
    value: float | None
    low: float | None
    high: float | None
    n: int
    reason: str

    @property
    def bounds(self) -> Bounds:
        """The meaning of ``low`` and ``high``."""
        return bounds_of(self.n)


@dataclass(frozen=True)
class RemeasurementRow:
    """Both sides of a change, measured in turns. ``ratio`` is after / before in that one
    environment with its 95% interval; None if there are too few samples."""

    id: int
    series: str
    series_id: int
    unit: str
    device: str
    state: str
    reason: str
    is_open: bool
    samples: int
    samples_due: int
    finished_at: datetime | None
    ratio: float | None
    low: float | None
    high: float | None
    n_before: int
    n_after: int
    points: tuple[PointRow, ...]


@dataclass(frozen=True)
class RequestRow:
    """A revision requested from the senders of a series."""

    series: str
    revision: str
    state: str
    asked_at: datetime
    answered_at: datetime | None


@dataclass(frozen=True)
class BisectedRevision:
    """A revision of a bisection's window, its ends included, that was measured, requested or
    skipped. ``ratio`` is its
    median over the level before. If a worker builds it, ``build`` is the state of that work and
    ``log`` the end of the command's output."""

    revision: str
    at: datetime | None
    state: str
    ratio: float | None
    n: int
    reason: str
    request: int | None
    build: str
    worker: str
    log: str


@dataclass(frozen=True)
class BisectionRow:
    """The search for the revision that made a change. ``suspects`` of ``revisions`` may have made
    it; ``culprit`` did. ``ratio`` is that of the change. ``waiting`` says why no worker builds the
    next revision now."""

    id: int
    series: str
    series_id: int
    state: str
    is_open: bool
    means: str
    good: str
    bad: str
    ratio: float
    culprit: str
    culprit_url: str
    reason: str
    waiting: str
    limit: int
    measured: int
    suspects: int
    revisions: int
    steps: tuple[BisectedRevision, ...]


@dataclass(frozen=True)
class AlertActions:
    """The actions of one alert. ``retune_on`` says what a run can measure now, for each device of
    its series; ``open_requests`` can be withdrawn, unlike those of bisections; ``is_open``:
    something is still pending."""

    alert_id: int
    title: str
    retune: Offer
    retune_on: tuple[str, ...]
    again: Offer
    senders: Offer
    bisect: tuple[BisectOption, ...]
    bisect_limit: int
    runs: tuple[RunRow, ...]
    measured: tuple[RemeasurementRow, ...]
    bisections: tuple[BisectionRow, ...]
    requests: tuple[RequestRow, ...]
    open_requests: int
    is_open: bool

    @property
    def can_bisect(self) -> bool:
        """Whether a bisection is possible by any means."""
        return any(option.series for option in self.bisect)


def alert_actions(pk: int) -> AlertActions:
    """Return an alert's actions by its number (16 queries, 5 more for each of
    the latest bisections). Raises ``Alert.DoesNotExist``."""
    alert = Alert.objects.select_related("revision", "good_revision", "series").get(pk=pk)
    changes = changes_of(alert)
    tunable = own_series(alert, changes)
    series = {change.series_id: change.series for change in changes}
    if alert.series is not None:
        series[alert.series.pk] = alert.series
    sent = [row for row in series.values() if row.own_problem_id is None]
    generated = sum(row.is_generated for row in sent)
    runs = AlertRun.objects.filter(alert=alert).select_related("run", "series").order_by("-pk")
    shown_runs = list(runs[:MAX_SHOWN])
    chosen = Candidate.objects.filter(task__run__in=[row.run_id for row in shown_runs], chosen=True)
    decisions = dict(chosen.order_by("-pk").values_list("task__run", "reason"))
    run_rows = tuple(
        RunRow(
            id=row.run_id,
            url=row.run.get_absolute_url(),
            series=row.series.problem,
            state=row.run.state,
            decision=decisions.get(row.run_id, ""),
        )
        for row in shown_runs
    )
    remeasured, models = _remeasurement_rows(alert), device_models()
    requests = list(
        MeasurementRequest.objects.filter(alert=alert, build__isnull=True)
        .select_related("series", "revision")
        .order_by("-pk")[:MAX_SHOWN]
    )
    request_rows = tuple(
        RequestRow(
            series=row.series.problem,
            revision=str(row.revision),
            state="open" if row.is_open else "answered" if row.answered_at else "withdrawn",
            asked_at=row.created_at,
            answered_at=row.answered_at,
        )
        for row in requests
    )
    builders = repository_builders()
    bisections = _bisection_rows(alert, builders)
    return AlertActions(
        alert_id=pk,
        title=str(alert),
        retune=Offer(
            len(tunable), () if tunable else ("no series of this alert is measured here",)
        ),
        retune_on=tuple(dict.fromkeys(retune_outlook(row, models) for row in tunable)),
        again=_remeasurement_offer(changes, models),
        senders=Offer(
            len(sent) - generated, ("generated series cannot be measured",) if generated else ()
        ),
        bisect=_bisect_options(alert, changes[:MAX_SERIES], builders),
        bisect_limit=walk.DEFAULT_LIMIT,
        runs=run_rows,
        measured=remeasured,
        bisections=bisections,
        requests=request_rows,
        open_requests=sum(row.is_open and row.bisection_id is None for row in requests),
        is_open=any(row.state in OPEN_STATES for row in run_rows)
        or any(row.is_open for row in remeasured)
        or any(row.is_open for row in bisections),
    )


def _remeasurement_offer(changes: Sequence[Change], models: set[tuple[str, str]]) -> Offer:
    """Count our own series that can be remeasured on these device models (1 query)."""
    ours = [change for change in changes[:MAX_SERIES] if change.series.own_problem_id is not None]
    spans = points_with_builds([change.series_id for change in ours]).order_by().values("series")
    ends = {
        row["series"]: (row["first"], row["last"])
        for row in spans.annotate(first=Min("at"), last=Max("at"))
    }
    obstacles = []
    for change in ours:
        first, last = ends.get(change.series_id, (None, None))
        has_before = first is not None and first < change.at
        has_after = last is not None and last >= change.at
        obstacles.append(blocked_reason(change.series, has_before, has_after, models))
    return Offer(obstacles.count(""), tuple(dict.fromkeys(filter(None, obstacles))))


def _bisect_options(
    alert: Alert, changes: Sequence[Change], builders: Mapping[str, RepositoryBuilders]
) -> tuple[BisectOption, ...]:
    """Return the means of a bisection, those that measure first (4 queries)."""
    options = []
    for means in (BisectionMeans.WORKER, BisectionMeans.SENDERS, BisectionMeans.RECORDED):
        reasons = [walk.blocked_reason(alert, change, means, builders) for change in changes]
        first = next(
            (row for row, reason in zip(changes, reasons, strict=True) if not reason), None
        )
        note = ""
        count = walk.count_between(alert, first) if first is not None else 0
        if first is not None and not count and alert.good_revision is not None:
            reasons = [f"no revision between {alert.good_revision} and {alert.revision} is known"]
        elif first is not None and means is not BisectionMeans.RECORDED:
            revisions = f"{count} revision{'' if count == 1 else 's'}"
            note = f"measures about {count.bit_length()} of {revisions} in between"
            if means is BisectionMeans.WORKER:
                repository = first.revision.repository
                note += "; " + _builders_note(repository, builders[repository])
        options.append(
            BisectOption(
                series=reasons.count(""),
                reasons=tuple(dict.fromkeys(filter(None, reasons))),
                means=means.value,
                title=str(means.label),
                note=note,
            )
        )
    return tuple(options)


def _builders_note(repository: str, builders: RepositoryBuilders) -> str:
    """Return who builds a repository's revisions, and how long one takes (1 query)."""
    done = BisectionStep.objects.filter(
        request__revision__repository=repository, state=State.DONE, started_at__isnull=False
    )
    times = [
        (row.finished_at - row.started_at).total_seconds() / 60
        for row in done.only("started_at", "finished_at")[:_TIMED_STEPS]
        if row.finished_at and row.started_at
    ]
    took = f" (median of the last {len(times)}: {np.median(times):.1f} min)" if times else ""
    return f"{', '.join(builders.workers)}: at most {builders.minutes} min per revision{took}"


def _bisection_rows(
    alert: Alert, builders: Mapping[str, RepositoryBuilders]
) -> tuple[BisectionRow, ...]:
    bisections = Bisection.objects.filter(alert=alert)
    rows = list(bisections.select_related("series", "good", "bad", "culprit")[:MAX_BISECTIONS])
    links = revision_links(row.culprit for row in rows) if rows else RevisionLinks({})
    return tuple(_bisection_row(row, links, builders) for row in rows)


def _bisection_row(
    row: Bisection, links: RevisionLinks, builders: Mapping[str, RepositoryBuilders]
) -> BisectionRow:
    window = walk.window_of(row)
    requests = dict(
        MeasurementRequest.objects.filter(bisection=row, answered_at=None, withdrawn_at=None)
        .order_by("pk")
        .values_list("revision", "pk")
    )
    builds = {
        step.request.revision_id: step
        for step in BisectionStep.objects.filter(bisection=row)
        .select_related("request")
        .order_by("pk")
    }
    shown = [
        BisectedRevision(
            revision=str(part.revision),
            at=part.revision.at,
            state=_revision_state(part, part.revision.pk in requests),
            ratio=float(np.median(part.values)) / row.before if part.values else None,
            n=len(part.values),
            reason=part.skipped,
            request=requests.get(part.revision.pk),
            build=step.state if step else "",
            worker=step.worker if step else "",
            log=step.detail if step else "",
        )
        for part in window
        for step in (builds.get(part.revision.pk),)
        if part.values or part.skipped or part.revision.pk in requests
    ]
    culprit, repository = row.culprit, row.bad.repository
    is_built = row.is_open and row.means == BisectionMeans.WORKER
    return build_row(
        BisectionRow,
        row,
        series=row.series.problem,
        means=BisectionMeans(row.means).label,
        good=str(row.good),
        bad=str(row.bad),
        ratio=row.after / row.before,
        waiting=(
            f"no worker that builds {repository} is online"
            if is_built and repository not in builders
            else ""
        ),
        culprit=str(culprit) if culprit else "",
        culprit_url=links.commit(culprit) if culprit else "",
        measured=sum(part.side is not None for part in window[1:-1]),
        suspects=len(walk.remaining(window)),
        revisions=len(window) - 1,
        steps=tuple(shown),
    )


def _revision_state(part: walk.WindowRevision, is_requested: bool) -> str:
    if part.skipped:
        return "skipped"
    if is_requested:
        return "requested"
    return part.side.value if part.side else "requested"


def _remeasurement_rows(alert: Alert) -> tuple[RemeasurementRow, ...]:
    rows = Remeasurement.objects.filter(alert=alert).select_related("series")[:MAX_SHOWN]
    points: dict[int, list[RemeasuredPoint]] = {row.pk: [] for row in rows}
    related = ("original__revision", "original__kernel", "datum")
    for point in RemeasuredPoint.objects.filter(remeasurement__in=points).select_related(*related):
        points[point.remeasurement_id].append(point)
    found = []
    for row in rows:
        before, after = (
            [
                sample
                for point in points[row.pk]
                if point.datum is not None and point.side(row) == side
                for sample in point.datum.samples or ()
                if sample > 0
            ]
            for side in ("before", "after")
        )
        measured = ratio_of_sums([before], [after])
        found.append(
            build_row(
                RemeasurementRow,
                row,
                series=row.series.problem,
                unit=row.series.unit,
                device=row.series.device_name,
                ratio=measured.ratio if measured else None,
                low=measured.low if measured else None,
                high=measured.high if measured else None,
                n_before=len(before),
                n_after=len(after),
                points=tuple(
                    PointRow(
                        revision=str(point.original.revision),
                        side=point.side(row),
                        kernel=point.original.kernel.name if point.original.kernel else "",
                        original=(
                            point.original.value
                            if point.original.series_id == row.series_id
                            else None
                        ),
                        value=point.datum.value if point.datum else None,
                        low=point.datum.low if point.datum else None,
                        high=point.datum.high if point.datum else None,
                        n=point.datum.n if point.datum else 0,
                        reason=point.reason,
                    )
                    for point in points[row.pk]
                ),
            )
        )
    return tuple(found)
