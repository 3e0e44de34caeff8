"""Consequences of finished parts of a run: candidates rejected, tasks ready, runs closed."""

from __future__ import annotations

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import Now

from codegen_app.accounts import audit
from codegen_app.graphs.models import Graph
from codegen_app.kernels.models import Build, KernelUse
from codegen_app.tuning.models import Candidate, TuningRun, TuningTask
from codegen_app.tuning.services.candidate_results import rejection_fields
from codegen_app.workers import queue, work
from codegen_app.workers.models import OPEN_STATES, State
from scheduler.errors import Rejected, Stage
from scheduler.targets.modelled import DEVICE_PREFIX

#: The architecture in the queues of runs of modelled times: any machine takes these.
MODELLED = "model"
#: The architecture of a tuning task's queue, or ``MODELLED``.
MEASURED_ON = Case(
    When(run__device__startswith=DEVICE_PREFIX, then=Value(MODELLED)), default=F("run__target")
)
_NO_RESULT = (State.REJECTED, State.QUARANTINED, State.CANCELLED)


def queue_target(run: TuningRun) -> str:
    """Return the architecture whose workers do a run, or ``MODELLED``."""
    return MODELLED if run.is_modelled else run.target


def ready_tasks(target: str) -> QuerySet[TuningTask]:
    """Return tasks for an architecture, or ``MODELLED``, that only wait for a worker: all
    their builds are over, or they request builds themselves (a run with a budget)."""
    waits = Candidate.objects.filter(
        task=OuterRef("pk"), state__in=OPEN_STATES, build__state__in=OPEN_STATES
    )
    searches = Q(run__budget_s__isnull=False)
    searches |= Q(run__max_compiles__isnull=False) | Q(run__max_measurements__isnull=False)
    ready = TuningTask.objects.filter(
        searches | ~Exists(waits), state=State.QUEUED, run__state__in=OPEN_STATES
    )
    modelled = Q(run__device__startswith=DEVICE_PREFIX)
    return ready.filter(modelled if target == MODELLED else Q(run__target=target) & ~modelled)


def on_build_finished(build: Build) -> None:
    """Update what waits for a build; part of the transaction that closes it.

    Candidates of a build without a result are rejected with the build's reason; tasks that waited
    only for this build are announced.
    """
    if unbuilt := Build.objects.filter(pk=build.pk, state__in=_NO_RESULT).first():
        reason = unbuilt.reason or "the build was cancelled"
        rejected = Rejected(Stage.COMPILE, reason, unbuilt.log or unbuilt.detail)
        waiting = Candidate.objects.filter(build=build, state__in=OPEN_STATES)
        waiting.update(**rejection_fields(rejected))
    for target in (build.target, MODELLED):
        if ready_tasks(target).filter(candidates__build=build).exists():
            queue.notify(queue.Kind.MEASURE, target=target)


def close_run(run_id: int) -> None:
    """Close a run whose tasks are planned and over, and record what was not measured."""
    over = TuningRun.objects.filter(
        ~Exists(TuningTask.objects.filter(run=OuterRef("pk"), state__in=OPEN_STATES)),
        pk=run_id,
        planned_at__isnull=False,
        state__in=OPEN_STATES,
    )
    if over.exists():
        state, reason = _run_outcome(run_id)
        over.update(state=state, reason=reason[:500], finished_at=Now())


def _run_outcome(run_id: int) -> tuple[State, str]:
    """Return the state and reason of a run whose tasks are over; complete runs have no reason."""
    tasks = TuningTask.objects.filter(run=run_id).order_by("pk")
    measured = Exists(Candidate.objects.filter(task=OuterRef("pk"), state=State.DONE))
    rows = list(tasks.annotate(measured=measured).values_list("state", "measured", "reason"))
    if not rows:
        return State.DONE, "nothing was measured: no node that the run is about has a kernel"
    without = [(state, reason) for state, is_measured, reason in rows if not is_measured]
    if not without:
        return State.DONE, ""
    failed = [(state, reason) for state, reason in without if state in _NO_RESULT]
    why = failed[0][1] if failed else "every candidate was rejected, or not tried"
    if len(without) < len(rows):
        return State.DONE, f"{len(without)} of {len(rows)} problems were not measured: {why}"
    quarantined = any(state == State.QUARANTINED for state, _ in failed)
    state = State.QUARANTINED if quarantined else State.REJECTED
    return state if failed else State.DONE, f"nothing was measured: {why}"


