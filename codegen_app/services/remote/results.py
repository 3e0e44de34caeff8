"""What remote workers send, written by what writes it for every worker, once."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from dataclasses import replace

from django.db import transaction
from django.db.models import F

from codegen_app.models import (
    LeaseEnd,
    RemoteLease,
    State,
    TuningRun,
    TuningTask,
    Worker,
)
from codegen_app.services import measuring, modelled, searching, work
from codegen_app.services.faults import Fault
from codegen_app.services.remote import leasing, repeating
from codegen_app.services.remote.leasing import OverError
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
    """Record results, what was spent on them, and renew the lease. A result of a candidate that has
    one changes nothing. Of what is measured again ``samples`` are noted: so far, and at most.

    Raises ``UserError`` for a kernel or a device that is none of the task's, and records none of
    the message's then.
    """
    lease = leasing.find(worker, key)
    if lease.ended_at is not None or lease.work.claim != lease.claim:
        return Reply(Directive.STOP, leasing.over(lease))
    try:
        with transaction.atomic():
            if lease.task is None:
                _note_again(lease, list(results), samples)
            else:
                _record(lease, device, list(results), spent_s)
    except OverError:
        return Reply(Directive.STOP, leasing.over(leasing.find(worker, key)))
    return Reply(*leasing.say(worker))


def _note_again(lease: RemoteLease, results: list[Result], samples: tuple[int, int]) -> None:
    if results:
        raise UserError("results: what is measured again is sent at its end")
    if not work.extend(lease.work, samples=samples[0], samples_due=samples[1]):
        raise OverError


def is_again(worker: Worker, key: str) -> bool:
    """Whether a lease is on builds to be measured again. Raises ``OverError``."""
    return leasing.find(worker, key).task is None


def finish_again(
    worker: Worker, key: str, device: str, results: list[Result], samples: tuple[int, int]
) -> None:
    """Record what was measured again, and close the work; the same again changes nothing.

    Raises ``OverError`` where the lease does not hold any more, ``UserError`` for points that are
    none of the work's.
    """
    lease = leasing.find(worker, key)
    if lease.end == LeaseEnd.FINISHED:
        return
    lease = leasing.held(worker, key)
    info = _device(lease, device)
    try:
        with transaction.atomic():
            repeating.record(lease, info, results, samples)
            count = len(results)
            RemoteLease.objects.filter(pk=lease.pk).update(results=count, device=info.id)
            leasing.end(lease, LeaseEnd.FINISHED)
    except work.LeaseLostError:
        raise OverError(leasing.over(leasing.find(worker, key))) from None


def _record(lease: RemoteLease, device: str, results: list[Result], spent_s: float | None) -> None:
    task = lease.tuned
    if not work.extend(task):
        raise OverError
    if spent_s is not None and (spent := leasing.spent(lease, spent_s)):
        TuningTask.objects.filter(pk=task.pk).update(**spent)
    if not results:
        return
    info = _device(lease, device)
    known, moved, new = _kernels(task), _moved(task), 0
    for one in results:
        if one.kernel not in known:
            raise UserError(f"results: {one.kernel} is no kernel of this task")
        entry = _entry(task, info, one.kernel, one.measured, moved, _loss(one))
        entry = replace(entry, modelled=modelled.of_kernel(task, one.kernel))
        count = searching.note(task, entry, info)
        if count is None:
            raise OverError
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
    """Record the last rounds and the decision, and close the task; the same again changes nothing.
    ``rest`` is why a search left what ``lines`` do not name.

    Raises ``OverError`` where the lease does not hold any more, ``UserError`` for lines that are
    none of the task's, or decide for what was not measured.
    """
    lease = leasing.find(worker, key)
    if lease.end == LeaseEnd.FINISHED:
        return
    lease = leasing.held(worker, key)
    task, info = lease.tuned, _device(lease, device)
    if lease.offered is None:
        raise MachineError("nobody has looked yet at what this search may try")
    named = tuple(_lines(task, info, list(lines)))
    others = _untried(lease, info, {one.kernel for _, one in named}, rest)
    decided = AssignmentResult((*named, *others), frozenset())
    made = frozenset(entry.kernel for _, entry in decided.lines)
    try:
        with transaction.atomic():
            # The run before its tasks before their leases, as everywhere.
            TuningRun.objects.select_for_update().get(pk=task.run_id)
            if not work.extend(task):
                raise work.LeaseLostError
            spent = leasing.spent(lease, spent_s)
            searching.record(task, AssignmentResult(decided.lines, made), spent, info)
            leasing.end(lease, LeaseEnd.FINISHED)
    except work.LeaseLostError:
        raise OverError(leasing.over(lease)) from None


def _lines(
    task: TuningTask, device: DeviceInfo, lines: list[FinalResult]
) -> Iterable[tuple[int, Entry]]:
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


def _untried(
    lease: RemoteLease, device: DeviceInfo, named: Collection[str], reason: str
) -> Iterable[tuple[int, Entry]]:
    """Of a search, all candidates that nothing is said of."""
    for kernel, (place, config) in (lease.offered or {}).items():
        if kernel not in named:
            line = FinalResult(kernel, CandidateState.UNTRIED, reason=reason)
            entry = _entry(lease.tuned, device, kernel, None, 0, None, line)
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


def _loss(one: Result | FinalResult) -> Rejected | None:
    return one.loss.rejected if one.loss is not None else None


def give_up(worker: Worker, key: str, why: GiveUp, reason: str, detail: str) -> None:
    """A task that its worker does not finish; the same again changes nothing."""
    lease = leasing.find(worker, key)
    row = lease.work
    if lease.ended_at is not None or row.claim != lease.claim:
        leasing.end(lease, LeaseEnd.EXPIRED)
        return
    line = reason or "the worker gave no reason"
    if why is GiveUp.STOPPED:
        work.put_back(row)
    elif why is GiveUp.DIED:
        work.put_off(row, Fault(f"{line} (on {worker})", of_row=True))
    elif why is GiveUp.MACHINE:
        work.put_off(row, Fault(f"{line} (on {worker})"))
    else:
        _close(lease, why, line, detail)
    leasing.end(lease, LeaseEnd.GIVEN_BACK if why is GiveUp.STOPPED else LeaseEnd.FAILED)


def _close(lease: RemoteLease, why: GiveUp, line: str, detail: str) -> None:
    row = lease.work
    try:
        if why is not GiveUp.REJECTED:
            work.finish(row, State.QUARANTINED, stage=Stage.CRASH, reason=line, detail=detail)
        elif lease.task is not None:
            measuring.reject_task(lease.task, Rejected(Stage.LOAD, line))
        else:
            work.finish(row, State.REJECTED, stage=Stage.LOAD, reason=line)
    except work.LeaseLostError:
        log.info("%s was closed meanwhile", row)


def _device(lease: RemoteLease, device: str) -> DeviceInfo:
    """The worker's device of that id, if it is of the kind that the work is for."""
    there = {one["id"]: DeviceInfo(**one) for one in lease.worker.devices}
    found = there.get(device)
    if lease.task is not None:
        own = there.get(lease.task.run.device)
        kind = (own.target, own.name) if own is not None else None
    else:
        kind = repeating.kind_of(lease)
    if found is None or kind != (found.target, found.name):
        raise UserError(f"device: {device!r} of this worker is not what the task is measured on")
    return found


def _kernels(task: TuningTask) -> set[str]:
    names = task.candidates.filter(build__state=State.DONE, kernel__isnull=False)
    return set(names.values_list("kernel__name", flat=True))


def _moved(task: TuningTask) -> int:
    return repeating.moved(task.problem, task.run.bindings)
