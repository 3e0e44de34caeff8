"""What follows when a part of a run is over: candidates rejected, tasks ready, runs closed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from codegen_app.models import (
    OPEN_STATES,
    Build,
    Candidate,
    Graph,
    KernelUse,
    State,
    TuningRun,
    TuningTask,
)
from codegen_app.services import audit, queue
from scheduler.outcome import Stage

_NO_RESULT = (State.REJECTED, State.QUARANTINED, State.CANCELLED)


def ready_tasks(target: str) -> QuerySet[TuningTask]:
    """Tasks for an architecture that wait for nothing but a worker: all their builds are over,
    or they ask for builds themselves (a run with a budget)."""
    waits = Candidate.objects.filter(
        task=OuterRef("pk"), state__in=OPEN_STATES, build__state__in=OPEN_STATES
    )
    searches = Q(run__budget_s__isnull=False)
    searches |= Q(run__max_compiles__isnull=False) | Q(run__max_measurements__isnull=False)
    return TuningTask.objects.filter(
        searches | ~Exists(waits),
        state=State.QUEUED,
        run__target=target,
        run__state__in=OPEN_STATES,
    )


def add_rejected(task: TuningTask, rejected: Iterable[Mapping[str, Any]], first: int) -> None:
    """The lines of the configurations that a rule rejected."""
    Candidate.objects.bulk_create(
        Candidate(
            task=task,
            position=position,
            config=one["config"],
            state=State.REJECTED,
            stage=one["stage"],
            reason=one["reason"][:500],
            detail=one["detail"],
            finished_at=timezone.now(),
        )
        for position, one in enumerate(rejected, start=first)
    )


def build_is_over(build: Build) -> None:
    """Carry a build's outcome on; part of the transaction that closes it.

    Candidates of a build without a result are rejected with the build's own words; tasks that
    waited for this build last are announced.
    """
    if unbuilt := Build.objects.filter(pk=build.pk, state__in=_NO_RESULT).first():
        Candidate.objects.filter(build=build, state__in=OPEN_STATES).update(
            state=State.REJECTED,
            stage=Stage.COMPILE,
            reason=unbuilt.reason or "the build was cancelled",
            detail=unbuilt.log or unbuilt.detail,
            finished_at=Now(),
        )
    if ready_tasks(build.target).filter(candidates__build=build).exists():
        queue.notify(queue.Kind.MEASURE, target=build.target)


def close_run(run_id: int) -> None:
    """Close a run whose tasks are all over."""
    TuningRun.objects.filter(
        ~Exists(TuningTask.objects.filter(run=OuterRef("pk"), state__in=OPEN_STATES)),
        pk=run_id,
        state__in=OPEN_STATES,
    ).update(state=State.DONE, finished_at=Now())


@transaction.atomic
def cancel(run: TuningRun, actor: AbstractBaseUser | None, why: str = "") -> bool:
    """Stop a run: what is queued is dropped, what is being measured loses its claim.

    What was measured stays. Returns False where the run was over already.
    """
    cancelled = TuningRun.objects.filter(pk=run.pk, state__in=OPEN_STATES).update(
        state=State.CANCELLED, cancelled_at=Now(), finished_at=Now()
    )
    if not cancelled:
        return False
    drop_builds(Candidate.objects.filter(task__run=run))
    _close_open(run, State.CANCELLED, "the run was cancelled")
    audit.record(actor, "cancel", run, why)
    return True


@transaction.atomic
def drop_runs(graph: Graph, reason: str) -> None:
    """Close the runs of a graph that could not be prepared."""
    for run in TuningRun.objects.filter(graph=graph, state__in=OPEN_STATES):
        TuningRun.objects.filter(pk=run.pk).update(
            state=State.REJECTED,
            finished_at=Now(),
            note=f"{run.note}\n{reason}".strip(),
        )
        _close_open(run, State.REJECTED, reason)


def reconcile() -> None:
    """Carry on what rows quarantined from outside (their workers died) left behind.

    Each step is a transaction of its own, and can be done again.
    """
    left = {"state": State.QUARANTINED, "candidates__state__in": OPEN_STATES}
    for build in Build.objects.filter(**left).distinct():
        with transaction.atomic():
            build_is_over(build)
    for task in TuningTask.objects.filter(**left).distinct():
        _close_candidates(Q(task=task), State.QUARANTINED, task.reason)
    for graph in Graph.objects.filter(
        state=State.QUARANTINED, tuning_runs__state__in=OPEN_STATES
    ).distinct():
        drop_runs(graph, f"preparing the graph failed: {graph.reason}")
    planned = Exists(TuningTask.objects.filter(run=OuterRef("pk")))
    for run in TuningRun.objects.filter(planned, state__in=OPEN_STATES):
        close_run(run.pk)


def drop_builds(candidates: QuerySet[Candidate]) -> None:
    """Drop builds that nobody else waits for; those under way are stopped by their worker."""
    mine = candidates.filter(state__in=OPEN_STATES)
    others = Candidate.objects.filter(build=OuterRef("pk"), state__in=OPEN_STATES).exclude(
        pk__in=mine.values("pk")
    )
    shown = KernelUse.objects.filter(kernel=OuterRef("kernel"), is_default=True)
    Build.objects.filter(
        ~Exists(others), ~Exists(shown), pk__in=mine.values("build"), state__in=OPEN_STATES
    ).update(
        state=State.CANCELLED,
        reason="nobody waits for it any more",
        claim="",
        lease_until=None,
        finished_at=Now(),
    )


def _close_open(run: TuningRun, state: State, reason: str) -> None:
    TuningTask.objects.filter(run=run, state__in=OPEN_STATES).update(
        state=state, reason=reason[:500], claim="", lease_until=None, finished_at=Now()
    )
    _close_candidates(Q(task__run=run), state, reason)


def _close_candidates(which: Q, state: State, reason: str) -> None:
    Candidate.objects.filter(which, state__in=OPEN_STATES).update(
        state=state, stage=_STAGES.get(state, ""), reason=reason[:500], finished_at=Now()
    )


_STAGES = {State.QUARANTINED: Stage.CRASH, State.REJECTED: Stage.RULE}
