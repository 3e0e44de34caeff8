"""A task of a run: the tuner tries its candidates, the rows keep what it finds and decides.

With a budget the candidates are all that the generator offers for the run's target, without one
those that the run was planned with, a sample of them. Each is recorded as soon as it is timed or
rejected, so that a task that another worker takes over answers from the rows what was seen before,
and measures only what was not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from codegen_app.models import (
    OPEN_STATES,
    BenchmarkResult,
    Build,
    Candidate,
    GeneratedKernel,
    State,
    TuningRun,
    TuningTask,
)
from codegen_app.services import (
    budgets,
    builds,
    engine,
    kernels,
    ledger,
    modelled,
    outcomes,
    tuning,
    work,
)
from codegen_app.services.remote_builds import RemoteBuilds
from scheduler import targets
from scheduler.benchmark.measurement import Measurement
from scheduler.build.process import Cancellation, Cancelled
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.problem import Shape
from scheduler.outcome import MachineError, Rejected, Stage, UserError
from scheduler.runtime.device import DeviceInfo
from scheduler.tuning.budget import Meter
from scheduler.tuning.known import Known
from scheduler.tuning.ledger import CandidateState, Entry
from scheduler.tuning.oracle.run import tune_modelled
from scheduler.tuning.problems import TuningProblem, find_problems
from scheduler.tuning.run import SearchOptions, tune
from scheduler.tuning.tuner import Event, ProblemResult

_KNOWN_AT_MOST = 200


def search(
    task: TuningTask, device: DeviceInfo, worked: budgets.Worked, cancellation: Cancellation
) -> None:
    """Do a claimed task. Raises ``Cancelled``, ``LeaseLostError``."""
    run = task.run
    scheduled = engine.scheduled(run.graph.file.digest)
    (problem,) = find_problems(
        scheduled.schedule,
        engine.scheduling_for(run.graph.file.digest, run.target),
        targets.find(run.target),
        dict(run.bindings),
        [task.template_node.name],
        scheduled.backend,
    )
    _begin(task, problem)
    meter = Meter(budgets.share_of_budget(task))
    planned = {} if run.has_budget else _planned(task)
    remaining = problem if run.has_budget else problem.only(planned)
    if remaining is None:
        _record(task, (), worked, device)
        return
    attempt = _Attempt(task, scheduled, remaining, planned, device, cancellation)
    options = SearchOptions(
        strategy=run.strategy,
        seed=outcomes.seed(task.problem),
        known=_known(run.target, remaining.callers[0].kernel.template),
    )
    schedule, pool = scheduled.schedule, RemoteBuilds(attempt.request_build)
    if device.modelled:
        with modelled.tools(device) as (emulations, models):
            result = tune_modelled(
                *(schedule, [remaining], device, pool, emulations, models, meter, options),
                *(attempt.note, cancellation, modelled.listing_of),
            )
    else:
        options = replace(options, start=modelled.start(task), measured=_measured(task))
        result = tune(
            schedule, [remaining], device, pool, meter, options, attempt.note, cancellation
        )
    if cancellation.cancelled:
        raise Cancelled
    _record(task, attempt.lines(result.problems[0]), worked, device)


class _Attempt:
    """One try of one task, on a device that this process has alone."""

    def __init__(
        self,
        task: TuningTask,
        scheduled: engine.Scheduled,
        problem: TuningProblem,
        planned: Mapping[str, Candidate],
        device: DeviceInfo,
        cancellation: Cancellation,
    ) -> None:
        self._task = task
        self._scheduled = scheduled
        self._device = device
        self._cancellation = cancellation
        self._planned = planned
        callers = enumerate(problem.callers)
        self._places = {caller.name: place for place, caller in reversed(list(callers))}

    def request_build(self, caller: TemplateCaller) -> Build:
        """The build of a candidate, which is in the ledger from now on. Raises ``UserError``
        where no compiler here makes it."""
        planned = self._planned.get(caller.name)
        if planned is not None and planned.build is not None:
            return planned.build
        run, place = self._task.run, self._places[caller.name]
        with transaction.atomic():
            row = self._task.template_node
            backend = engine.scheduling_for(run.graph.file.digest, run.target)
            kernel = kernels.record_candidate(row, place, self._scheduled, caller, backend)
            build, obstacle = _requested(kernel, run)
            config = dict(kernel.config)
            defaults: dict[str, Any] = {"position": place, "build": build, "config": config}
            if build is None:
                rejected = {"state": State.REJECTED, "stage": Stage.COMPILE, "reason": obstacle}
                defaults |= rejected | {"finished_at": timezone.now()}
            Candidate.objects.get_or_create(task=self._task, kernel=kernel, defaults=defaults)
        if build is None:
            raise UserError(obstacle)
        return build

    def note(self, event: Event) -> None:
        """Record what became of a candidate just now. Raises ``Cancelled`` once the claim is gone:
        another worker records then."""
        entry = event.entry
        with transaction.atomic():
            if not work.extend(self._task):
                self._cancellation.cancel()
                raise Cancelled
            waiting = self._task.candidates.filter(kernel__name=entry.kernel, state__in=OPEN_STATES)
            for candidate in waiting.select_related("kernel", "build"):
                _write(self._task, candidate, entry, self._device)

    def lines(self, result: ProblemResult) -> list[tuple[int, Entry]]:
        """The candidates with their places, each kernel once: configurations that render alike
        are one kernel, of which the chosen line counts, else the first."""
        found: dict[str, Entry] = {}
        for entry in result.entries:
            if entry.kernel and (entry == result.chosen or entry.kernel not in found):
                found[entry.kernel] = entry
        return [(self._places[kernel], entry) for kernel, entry in found.items()]


def _requested(kernel: GeneratedKernel, run: TuningRun) -> tuple[Build | None, str]:
    """The build of a candidate; None and the reason where no compiler here makes it."""
    try:
        priority = tuning.build_priority(run)
        return builds.request_builds([kernel], run.target, priority=priority)[kernel.pk], ""
    except MachineError:
        raise
    except UserError as error:
        return None, str(error)[:500]


def _begin(task: TuningTask, problem: TuningProblem) -> None:
    """Keep what the problem is called; the first attempt of a search also what rules rejected."""
    outcomes.describe_call(task, problem)
    waiting = task.candidates.filter(state__in=OPEN_STATES, build__state=State.DONE)
    waiting.update(state=State.RUNNING)
    if task.run.has_budget and not task.candidates.filter(kernel__isnull=True).exists():
        rejected = [kernels.rejected_line(one) for one in problem.rejected]
        ledger.add_rejected(task, rejected, first=len(problem.callers))


def _planned(task: TuningTask) -> dict[str, Candidate]:
    """By kernel: what the run was planned with, as far as it is built."""
    rows = task.candidates.filter(build__state=State.DONE).select_related("kernel")
    return {
        row.kernel.name: row
        for row in rows.select_related("build__library", "build__kernel").order_by("position")
        if row.kernel is not None
    }


def _record(
    task: TuningTask,
    lines: Iterable[tuple[int, Entry]],
    worked: budgets.Worked,
    device: DeviceInfo,
) -> None:
    """The last rounds' times, what was left untried and why, the decision; close the task."""
    with transaction.atomic():
        # The run before its tasks before their candidates, as everywhere.
        TuningRun.objects.select_for_update().get(pk=task.run_id)
        work.finish(task, State.DONE, **worked.fields())
        rows = task.candidates.filter(kernel__isnull=False)
        by_kernel = {
            row.kernel.name: row
            for row in rows.select_related("kernel", "build", "result", "task")
            if row.kernel is not None
        }
        ledger.drop_builds(rows)
        _close_unknown(task)
        tied: list[Candidate] = []
        chosen: tuple[Candidate, BenchmarkResult | None] | None = None
        for place, entry in lines:
            row = by_kernel.get(entry.kernel)
            if row is None or entry.state is CandidateState.UNTRIED:
                _leave(task, row, place, entry)
                continue
            result = _final(task, row, entry, device)
            if entry.tied:
                tied.append(row)
            if entry.state is CandidateState.CHOSEN:
                chosen = row, result
        if chosen is not None:
            row, result = chosen
            if result is None:
                outcomes.choose_modelled(row, tied)
            else:
                outcomes.choose(row, result, tied)
        ledger.close_run(task.run_id)


