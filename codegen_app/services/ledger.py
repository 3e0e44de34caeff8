"""What follows when a part of a tuning run is over: candidates lost, tasks ready, runs closed."""

from __future__ import annotations

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from codegen_app.models import (
    OPEN_STATES,
    Build,
    Candidate,
    Graph,
    State,
    TuningRun,
    TuningTask,
)
from codegen_app.services import audit, queue
from scheduler.outcome import Stage

_NO_RESULT = (State.REJECTED, State.QUARANTINED, State.CANCELLED)


def ready_tasks(target: str) -> QuerySet[TuningTask]:
    """Tasks for an architecture that wait for nothing but a worker: all their builds are over."""
    waits = Candidate.objects.filter(
        task=OuterRef("pk"), state__in=OPEN_STATES, build__state__in=OPEN_STATES
    )
    return TuningTask.objects.filter(
        ~Exists(waits), state=State.QUEUED, run__target=target, run__state__in=OPEN_STATES
    )


def build_is_over(build: Build) -> None:
    """Carry a build's outcome on; part of the transaction that closes it.

    Candidates of a build without a result are lost with the build's own words; tasks that waited
    for this build last are announced.
    """
    if build_lost := Build.objects.filter(pk=build.pk, state__in=_NO_RESULT).first():
        Candidate.objects.filter(build=build, state__in=OPEN_STATES).update(
            state=State.REJECTED,
            stage=Stage.COMPILE,
            reason=build_lost.reason or "the build was cancelled",
            detail=build_lost.log or build_lost.detail,
            finished_at=Now(),
        )
    if ready_tasks(build.target).filter(candidates__build=build).exists():
        queue.look_now(queue.Kind.MEASURE, target=build.target)


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
