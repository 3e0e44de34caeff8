"""What remote workers send, recorded once, with the functions for all workers."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
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
from scheduler.agent.protocol import Directive, FinalResult, GiveUp, Reply, Result
from scheduler.benchmark.measurement import Measurement
from scheduler.errors import MachineError, Rejected, Stage, UserError
from scheduler.runtime.device import DeviceInfo
from scheduler.tuning.assignment import AssignmentResult
from scheduler.tuning.ledger import CandidateState, Entry

log = logging.getLogger(__name__)


def progress(
    worker: Worker,
    key: str,
    device: str,
    results: list[Result],
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
            if lease.task is not None:
                _record(lease, device, results, spent_s)
            elif results:
                raise UserError("results: send remeasured results when the task ends")
            elif not work.extend(lease.work, samples=samples[0], samples_due=samples[1]):
                raise LeaseOverError
    except LeaseOverError:
        return Reply(Directive.STOP, leases.expire(leases.find(worker, key)))
    return Reply(*leases.current_control(worker))


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
    built = task.candidates.filter(build__state=State.DONE, kernel__isnull=False)
    kernels = set(built.values_list("kernel__name", flat=True))
    new, moved = 0, replay.problem_bytes(task.problem, task.run.bindings)
    for result in results:
        if result.kernel not in kernels:
            raise UserError(f"results: {result.kernel} is not a kernel of this task")
        if result.measured is not None:
            outcome: Measurement | Rejected = _measurement(task, info, result, moved)
        else:
            assert result.loss is not None
            outcome = result.loss
        prediction = modelled_tuning.modelled_time(task, result.kernel)
        count = tuning_search.record_outcome(task, result.kernel, outcome, info, prediction)
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
    entries = tuple(_entries(lease, info, list(lines), rest))
    decided = AssignmentResult(entries, frozenset(entry.kernel for _, entry in entries))
    try:
        with transaction.atomic():
            # Lock the run before its tasks before their leases, as everywhere.
            TuningRun.objects.select_for_update().get(pk=task.run_id)
            if not work.extend(task):
                raise work.LeaseLostError
            spent = leases.spent_fields(lease, spent_s)
            tuning_search.record_decision(task, decided, spent, info)
            leases.end(lease, LeaseEnd.FINISHED)
    except work.LeaseLostError:
        raise LeaseOverError(leases.expire(lease)) from None


def _entries(
    lease: RemoteLease, device: DeviceInfo, lines: list[FinalResult], rest: str
) -> Iterator[tuple[int, Entry]]:
    """Yield the lines with their positions as the tuner represents them, then a search's candidates
    that no line names."""
    task = lease.tuning_task
    rows = task.candidates.filter(kernel__isnull=False).select_related("kernel", "result")
    candidates = {row.kernel.name: row for row in rows if row.kernel is not None}
    named = {line.kernel for line in lines}
    if len(named) != len(lines):
        raise UserError("lines: a kernel has two")
    if sum(line.state is CandidateState.CHOSEN for line in lines) > 1:
        raise UserError("lines: two kernels are marked chosen")
    moved = replay.problem_bytes(task.problem, task.run.bindings)
    for line in lines:
        row, measured = candidates.get(line.kernel), None
        if row is None:
            raise UserError(f"lines: {line.kernel} is not a kernel of this task")
        if line.measured is not None:
            measured = _measurement(task, device, line, moved)
        elif line.state in (CandidateState.MEASURED, CandidateState.CHOSEN):
            if row.result is None:
                raise UserError(f"lines: {line.kernel} is {line.state} and was not measured")
            measured = row.result.measurement(line.kernel, device.id)
        yield row.position, _entry(task, line, measured)
    for kernel, (place, config) in (lease.offered or {}).items():
        if kernel not in named:
            untried = FinalResult(kernel, CandidateState.UNTRIED, reason=rest)
            yield place, replace(_entry(task, untried, None), config=config)


def _measurement(
    task: TuningTask, device: DeviceInfo, result: Result | FinalResult, moved: int
) -> Measurement:
    """Return a result with what is derived here: figures, sizes, the device. ``moved`` is the
    number of bytes that the problem must move."""
    assert result.measured is not None
    bindings = dict(task.run.bindings)
    return result.measured.measurement(result.kernel, device.id, bindings, device.emulated, moved)


def _entry(task: TuningTask, line: FinalResult, measured: Measurement | None) -> Entry:
    loss = line.loss
    return Entry(
        problem="",
        node=task.template_node.name,
        bindings={},
        kernel=line.kernel,
        template="",
        config={},
        description="",
        state=line.state,
        stage=loss.stage if loss else "",
        reason=loss.reason if loss else line.reason,
        detail=loss.detail if loss else "",
        measurement=measured,
        tied=line.tied,
    )


def give_up(worker: Worker, key: str, why: GiveUp, reason: str, detail: str) -> None:
    """Record that the worker does not finish a task; repeating it changes nothing."""
    lease = leases.find(worker, key)
    row = lease.work
    if lease.ended_at is not None or row.claim != lease.claim:
        leases.end(lease, LeaseEnd.EXPIRED)
        return
    line = reason or "the worker gave no reason"
    try:
        if why is GiveUp.STOPPED:
            work.requeue(row)
        elif why is GiveUp.DIED:
            work.postpone(row, Fault(f"{line} (on {worker})", of_row=True))
        elif why is GiveUp.MACHINE:
            work.postpone(row, Fault(f"{line} (on {worker})"))
        elif why is not GiveUp.REJECTED:
            work.finish(row, State.QUARANTINED, stage=Stage.CRASH, reason=line, detail=detail)
        elif lease.task is not None:
            measurement_tasks.reject_task(lease.task, Rejected(Stage.LOAD, line))
        else:
            work.finish(row, State.REJECTED, stage=Stage.LOAD, reason=line)
    except work.LeaseLostError:
        log.info("%s was closed meanwhile", row)
    leases.end(lease, LeaseEnd.GIVEN_BACK if why is GiveUp.STOPPED else LeaseEnd.FAILED)


def _device(lease: RemoteLease, device_id: str) -> DeviceInfo:
    """Return the worker's device of that id, if it is of the work's kind."""
    devices = {fields["id"]: DeviceInfo(**fields) for fields in lease.worker.devices}
    info = devices.get(device_id)
    if lease.task is not None:
        expected = devices.get(lease.task.run.device)
        kind = (expected.target, expected.name) if expected is not None else None
    else:
        kind = replay.device_kind(lease)
    if info is None or kind != (info.target, info.name):
        raise UserError(f"device: {device_id!r} of this worker is not what the task is measured on")
    return info