def _close_unknown(task: TuningTask) -> None:
    """Planned kernels of an earlier version of the generator, which nothing can call any more."""
    if task.run.has_budget:
        return
    run, node = task.run, task.template_node
    known = engine.callers(run.graph.file.digest, node.name, run.target)
    reason = "this version of the generator does not make this kernel; import again"
    waiting = task.candidates.filter(state__in=OPEN_STATES).exclude(kernel__name__in=known)
    for row in waiting:
        outcomes.record_rejection(row, Rejected(Stage.RENDER, reason))


def _write(task: TuningTask, row: Candidate, entry: Entry, device: DeviceInfo) -> None:
    if entry.is_modelled and entry.modelled is not None:
        outcomes.record_modelled(row, entry.modelled)
        return
    if entry.modelled is not None:
        outcomes.keep_modelled(row, entry.modelled)
    if entry.measurement is not None:
        outcomes.record_result(task, row, entry.measurement, device)
    else:
        outcomes.record_rejection(row, _rejection(entry))


def _final(
    task: TuningTask, row: Candidate, entry: Entry, device: DeviceInfo
) -> BenchmarkResult | None:
    """The result that counts: the last rounds' where there were any. None for a rejection, and for
    what was modelled."""
    if entry.is_modelled and entry.modelled is not None:  # checked at more sizes by now, perhaps
        outcomes.record_modelled(row, entry.modelled, entry.reason)
        return None
    known, measured = row.result, entry.measurement
    if measured is None:
        if row.state != State.REJECTED:
            outcomes.record_rejection(row, _rejection(entry))
            if known is not None:  # fast, but wrong at other sizes: no result
                known.delete()
        return None
    if known is not None and set(measured.samples_ns) <= set(known.samples_ns):
        return known
    return outcomes.record_result(task, row, measured, device)


