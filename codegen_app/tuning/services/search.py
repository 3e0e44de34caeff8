"""A task of a run: the tuner tries its candidates and decides; the rows store its results.

With a budget the candidates are all that the generator has for the run's target; without one, those
that the run was planned with, a sample. Each is recorded as soon as it is timed or rejected, so
that a worker that takes over the task reads earlier results from the rows and measures only the
rest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from codegen_app.kernels.models import Build, GeneratedKernel
from codegen_app.kernels.services import builds, engine, recording
from codegen_app.kernels.services.remote_builds import RemoteBuilds
from codegen_app.tuning.models import BenchmarkResult, Candidate, TuningRun, TuningTask
from codegen_app.tuning.services import budgets, candidate_results, ledger, modelled_tuning, tuning
from codegen_app.workers import work
from codegen_app.workers.models import OPEN_STATES, State
from scheduler.benchmark.measurement import Measurement
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.problem import ProblemShape
from scheduler.errors import MachineError, Rejected, Stage, UserError
from scheduler.runtime.device import DeviceInfo
from scheduler.sandbox.process import Cancellation, Cancelled
from scheduler.tuning.assignment import (
    Assignment,
    AssignmentResult,
    PreparedSchedule,
    run_assignment,
)
from scheduler.tuning.ledger import CandidateState, Entry
from scheduler.tuning.prior_results import PriorResult
from scheduler.tuning.problems import TuningProblem
from scheduler.tuning.run import SearchOptions
from scheduler.tuning.tuner import Event

_MAX_PRIOR_RESULTS = 200


def search(
    task: TuningTask, device: DeviceInfo, worked: budgets.WorkTimer, cancellation: Cancellation
) -> None:
    """Run a claimed task. Raises ``Cancelled``, ``LeaseLostError``."""
    run, digest = task.run, task.run.graph.file.digest
    scheduled = engine.scheduled(digest)
    prepared = PreparedSchedule(
        scheduled.schedule, scheduled.backend, engine.scheduling_for(digest, run.target)
    )
    host = _DatabaseHost(task, scheduled, device, cancellation)
    assignment = Assignment(
        task.template_node.name,
        run.target,
        dict(run.bindings),
        None if run.has_budget else frozenset(host.planned),
        budgets.share_of_budget(task),
    )
    with modelled_tuning.open_tools(device) if device.modelled else nullcontext() as model_tools:
        decided = run_assignment(assignment, prepared, host, device, cancellation, model_tools)
    record_decision(task, decided, worked.fields(), device)


class _DatabaseHost:
    """The tuning host of a worker that has the database."""

    def __init__(
        self,
        task: TuningTask,
        scheduled: engine.Scheduled,
        device: DeviceInfo,
        cancellation: Cancellation,
    ) -> None:
        self.planned = {} if task.run.has_budget else planned_candidates(task)
        self._task = task
        self._scheduled = scheduled
        self._device = device
        self._cancellation = cancellation
        self._attempt: _Attempt | None = None

    def begin(self, problem: TuningProblem) -> None:
        begin_task(self._task, problem)

    def options(self, problem: TuningProblem) -> SearchOptions:
        run = self._task.run
        options = SearchOptions(
            strategy=run.strategy,
            seed=candidate_results.seed(self._task.problem),
            known=prior_results(run.target, problem.callers[0].kernel.template),
        )
        if self._device.modelled:
            return options
        return replace(
            options,
            start=modelled_tuning.warm_start(self._task),
            measured=earlier_results(self._task),
        )

    def pool(self, problem: TuningProblem) -> RemoteBuilds:
        parts = (self._task, self._scheduled, problem, self.planned, self._device)
        self._attempt = _Attempt(*parts, self._cancellation)
        return RemoteBuilds(self._attempt.request_build)

    def note(self, event: Event) -> None:
        assert self._attempt is not None, "what is noted was built before"
        self._attempt.note(event)


class CandidateBuilds:
    """Candidates of one task that are requested, whoever measures them."""

    def __init__(
        self,
        task: TuningTask,
        scheduled: engine.Scheduled,
        problem: TuningProblem,
        planned: Mapping[str, Candidate],
    ) -> None:
        self._task = task
        self._scheduled = scheduled
        self._planned = planned
        callers = enumerate(problem.callers)
        self._places = {caller.name: place for place, caller in reversed(list(callers))}

    def request_build(self, caller: TemplateCaller) -> Build:
        """Return the build of a candidate, which is recorded in the ledger. Raises ``UserError`` if
        no compiler here builds it."""
        planned = self._planned.get(caller.name)
        if planned is not None and planned.build is not None:
            return planned.build
        run, place = self._task.run, self._places[caller.name]
        with transaction.atomic():
            row = self._task.template_node
            backend = engine.scheduling_for(run.graph.file.digest, run.target)
            kernel = recording.record_candidate(row, place, self._scheduled, caller, backend)
            build, obstacle = _request_build(kernel, run)
            config = dict(kernel.config)
            defaults: dict[str, Any] = {"position": place, "build": build, "config": config}
            if build is None:
                rejected = {"state": State.REJECTED, "stage": Stage.COMPILE, "reason": obstacle}
                defaults |= rejected | {"finished_at": timezone.now()}
            Candidate.objects.get_or_create(task=self._task, kernel=kernel, defaults=defaults)
        if build is None:
            raise UserError(obstacle)
        return build


class _Attempt(CandidateBuilds):
    """One attempt at a task, on a device that this process has locked."""

    def __init__(
        self,
        task: TuningTask,
        scheduled: engine.Scheduled,
        problem: TuningProblem,
        planned: Mapping[str, Candidate],
        device: DeviceInfo,
        cancellation: Cancellation,
    ) -> None:
        super().__init__(task, scheduled, problem, planned)
        self._device = device
        self._cancellation = cancellation

    def note(self, event: Event) -> None:
        """Record a candidate's new state. Raises ``Cancelled`` once the claim is lost: another
        worker records then."""
        if record_entry(self._task, event.entry, self._device) is None:
            self._cancellation.cancel()
            raise Cancelled


@transaction.atomic
def record_entry(task: TuningTask, entry: Entry, device: DeviceInfo) -> int | None:
    """Record the result of a candidate of a claimed task, once; return how many rows changed.
    Returns None and writes nothing if the claim no longer holds."""
    if not work.extend(task):
        return None
    waiting = task.candidates.filter(kernel__name=entry.kernel, state__in=OPEN_STATES)
    rows = list(waiting.select_related("kernel", "build"))
    for candidate in rows:
        _write(task, candidate, entry, device)
    return len(rows)


def _request_build(kernel: GeneratedKernel, run: TuningRun) -> tuple[Build | None, str]:
    """Return the build of a candidate, or None and the reason if no compiler here builds it."""
    try:
        priority = tuning.build_priority(run)
        return builds.request_builds([kernel], run.target, priority=priority)[kernel.pk], ""
    except MachineError:
        raise
    except UserError as error:
        return None, str(error)[:500]


def begin_task(task: TuningTask, problem: TuningProblem) -> None:
    """Record the problem's description; the first attempt of a search also records what rules
    rejected."""
    candidate_results.describe_call(task, problem)
    waiting = task.candidates.filter(state__in=OPEN_STATES, build__state=State.DONE)
    waiting.update(state=State.RUNNING)
    if task.run.has_budget and not task.candidates.filter(kernel__isnull=True).exists():
        rejected = [recording.rejected_line(one) for one in problem.rejected]
        ledger.add_rejected(task, rejected, first=len(problem.callers))


def planned_candidates(task: TuningTask) -> dict[str, Candidate]:
    """Return the run's planned candidates that are built, by kernel."""
    rows = task.candidates.filter(build__state=State.DONE).select_related("kernel")
    return {
        row.kernel.name: row
        for row in rows.select_related("build__library", "build__kernel").order_by("position")
        if row.kernel is not None
    }


