"""The walk of a bisection: request a revision, judge its points, narrow the window, repeat.

Its state is in rows: the revisions of the window, their points, and one open request at most. So a
step needs nothing but the bisection's number, and may be repeated after a crash.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from codegen_app.accounts import audit
from codegen_app.tracking.bisecting.commits import add_commits, trunk_commits
from codegen_app.tracking.models import (
    Alert,
    Bisection,
    BisectionMeans,
    BisectionState,
    BisectionStep,
    Change,
    Datum,
    MeasurementRequest,
    Revision,
    SkippedRevision,
)
from codegen_app.tracking.queries.remeasurable import changes_of
from codegen_app.workers import queue, work
from codegen_app.workers.live_queues import repository_builders
from codegen_app.workers.models import OPEN_STATES, State
from scheduler.errors import UserError
from scheduler.track.bisect import MAX_VALUES, Levels, Side, levels_of, side_of, suspects

DEFAULT_LIMIT, MAX_LIMIT = 20, 200
MAX_REVISIONS = 5_000
_SIDE_POINTS = 30


@dataclass(frozen=True)
class WindowRevision:
    """A revision of a bisection's window: its side, None if it has no values yet; ``values`` in the
    series' unit; ``skipped`` says why it cannot be measured, "" if it can."""

    revision: Revision
    side: Side | None
    values: tuple[float, ...] = ()
    skipped: str = ""


@transaction.atomic
def start(
    alert: Alert,
    limit: int,
    actor: AbstractBaseUser | None,
    means: BisectionMeans = BisectionMeans.SENDERS,
) -> Bisection:
    """Bisect the largest change of an alert whose revisions in between can be measured by these
    means; return the open bisection if there is one. Raises ``UserError``."""
    if not 1 <= limit <= MAX_LIMIT:
        raise UserError(f"limit: {limit} is not between 1 and {MAX_LIMIT} revisions")
    ends = ("revision", "good_revision")
    alert = Alert.objects.select_for_update(of=("self",)).select_related(*ends).get(pk=alert.pk)
    running = Bisection.objects.filter(alert=alert, state=BisectionState.OPEN).first()
    if running is not None:
        return running
    changes, builders = changes_of(alert), repository_builders()
    busy = dict(
        Bisection.objects.filter(
            series__in={change.series_id for change in changes}, state=BisectionState.OPEN
        ).values_list("series", "alert")
    )
    obstacles = {
        change.pk: _busy_reason(busy[change.series_id])
        if change.series_id in busy
        else blocked_reason(alert, change, means, builders)
        for change in changes
    }
    change = next((row for row in changes if not obstacles[row.pk]), None)
    if change is None:
        reasons = dict.fromkeys(obstacles.values())
        raise UserError("; ".join(reasons) or "this alert no longer has changes")
    good, bad = ends_of(alert, change)
    assert good is not None
    if means is not BisectionMeans.RECORDED:
        add_commits(alert, good, bad)
    if _revisions_between(good, bad)[MAX_REVISIONS:].exists():
        raise UserError(f"more than {MAX_REVISIONS:,} revisions are in between")
    levels = _levels(change)
    try:
        with transaction.atomic():
            bisection = Bisection.objects.create(
                alert=alert,
                series=change.series,
                good=good,
                bad=bad,
                before=levels.before,
                after=levels.after,
                noise=levels.noise,
                limit=limit,
                means=means,
                requested_by_id=audit.actor_id(actor),
            )
    except IntegrityError:  # another alert's was started at this moment
        other = Bisection.objects.get(series=change.series, state=BisectionState.OPEN)
        raise UserError(_busy_reason(other.alert_id)) from None
    audit.record(actor, "bisect", alert, f"{change.series}"[:200])
    _step(bisection)
    return bisection


def blocked_reason(
    alert: Alert, change: Change, means: BisectionMeans, builders: Collection[str]
) -> str:
    """Return why the revisions around a change of an alert cannot be bisected by these means; "" if
    they can. The revisions of the alert are loaded; workers build those of ``builders``."""
    good, bad = ends_of(alert, change)
    if means is not BisectionMeans.RECORDED:
        if change.series.is_generated:
            return "generated series cannot be measured"
        if change.series.own_problem_id is not None:
            return "series of tuning runs on this site are not sent: use recorded points"
        if means is BisectionMeans.WORKER and bad.repository not in builders:
            return f"no worker that builds {bad.repository or 'its repository'} is online"
    if good is None:
        return "the last revision before the change is unknown"
    if good.repository != bad.repository:
        return f"both sides are of different repositories: {good.repository}, {bad.repository}"
    if good.at is None or bad.at is None:
        return "the times of both revisions are unknown: send revision.at"
    return ""


