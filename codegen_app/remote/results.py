"""What remote workers send, recorded once, with the functions for all workers."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from dataclasses import replace

from django.db import transaction
from django.db.models import F

from codegen_app.remote import leases, replay
from codegen_app.remote.leases import LeaseOverError
from codegen_app.remote.models import LeaseEnd, RemoteLease
from codegen_app.tuning.models import TuningRun, TuningTask
from codegen_app.tuning.services import measurement_tasks, modelled_tuning
from codegen_app.tuning.services import search as tuning_search
from codegen_app.workers import work
from codegen_app.workers.faults import Fault
from codegen_app.workers.models import State, Worker
from scheduler.agent.protocol import Directive, FinalResult, GiveUp, Reply, Result, Samples
from scheduler.benchmark.measurement import Measurement
from scheduler.errors import MachineError, Rejected, Stage, UserError
from scheduler.runtime.device import DeviceInfo
from scheduler.tuning.assignment import AssignmentResult
from scheduler.tuning.ledger import CandidateState, Entry, state_of

log = logging.getLogger(__name__)


def progress(
    worker: Worker,
    key: str,
    device: str,
    results: Iterable[Result],
    spent_s: float | None = None,
    samples: tuple[int, int] = (0, 0),
) -> Reply:
    """Record results and their spent time, and renew the lease. A second result of a candidate
    changes nothing. For remeasurements ``samples`` are recorded: so far, and at most.

    Raises ``UserError``, and records nothing of the message, for a kernel or a device that is not
    the task's.
    """
    lease = leases.find(worker, key)
    if lease.ended_at is not None or lease.work.claim != lease.claim:
        return Reply(Directive.STOP, leases.expire(lease))
    try:
        with transaction.atomic():
            if lease.task is None:
                _record_remeasurement(lease, list(results), samples)
            else:
                _record(lease, device, list(results), spent_s)
    except LeaseOverError:
        return Reply(Directive.STOP, leases.expire(leases.find(worker, key)))
    return Reply(*leases.current_control(worker))


def _record_remeasurement(
    lease: RemoteLease, results: list[Result], samples: tuple[int, int]
) -> None:
    if results:
        raise UserError("results: send remeasured results when the task ends")
    if not work.extend(lease.work, samples=samples[0], samples_due=samples[1]):
        raise LeaseOverError


def is_remeasurement(worker: Worker, key: str) -> bool:
    """Return whether a lease is on a remeasurement. Raises ``LeaseOverError``."""
    return leases.find(worker, key).task is None


def finish_remeasurement(
    worker: Worker, key: str, device: str, results: list[Result], samples: tuple[int, int]
) -> None:
    """Record a remeasurement and close the work; repeating it changes nothing.

    Raises ``LeaseOverError`` if the lease no longer holds, ``UserError`` for points that are not
    the work's.
    """
    lease = leases.find(worker, key)
    if lease.end == LeaseEnd.FINISHED:
        return
    lease = leases.get_active(worker, key)
    info = _device(lease, device)
    try:
        with transaction.atomic():
            replay.record(lease, info, results, samples)
            count = len(results)
            RemoteLease.objects.filter(pk=lease.pk).update(results=count, device=info.id)
            leases.end(lease, LeaseEnd.FINISHED)
    except work.LeaseLostError:
        raise LeaseOverError(leases.expire(leases.find(worker, key))) from None


def _record(lease: RemoteLease, device: str, results: list[Result], spent_s: float | None) -> None:
    task = lease.tuning_task
    if not work.extend(task):
        raise LeaseOverError
    if spent_s is not None and (spent := leases.spent_fields(lease, spent_s)):
        TuningTask.objects.filter(pk=task.pk).update(**spent)
    if not results:
        return
    info = _device(lease, device)
    known, moved, new = _kernels(task), _bytes_moved(task), 0
    for one in results:
        if one.kernel not in known:
            raise UserError(f"results: {one.kernel} is not a kernel of this task")
        entry = _entry(task, info, one.kernel, one.measured, moved, _rejection(one))
        entry = replace(entry, modelled=modelled_tuning.modelled_time(task, one.kernel))
        count = tuning_search.record_entry(task, entry, info)
        if count is None:
            raise LeaseOverError
        new += count
    RemoteLease.objects.filter(pk=lease.pk).update(results=F("results") + new, device=info.id)


def finish(
    worker: Worker,
    key: str,
    device: str,
    lines: Iterable[FinalResult],
    rest: str = "",
    spent_s: float | None = None,
) -> None:
    """Record the final rounds and the decision, and close the task; repeating it changes nothing.
    ``rest`` is why a search left the candidates that ``lines`` do not name.

    Raises ``LeaseOverError`` if the lease no longer holds, ``UserError`` for lines that are not the
    task's, or that choose an unmeasured candidate.
    """
    lease = leases.find(worker, key)
    if lease.end == LeaseEnd.FINISHED:
        return
    lease = leases.get_active(worker, key)
    task, info = lease.tuning_task, _device(lease, device)
    if lease.offered is None:
        raise MachineError("the candidates of this search are not known yet")
    named = tuple(_entries(task, info, list(lines)))
    others = _untried_entries(lease, info, {one.kernel for _, one in named}, rest)
    decided = AssignmentResult((*named, *others), frozenset())
    made = frozenset(entry.kernel for _, entry in decided.lines)
    try:
        with transaction.atomic():
            # Lock the run before its tasks before their leases, as everywhere.
            TuningRun.objects.select_for_update().get(pk=task.run_id)
            if not work.extend(task):
                raise work.LeaseLostError
            spent = leases.spent_fields(lease, spent_s)
            tuning_search.record_decision(task, AssignmentResult(decided.lines, made), spent, info)
            leases.end(lease, LeaseEnd.FINISHED)
    except work.LeaseLostError:
        raise LeaseOverError(leases.expire(lease)) from None


def _entries(
    task: TuningTask, device: DeviceInfo, lines: list[FinalResult]
) -> Iterable[tuple[int, Entry]]:
    rows = task.candidates.filter(kernel__isnull=False).select_related("kernel", "result")
    known = {row.kernel.name: row for row in rows if row.kernel is not None}
    if len({line.kernel for line in lines}) != len(lines):
        raise UserError("lines: a kernel has two")
    if sum(line.state is CandidateState.CHOSEN for line in lines) > 1:
        raise UserError("lines: two kernels are marked chosen")
    moved = _bytes_moved(task)
    for line in lines:
        row = known.get(line.kernel)
        if row is None:
            raise UserError(f"lines: {line.kernel} is not a kernel of this task")
        entry = _entry(task, device, line.kernel, line.measured, moved, _rejection(line), line)
        if entry.measurement is None and line.state in _MEASURED:
            if row.result is None:
                raise UserError(f"lines: {line.kernel} is {line.state} and was not measured")
            known_before = row.result.measurement(line.kernel, device.id)
            entry = _entry(task, device, line.kernel, None, moved, None, line, known_before)
        yield row.position, entry


def _untried_entries(
    lease: RemoteLease, device: DeviceInfo, named: Collection[str], reason: str
) -> Iterable[tuple[int, Entry]]:
    """Yield a search's candidates that no line names."""
    for kernel, (place, config) in (lease.offered or {}).items():
        if kernel not in named:
            line = FinalResult(kernel, CandidateState.UNTRIED, reason=reason)
            entry = _entry(lease.tuning_task, device, kernel, None, 0, None, line)
            yield place, replace(entry, config=config)