def record_decision(
    task: TuningTask,
    decided: AssignmentResult,
    spent: Mapping[str, Any],
    device: DeviceInfo,
) -> None:
    """Record the final rounds' times, what was left untried and why, and the decision; close the
    task."""
    with transaction.atomic():
        # Lock the run before its tasks before their candidates, as everywhere.
        TuningRun.objects.select_for_update().get(pk=task.run_id)
        work.finish(task, State.DONE, **spent)
        rows = task.candidates.filter(kernel__isnull=False)
        by_kernel = {
            row.kernel.name: row
            for row in rows.select_related("kernel", "build", "result", "task")
            if row.kernel is not None
        }
        ledger.drop_builds(rows)
        _reject_unknown(task, decided.made)
        tied: list[Candidate] = []
        chosen: tuple[Candidate, BenchmarkResult | None] | None = None
        for place, entry in decided.lines:
            row = by_kernel.get(entry.kernel)
            if row is None or entry.state is CandidateState.UNTRIED:
                _record_untried(task, row, place, entry)
                continue
            result = _final_result(task, row, entry, device)
            if entry.tied:
                tied.append(row)
            if entry.state is CandidateState.CHOSEN:
                chosen = row, result
        if chosen is not None:
            row, result = chosen
            if result is None:
                candidate_results.choose_modelled(row, tied)
            else:
                candidate_results.choose(row, result, tied)
        ledger.close_run(task.run_id)


