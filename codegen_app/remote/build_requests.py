"""Searches of remote workers: their candidates, and the builds that they request on the way.

A web process writes requests into the lease and reports what is built; the engine's part, which
takes as long as the graph is large, is done by workers that compile.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress

from django.conf import settings
from django.db import transaction

from codegen_app.kernels.services import engine
from codegen_app.platform.advisory_lock import LockClass, try_lock
from codegen_app.platform.config.context import row_context
from codegen_app.remote import dispatch, leases
from codegen_app.remote.models import RemoteLease
from codegen_app.tuning.models import Candidate, TuningTask
from codegen_app.tuning.services import measurement_tasks
from codegen_app.tuning.services import search as tuning_search
from codegen_app.workers import queue, work
from codegen_app.workers.faults import fault_of
from codegen_app.workers.models import State, Worker
from scheduler.agent.protocol import BuildResults
from scheduler.codegen.kernel import ConfigValue
from scheduler.errors import MachineError, Rejected, Stage, UserError

log = logging.getLogger(__name__)


# ---- of web processes


def request_builds(worker: Worker, key: str, kernels: Sequence[str]) -> BuildResults:
    """Return the builds of these kernels, and request the others; repeating it changes nothing.

    Raises ``LeaseOverError``, and ``UserError`` for a kernel that is no candidate of the task.
    """
    lease = leases.get_active(worker, key)
    if lease.task is None:
        raise UserError("kernels: the lease is not for a search")
    if lease.offered is None:
        return BuildResults(settings.WORKER_POLL_S, ())
    for name in kernels:
        if name not in lease.offered:
            raise UserError(f"kernels: {name} is not a candidate of this task")
    rows = lease.task.candidates.filter(kernel__name__in=kernels)
    known: dict[str, Candidate] = {
        row.kernel.name: row
        for row in rows.select_related("kernel", "build__kernel", "build__library")
        if row.kernel is not None
        # A build that was cancelled must be requested again.
        and not (row.build is not None and row.build.state == State.CANCELLED)
    }
    _add_requests(lease, [name for name in dict.fromkeys(kernels) if name not in known])
    results = (dispatch.build_result(row, lease.task.run.created_at) for row in known.values())
    return BuildResults(
        settings.WORKER_POLL_S, tuple(result for result in results if result is not None)
    )


@transaction.atomic
def _add_requests(lease: RemoteLease, kernels: Sequence[str]) -> None:
    if not kernels:
        return
    row = RemoteLease.objects.select_for_update().get(pk=lease.pk)
    if row.ended_at is not None:
        raise leases.LeaseOverError(leases.expire(lease))
    if new := [name for name in kernels if name not in row.asked]:
        RemoteLease.objects.filter(pk=lease.pk).update(asked=[*row.asked, *new])
        queue.notify(queue.Kind.COMPILE)


# ---- of workers that compile


def answer_requests() -> None:
    """Answer the requests of remote searches, each by one worker at a time. After a machine failure
    they are tried again later."""
    for pk in list(leases.search_leases().order_by("pk").values_list("pk", flat=True)):
        with try_lock(LockClass.SEEK, pk) as mine:
            lease = leases.search_leases().filter(pk=pk).first() if mine else None
            if lease is not None:
                with row_context(run_id=lease.tuning_task.run_id):
                    _attempt(lease)


def _attempt(lease: RemoteLease) -> None:
    task = lease.tuning_task
    task.claim = lease.claim  # the worker's claim, or nothing
    try:
        _answer(lease)
    except Exception as error:
        fault = fault_of(error)
        if fault is not None:
            log.warning("task %s is looked at later: %s", task.pk, fault.reason)
        elif isinstance(error, UserError) and not isinstance(error, MachineError):
            with suppress(work.LeaseLostError):  # for example, sizes that no memory holds
                measurement_tasks.reject_task(task, Rejected(Stage.LOAD, str(error)))
        elif work.quarantine(task, error):
            raise


def _answer(lease: RemoteLease) -> None:
    task = lease.tuning_task
    run, digest = task.run, task.run.graph.file.digest
    sizes = tuple(sorted(run.bindings.items()))
    problem = engine.tuning_problem(digest, task.template_node.name, run.target, sizes)
    if lease.offered is None:  # begin as an attempt here does; then the worker may send requests
        offered: dict[str, tuple[int, dict[str, ConfigValue]]] = {}
        for place, caller in enumerate(problem.callers):
            offered.setdefault(caller.name, (place, dict(caller.kernel.config)))
        with transaction.atomic():
            if _holds_claim(task):
                tuning_search.begin_task(task, problem)
                measurement_tasks.record_limits(task)
                RemoteLease.objects.filter(pk=lease.pk).update(offered=offered)
        return
    requests = tuning_search.CandidateBuilds(task, engine.scheduled(digest), problem, {})
    callers = {caller.name: caller for caller in problem.callers}
    for name in lease.asked:
        with transaction.atomic():
            if not _holds_claim(task):
                return
            try:
                build = requests.request_build(callers[name])
            except MachineError:
                raise
            except UserError:  # no compiler here builds it; its line says so
                continue
            # Replaces a build that was dropped since the first request.
            dropped = task.candidates.filter(kernel=build.kernel_id, build__state=State.CANCELLED)
            dropped.exclude(build=build).update(build=build)
    _remove_answered(lease, lease.asked)


def _holds_claim(task: TuningTask) -> bool:
    """Return whether the claim holds, and lock it until the end of the transaction."""
    rows = TuningTask.objects.select_for_update(no_key=True)
    return rows.filter(pk=task.pk, state=State.RUNNING, claim=task.claim).exists()


@transaction.atomic
def _remove_answered(lease: RemoteLease, done: Sequence[str]) -> None:
    row = RemoteLease.objects.select_for_update().get(pk=lease.pk)
    left = [name for name in row.asked if name not in done]
    RemoteLease.objects.filter(pk=lease.pk).update(asked=left)