@transaction.atomic
def cancel(run: TuningRun, actor: AbstractBaseUser | None, why: str = "") -> bool:
    """Cancel a run: queued work is dropped, and work being measured loses its claim.

    Measurements stay. Returns False if the run was over already.
    """
    by = f" by {actor.get_username()}" if actor is not None else ""
    reason = f"cancelled{by}{f': {why}' if why else ''}"
    cancelled = TuningRun.objects.filter(pk=run.pk, state__in=OPEN_STATES).update(
        state=State.CANCELLED, cancelled_at=Now(), finished_at=Now(), reason=reason[:500]
    )
    if not cancelled:
        return False
    drop_builds(Candidate.objects.filter(task__run=run))
    _close_open(run.pk, State.CANCELLED, "the run was cancelled")
    audit.record(actor, "cancel", run, why)
    return True


@transaction.atomic
def drop_runs(graph: Graph, reason: str) -> None:
    """Close the runs of a graph that could not be prepared."""
    for pk in TuningRun.objects.filter(graph=graph, state__in=OPEN_STATES).values_list("pk"):
        drop_run(*pk, State.REJECTED, reason)


@transaction.atomic
def drop_run(pk: int, state: State, reason: str) -> None:
    """Close a run that cannot be done."""
    open_run = TuningRun.objects.filter(pk=pk, state__in=OPEN_STATES)
    if open_run.update(state=state, finished_at=Now(), reason=reason[:500]):
        drop_builds(Candidate.objects.filter(task__run=pk))
        _close_open(pk, state, reason)


def reconcile() -> None:
    """Finish what rows quarantined from outside (their workers died) left behind.

    Each step is its own transaction and can be repeated.
    """
    died = {"state": State.QUARANTINED, "candidates__state__in": OPEN_STATES}
    for build in Build.objects.filter(**died).distinct():
        with transaction.atomic():
            on_build_finished(build)
    for task in TuningTask.objects.filter(**died).distinct():
        _close_candidates(Q(task=task), State.QUARANTINED, task.reason)
    # Also runs that were requested just when their graph was rejected.
    not_prepared = Graph.objects.filter(state__in=[State.REJECTED, State.QUARANTINED])
    for graph in not_prepared.filter(tuning_runs__state__in=OPEN_STATES).distinct():
        drop_runs(graph, f"preparing the graph failed: {graph.reason}")
    for run in TuningRun.objects.filter(planned_at__isnull=False, state__in=OPEN_STATES):
        close_run(run.pk)


def drop_builds(candidates: QuerySet[Candidate]) -> None:
    """Drop builds that nothing else waits for and that no person requested; workers stop the builds
    that they are running."""
    mine = candidates.filter(state__in=OPEN_STATES)
    others = Candidate.objects.filter(build=OuterRef("pk"), state__in=OPEN_STATES).exclude(
        pk__in=mine.values("pk")
    )
    defaults = KernelUse.objects.filter(kernel=OuterRef("kernel"), is_default=True)
    unneeded = Build.objects.filter(
        ~Exists(others),
        ~Exists(defaults),
        pk__in=mine.values("build"),
        state__in=OPEN_STATES,
        requested=False,
    )
    work.close(unneeded, State.CANCELLED, "nothing waits for it any more")


def _close_open(run: int, state: State, reason: str) -> None:
    work.close(TuningTask.objects.filter(run=run, state__in=OPEN_STATES), state, reason)
    _close_candidates(Q(task__run=run), state, reason)


def _close_candidates(condition: Q, state: State, reason: str) -> None:
    Candidate.objects.filter(condition, state__in=OPEN_STATES).update(
        state=state, stage=_STAGES.get(state, ""), reason=reason[:500], finished_at=Now()
    )


_STAGES = {State.QUARANTINED: Stage.CRASH, State.REJECTED: Stage.RULE}