@transaction.atomic
def cancel(bisection: Bisection, actor: AbstractBaseUser | None) -> bool:
    """Cancel an open bisection and withdraw its request; return False if it is over."""
    row = Bisection.objects.select_for_update().get(pk=bisection.pk)
    if not row.is_open:
        return False
    _requests(row).filter(answered_at=None, withdrawn_at=None).update(withdrawn_at=Now())
    _close_steps(row)
    _finish(row, BisectionState.CANCELLED, reason="cancelled")
    audit.record(actor, "cancel bisection", row.alert)
    return True


@transaction.atomic
def skip(request: MeasurementRequest, reason: str, actor: AbstractBaseUser | None) -> Bisection:
    """Record that a bisection's revision cannot be measured, and request another one. Raises
    ``UserError`` if the request is not an open one of a bisection, or without a reason."""
    if not reason.strip():
        raise UserError("reason: state why the revision cannot be measured")
    bisection = request.bisection
    if bisection is None:
        raise UserError(f"request {request.pk} is not of a bisection: withdraw it")
    bisection = Bisection.objects.select_for_update().get(pk=bisection.pk)
    changed = MeasurementRequest.objects.filter(
        pk=request.pk, answered_at=None, withdrawn_at=None
    ).update(withdrawn_at=Now())
    if not (changed and bisection.is_open):
        raise UserError(f"request {request.pk} is no longer open")
    SkippedRevision.objects.get_or_create(
        bisection=bisection, revision=request.revision, defaults={"reason": reason.strip()[:500]}
    )
    audit.record(actor, "skip revision", bisection.alert, str(request.revision))
    _step(bisection)
    return bisection


def waiting_bisections() -> QuerySet[Bisection]:
    """Return open bisections without an open request: their last one was answered."""
    asked = MeasurementRequest.objects.filter(
        bisection=OuterRef("pk"), answered_at=None, withdrawn_at=None
    )
    return Bisection.objects.filter(~Exists(asked), state=BisectionState.OPEN)


@transaction.atomic
def advance() -> int:
    """Take one step of the bisections whose requests were answered; return how many."""
    rows = list(waiting_bisections().select_for_update(skip_locked=True, of=("self",)))
    for bisection in rows:
        _step(bisection)
    return len(rows)


def window_of(bisection: Bisection) -> list[WindowRevision]:
    """Return the revisions from the last good to the first bad one, in order (3 queries)."""
    good, bad = bisection.good, bisection.bad
    revisions = list(_revisions_between(good, bad)[:MAX_REVISIONS])
    skipped = dict(bisection.skipped.values_list("revision", "reason"))
    points = Datum.objects.valid().filter(
        series=bisection.series_id,
        is_trunk=True,
        revision__in=[good, *revisions, bad],
        value__gt=0,
    )
    values: dict[int, list[float]] = defaultdict(list)
    for revision, value in points.order_by("measured_at", "pk").values_list("revision", "value"):
        values[revision].append(value)
    levels = Levels(bisection.before, bisection.after, bisection.noise)
    inner = [
        WindowRevision(
            revision,
            side_of(values[revision.pk], levels) if values[revision.pk] else None,
            tuple(values[revision.pk]),
            skipped.get(revision.pk, ""),
        )
        for revision in revisions
    ]
    first, last = (tuple(values[end.pk]) for end in (good, bad))
    return [
        WindowRevision(good, Side.BEFORE, first),
        *inner,
        WindowRevision(bad, Side.AFTER, last),
    ]


def count_between(alert: Alert, change: Change) -> int:
    """Return the number of revisions between both sides of a change that can be bisected, with the
    commits that are known from a Git mirror (1 query)."""
    good, bad = ends_of(alert, change)
    assert good is not None
    stored = _revisions_between(good, bad)[:MAX_REVISIONS].count()
    return max(stored, len(trunk_commits(alert.commits)) - 1)


def _revisions_between(good: Revision, bad: Revision) -> QuerySet[Revision]:
    """Return the trunk's revisions between two others, in order; those of one time in the order in
    which Kiln first saw them."""
    since_good = Q(at__gt=good.at) | Q(at=good.at, pk__gt=good.pk)
    until_bad = Q(at__lt=bad.at) | Q(at=bad.at, pk__lt=bad.pk)
    rows = Revision.objects.filter(
        since_good,
        until_bad,
        repository=bad.repository,
        is_trunk=True,
        at__gte=good.at,
        at__lte=bad.at,
    )
    return rows.exclude(name__in=(good.name, bad.name)).order_by("at", "pk")