def _reject_unknown(task: TuningTask, made: Collection[str]) -> None:
    """Reject planned kernels of an earlier version of the generator, which cannot be called any
    more."""
    if task.run.has_budget:
        return
    reason = "this generator version does not generate this kernel; import the graph again"
    for row in task.candidates.filter(state__in=OPEN_STATES).exclude(kernel__name__in=made):
        candidate_results.record_rejection(row, Rejected(Stage.RENDER, reason))


def _write(task: TuningTask, row: Candidate, entry: Entry, device: DeviceInfo) -> None:
    if entry.is_modelled and entry.modelled is not None:
        candidate_results.record_modelled(row, entry.modelled)
        return
    if entry.modelled is not None:
        candidate_results.record_prediction(row, entry.modelled)
    if entry.measurement is not None:
        candidate_results.record_result(task, row, entry.measurement, device)
    else:
        candidate_results.record_rejection(row, _rejection(entry))


def _final_result(
    task: TuningTask, row: Candidate, entry: Entry, device: DeviceInfo
) -> BenchmarkResult | None:
    """Return the result that counts: that of the final rounds if there were any. None for a
    rejection, and for a modelled candidate."""
    if entry.is_modelled and entry.modelled is not None:  # perhaps checked at more sizes by now
        candidate_results.record_modelled(row, entry.modelled, entry.reason)
        return None
    known, measured = row.result, entry.measurement
    if measured is None:
        if row.state != State.REJECTED:
            candidate_results.record_rejection(row, _rejection(entry))
            if known is not None:  # fast, but wrong at other sizes: no result
                known.delete()
        return None
    if known is not None and set(measured.samples_ns) <= set(known.samples_ns):
        return known
    return candidate_results.record_result(task, row, measured, device)


def _record_untried(task: TuningTask, row: Candidate | None, place: int, entry: Entry) -> None:
    """Record a candidate that was not tried."""
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


def earlier_results(task: TuningTask) -> dict[str, Measurement | Rejected]:
    """Return the results of an earlier attempt at this task, by kernel."""
    closed = task.candidates.filter(kernel__isnull=False).exclude(state__in=OPEN_STATES)
    rows = closed.filter(Q(result__isnull=False) | ~Q(stage="")).select_related("kernel", "result")
    return {
        row.kernel.name: row.result.measurement(row.kernel.name, task.run.device)
        if row.result is not None
        else Rejected(Stage(row.stage), row.reason, row.detail)
        for row in rows
        if row.kernel is not None
    }


def prior_results(target: str, template: str) -> list[PriorResult]:
    """Return winners of other problems on such a device, the newest first."""
    winners = Candidate.objects.filter(
        chosen=True, task__run__target=target, task__shape__template=template, result__isnull=False
    )
    newest = winners.order_by("-pk").values_list("task__shape", "config", "kernel__template")
    return [
        PriorResult(
            ProblemShape(template, tuple(shape["dtypes"]), tuple(shape["extents"])),
            config,
            own or "",
        )
        for shape, config, own in newest[:_MAX_PRIOR_RESULTS]
    ]


def _rejection(entry: Entry) -> Rejected:
    return Rejected(Stage(entry.stage or Stage.RUN), entry.reason, entry.detail)