def _leave(task: TuningTask, row: Candidate | None, place: int, entry: Entry) -> None:
    """A candidate that was not tried."""
    reason = (entry.reason or "the budget was spent")[:500]
    if row is not None:
        Candidate.objects.filter(pk=row.pk, state__in=OPEN_STATES).update(
            state=State.CANCELLED, reason=reason, finished_at=Now()
        )
        return
    Candidate.objects.create(
        task=task,
        position=place,
        config=dict(entry.config),
        state=State.CANCELLED,
        reason=reason,
        finished_at=timezone.now(),
    )


def _measured(task: TuningTask) -> dict[str, Measurement | Rejected]:
    """By kernel: what an earlier attempt at this task saw."""
    closed = task.candidates.filter(kernel__isnull=False).exclude(state__in=OPEN_STATES)
    rows = closed.filter(Q(result__isnull=False) | ~Q(stage="")).select_related("kernel", "result")
    return {
        row.kernel.name: row.result.measurement(row.kernel.name, task.run.device)
        if row.result is not None
        else Rejected(Stage(row.stage), row.reason, row.detail)
        for row in rows
        if row.kernel is not None
    }


def _known(target: str, template: str) -> list[Known]:
    """Winners of other problems on such a device, the newest first."""
    winners = Candidate.objects.filter(
        chosen=True, task__run__target=target, task__shape__template=template, result__isnull=False
    )
    newest = winners.order_by("-pk").values_list("task__shape", "config", "kernel__template")
    return [
        Known(Shape(template, tuple(shape["dtypes"]), tuple(shape["extents"])), config, own or "")
        for shape, config, own in newest[:_KNOWN_AT_MOST]
    ]


def _rejection(entry: Entry) -> Rejected:
    return Rejected(Stage(entry.stage or Stage.RUN), entry.reason, entry.detail)