_MEASURED = (CandidateState.MEASURED, CandidateState.CHOSEN)


def _entry(
    task: TuningTask,
    device: DeviceInfo,
    kernel: str,
    samples: Samples | None,
    moved: int,
    loss: Rejected | None,
    line: FinalResult | None = None,
    measured: Measurement | None = None,
) -> Entry:
    """Return the entry as the tuner represents it. Derived values are derived here: figures, sizes,
    the device."""
    if samples is not None:
        bindings = dict(task.run.bindings)
        measured = samples.measurement(kernel, device.id, bindings, device.emulated, moved)
    if line is not None:
        state, tied, reason = line.state, line.tied, line.reason
    else:
        state = state_of(loss) if loss is not None else CandidateState.MEASURED
        tied, reason = False, ""
    return Entry(
        problem="",
        node=task.template_node.name,
        bindings={},
        kernel=kernel,
        template="",
        config={},
        description="",
        state=state,
        stage=loss.stage if loss else "",
        reason=loss.reason if loss else reason,
        detail=loss.detail if loss else "",
        measurement=measured,
        tied=tied,
    )


def _rejection(one: Result | FinalResult) -> Rejected | None:
    return one.loss


def give_up(worker: Worker, key: str, why: GiveUp, reason: str, detail: str) -> None:
    """Record that the worker does not finish a task; repeating it changes nothing."""
    lease = leases.find(worker, key)
    row = lease.work
    if lease.ended_at is not None or row.claim != lease.claim:
        leases.end(lease, LeaseEnd.EXPIRED)
        return
    line = reason or "the worker gave no reason"
    if why is GiveUp.STOPPED:
        work.requeue(row)
    elif why is GiveUp.DIED:
        work.postpone(row, Fault(f"{line} (on {worker})", of_row=True))
    elif why is GiveUp.MACHINE:
        work.postpone(row, Fault(f"{line} (on {worker})"))
    else:
        _close(lease, why, line, detail)
    leases.end(lease, LeaseEnd.GIVEN_BACK if why is GiveUp.STOPPED else LeaseEnd.FAILED)


def _close(lease: RemoteLease, why: GiveUp, line: str, detail: str) -> None:
    row = lease.work
    try:
        if why is not GiveUp.REJECTED:
            work.finish(row, State.QUARANTINED, stage=Stage.CRASH, reason=line, detail=detail)
        elif lease.task is not None:
            measurement_tasks.reject_task(lease.task, Rejected(Stage.LOAD, line))
        else:
            work.finish(row, State.REJECTED, stage=Stage.LOAD, reason=line)
    except work.LeaseLostError:
        log.info("%s was closed meanwhile", row)


def _device(lease: RemoteLease, device: str) -> DeviceInfo:
    """Return the worker's device of that id, if it is of the work's kind."""
    there = {one["id"]: DeviceInfo(**one) for one in lease.worker.devices}
    found = there.get(device)
    if lease.task is not None:
        own = there.get(lease.task.run.device)
        kind = (own.target, own.name) if own is not None else None
    else:
        kind = replay.device_kind(lease)
    if found is None or kind != (found.target, found.name):
        raise UserError(f"device: {device!r} of this worker is not what the task is measured on")
    return found


def _kernels(task: TuningTask) -> set[str]:
    names = task.candidates.filter(build__state=State.DONE, kernel__isnull=False)
    return set(names.values_list("kernel__name", flat=True))


def _bytes_moved(task: TuningTask) -> int:
    return replay.problem_bytes(task.problem, task.run.bindings)