def _busy_reason(alert: int) -> str:
    return f"alert {alert} already bisects this series"


def ends_of(alert: Alert, change: Change) -> tuple[Revision | None, Revision]:
    """Return the last good and the first bad revision: those of the alert, which all its series
    narrow; else those of the change."""
    if alert.good_revision is not None and alert.revision is not None:
        return alert.good_revision, alert.revision
    return change.good_revision or change.previous, change.bad_revision or change.revision


def _levels(change: Change) -> Levels:
    """Return the levels from the points nearest to a change."""
    points = Datum.objects.valid().filter(series=change.series_id, is_trunk=True, value__gt=0)
    before = points.filter(at__lt=change.at).order_by("-at", "-pk")
    after = points.filter(at__gte=change.at).order_by("at", "pk")
    counts = (min(change.n_before, _SIDE_POINTS), min(change.n_after, _SIDE_POINTS))
    sides = (
        list(rows.values_list("value", flat=True)[:count])
        for rows, count in zip((before, after), counts, strict=True)
    )
    try:
        return levels_of(*sides)
    except ValueError as error:
        raise UserError(f"the change cannot be bisected: {error}") from None


def _step(bisection: Bisection) -> None:
    """Narrow the window by what was measured; finish, or request the next revision. In the
    transaction that has locked the bisection."""
    _close_steps(bisection)
    window = window_of(bisection)
    is_recorded = bisection.means == BisectionMeans.RECORDED
    given_up = [
        is_recorded
        or bool(row.skipped)
        or (row.side is Side.UNCLEAR and len(row.values) >= MAX_VALUES)
        for row in window
    ]
    narrowed = suspects([row.side for row in window], given_up)
    if narrowed.bad - narrowed.good == 1:
        _finish(bisection, BisectionState.DONE, culprit=window[narrowed.bad].revision)
        return
    if narrowed.next is None:
        count = narrowed.bad - narrowed.good - 1
        revisions = f"{count} revision{'' if count == 1 else 's'}"
        obstacle = "without clear recorded values" if is_recorded else "that could not be measured"
        reason = f"{revisions} before {window[narrowed.bad].revision} {obstacle}"
        _finish(bisection, BisectionState.STOPPED, reason=reason)
        return
    revision = window[narrowed.next].revision
    measured = set(_requests(bisection).values_list("revision", flat=True))
    if len(measured | {revision.pk}) > bisection.limit:
        reason = f"the limit of {bisection.limit} revisions is reached"
        _finish(bisection, BisectionState.STOPPED, reason=reason)
        return
    _request(bisection, revision)


def _request(bisection: Bisection, revision: Revision) -> None:
    """Request a revision; an open request of the alert is taken over."""
    request, _ = MeasurementRequest.objects.update_or_create(
        series=bisection.series,
        revision=revision,
        answered_at=None,
        withdrawn_at=None,
        defaults={"bisection": bisection},
        create_defaults={
            "bisection": bisection,
            "alert": bisection.alert,
            "requested_by": bisection.requested_by,
        },
    )
    if bisection.means == BisectionMeans.WORKER:
        BisectionStep.objects.get_or_create(request=request, bisection=bisection)
        queue.notify(queue.Kind.BISECT)


def _close_steps(bisection: Bisection) -> None:
    """End the builds whose requests are no longer open: a worker that builds one stops."""
    is_over = Q(request__answered_at__isnull=False) | Q(request__withdrawn_at__isnull=False)
    steps = BisectionStep.objects.filter(is_over, bisection=bisection, state__in=OPEN_STATES)
    work.close(steps, State.CANCELLED, "no longer needed")


def _requests(bisection: Bisection) -> QuerySet[MeasurementRequest]:
    return MeasurementRequest.objects.filter(bisection=bisection)


def _finish(
    bisection: Bisection,
    state: BisectionState,
    *,
    culprit: Revision | None = None,
    reason: str = "",
) -> None:
    Bisection.objects.filter(pk=bisection.pk).update(
        state=state, culprit=culprit, reason=reason[:500], finished_at=Now()
    )
    bisection.refresh_from_db()


def remaining(window: Sequence[WindowRevision]) -> tuple[WindowRevision, ...]:
    """Return the revisions that may have made the change, the first bad one last."""
    narrowed = suspects([row.side for row in window], [bool(row.skipped) for row in window])
    return tuple(window[narrowed.good + 1 : narrowed.bad + 1])
