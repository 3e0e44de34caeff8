"""What remote workers send, written by what writes it for every worker, once."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from django.db import transaction
from django.db.models import F

from codegen_app.models import LeaseEnd, ProblemWork, RemoteLease, State, TuningTask, Worker
from codegen_app.services import measuring, searching, work
from codegen_app.services.faults import Fault
from codegen_app.services.remote import leasing
from codegen_app.services.remote.leasing import OverError
from scheduler.benchmark.measurement import Measurement
from scheduler.joining.protocol import GiveUp, Line, Reply, Result, Samples, Say
from scheduler.outcome import Rejected, Stage, UserError
from scheduler.runtime.device import DeviceInfo
from scheduler.tuning.assignment import Decided
from scheduler.tuning.ledger import CandidateState, Entry, state_of

log = logging.getLogger(__name__)


def progress(worker: Worker, key: str, device: str, results: Iterable[Result]) -> Reply:
    """Record results and renew the lease. A result of a candidate that has one changes nothing.

    Raises ``UserError`` for a kernel or a device that is none of the task's, and records none of
    the message's then.
    """
    lease = leasing.find(worker, key)
    if lease.ended_at is not None or lease.task.claim != lease.claim:
        return Reply(Say.STOP, leasing.over(lease))
    try:
        with transaction.atomic():
            _record(lease, device, list(results))
    except OverError:
        lease.task.run.refresh_from_db(fields=["state"])
        return Reply(Say.STOP, leasing.over(lease))
    return Reply(*leasing.say(worker))


def _record(lease: RemoteLease, device: str, results: list[Result]) -> None:
    task = lease.task
    if not work.extend(task):
        raise OverError
    if not results:
        return
    info = _device(lease, device)
    known, moved, new = _kernels(task), _moved(task), 0
    for one in results:
        if one.kernel not in known:
            raise UserError(f"results: {one.kernel} is no kernel of this task")
        entry = _entry(task, info, one.kernel, one.measured, moved, _loss(one))
        count = searching.note(task, entry, info)
        if count is None:
            raise OverError
        new += count
    RemoteLease.objects.filter(pk=lease.pk).update(results=F("results") + new, device=info.id)


def finish(worker: Worker, key: str, device: str, lines: Iterable[Line]) -> None:
    """Record the last rounds and the decision, and close the task; the same again changes nothing.

    Raises ``OverError`` where the lease does not hold any more, ``UserError`` for lines that are
    none of the task's, or decide for what was not measured.
    """
    lease = leasing.find(worker, key)
    if lease.end == LeaseEnd.FINISHED:
        return
    lease = leasing.held(worker, key)
    task, info = lease.task, _device(lease, device)
    decided = Decided(tuple(_lines(task, info, list(lines))), frozenset())
    made = frozenset(entry.kernel for _, entry in decided.lines)
    try:
        with transaction.atomic():
            searching.record(task, Decided(decided.lines, made), leasing.spent(lease), info)
            leasing.end(lease, LeaseEnd.FINISHED)
    except work.LeaseLostError:
        raise OverError(leasing.over(lease)) from None


def _lines(task: TuningTask, device: DeviceInfo, lines: list[Line]) -> Iterable[tuple[int, Entry]]:
    rows = task.candidates.filter(kernel__isnull=False).select_related("kernel", "result")
    known = {row.kernel.name: row for row in rows if row.kernel is not None}
    if len({line.kernel for line in lines}) != len(lines):
        raise UserError("lines: a kernel has two")
    if sum(line.state is CandidateState.CHOSEN for line in lines) > 1:
        raise UserError("lines: two kernels are chosen")
    moved = _moved(task)
    for line in lines:
        row = known.get(line.kernel)
        if row is None:
            raise UserError(f"lines: {line.kernel} is no kernel of this task")
        entry = _entry(task, device, line.kernel, line.measured, moved, _loss(line), line)
        if entry.measurement is None and line.state in _MEASURED:
            if row.result is None:
                raise UserError(f"lines: {line.kernel} is {line.state} and was not measured")
            known_before = row.result.measurement(line.kernel, device.id)
            entry = _entry(task, device, line.kernel, None, moved, None, line, known_before)
        yield row.position, entry


_MEASURED = (CandidateState.MEASURED, CandidateState.CHOSEN)


def _entry(
    task: TuningTask,
    device: DeviceInfo,
    kernel: str,
    samples: Samples | None,
    moved: int,
    loss: Rejected | None,
    line: Line | None = None,
    measured: Measurement | None = None,
) -> Entry:
    """As the tuner says it. What can be derived is derived here: figures, sizes, the device."""
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


def _loss(one: Result | Line) -> Rejected | None:
    return one.loss.rejected if one.loss is not None else None


def give_up(worker: Worker, key: str, why: GiveUp, reason: str, detail: str) -> None:
    """A task that its worker does not finish; the same again changes nothing."""
    lease = leasing.find(worker, key)
    task = lease.task
    if lease.ended_at is not None or task.claim != lease.claim:
        leasing.end(lease, LeaseEnd.EXPIRED)
        return
    line = reason or "the worker gave no reason"
    if why is GiveUp.STOPPED:
        work.put_back(task)
    elif why is GiveUp.DIED:
        work.put_off(task, Fault(f"{line} (on {worker})", of_row=True))
    elif why is GiveUp.MACHINE:
        work.put_off(task, Fault(f"{line} (on {worker})"))
    else:
        _close(task, why, line, detail)
    leasing.end(lease, LeaseEnd.GIVEN_BACK if why is GiveUp.STOPPED else LeaseEnd.FAILED)


def _close(task: TuningTask, why: GiveUp, line: str, detail: str) -> None:
    try:
        if why is GiveUp.REJECTED:
            measuring.reject_task(task, Rejected(Stage.LOAD, line))
        else:
            work.finish(task, State.QUARANTINED, stage=Stage.CRASH, reason=line, detail=detail)
    except work.LeaseLostError:
        log.info("task %s was closed meanwhile", task.pk)


def _device(lease: RemoteLease, device: str) -> DeviceInfo:
    """The worker's device of that id, if it is of the kind that the run is for."""
    there = {one["id"]: DeviceInfo(**one) for one in lease.worker.devices}
    own, found = there.get(lease.task.run.device), there.get(device)
    if own is None or found is None or (own.target, own.name) != (found.target, found.name):
        raise UserError(f"device: {device!r} of this worker is not what the task is measured on")
    return found


def _kernels(task: TuningTask) -> set[str]:
    names = task.candidates.filter(build__state=State.DONE, kernel__isnull=False)
    return set(names.values_list("kernel__name", flat=True))


def _moved(task: TuningTask) -> int:
    """The bytes that the problem certainly moves at these sizes; 0 where nobody recorded it."""
    used = {name: task.run.bindings[name] for name in task.problem.symbols}
    row = ProblemWork.objects.filter(problem=task.problem, bindings=used).first()
    return row.read_bytes + row.written_bytes if row is not None else 0
