"""A task of a run: the tuner tries its candidates and decides; the rows store its results.

With a budget the candidates are all that the generator has for the run's target; without one, those
that the run was planned with, a sample. Each is recorded as soon as it is timed or rejected, so
that a worker that takes over the task reads earlier results from the rows and measures only the
rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from codegen_app.kernels.models import Build
from codegen_app.kernels.services import builds, engine, recording
from codegen_app.kernels.services.remote_builds import RemoteBuilds
from codegen_app.tuning.models import BenchmarkResult, Candidate, TuningRun, TuningTask
from codegen_app.tuning.queries import serving
from codegen_app.tuning.services import (
    budgets,
    candidate_results,
    ledger,
    modelled_tuning,
    run_requests,
)
from codegen_app.tuning.services.candidate_results import Outcome
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
from scheduler.tuning.modelled_time import ModelledTime
from scheduler.tuning.problems import TuningProblem
from scheduler.tuning.run import SearchOptions
from scheduler.tuning.tuner import Event
from scheduler.tuning.warm_start import PriorResult

_MAX_PRIOR_RESULTS = 200
# A planned kernel of an earlier version of the generator cannot be called any more.
_UNKNOWN_KERNEL = Rejected(
    Stage.RENDER, "this generator version does not generate this kernel; import the graph again"
)


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

    def begin(self, problem: TuningProblem) -> None:
        begin_task(self._task, problem)

    def options(self, problem: TuningProblem) -> SearchOptions:
        run = self._task.run
        options = SearchOptions(
            strategy=run.strategy,
            seed=candidate_results.seed(self._task.problem),
            known=prior_results(run.target, problem.callers[0].kernel.template),
            selected=serving.selected_kernel(self._task.problem, run, self._device.name),
        )
        if self._device.modelled:
            return options
        return replace(
            options,
            start=modelled_tuning.warm_start(self._task),
            measured=earlier_results(self._task),
        )

    def pool(self, problem: TuningProblem) -> RemoteBuilds:
        requests = CandidateBuilds(self._task, self._scheduled, problem, self.planned)
        return RemoteBuilds(requests.request_build)

    def note(self, event: Event) -> None:
        """Record a candidate's new state. Raises ``Cancelled`` once the claim is lost: another
        worker records then."""
        entry, outcome = event.entry, _outcome(event.entry)
        if record_outcome(self._task, entry.kernel, outcome, self._device, entry.modelled) is None:
            self._cancellation.cancel()
            raise Cancelled


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
            build, obstacle = None, ""
            try:
                priority = run_requests.build_priority(run)
                build = builds.request_builds([kernel], run.target, priority=priority)[kernel.pk]
            except MachineError:
                raise
            except UserError as error:
                obstacle = str(error)
            config = dict(kernel.config)
            defaults: dict[str, Any] = {"position": place, "build": build, "config": config}
            if build is None:
                rejected = Rejected(Stage.COMPILE, obstacle)
                defaults |= candidate_results.rejection_fields(rejected)
            Candidate.objects.get_or_create(task=self._task, kernel=kernel, defaults=defaults)
        if build is None:
            raise UserError(obstacle)
        return build


@transaction.atomic
def record_outcome(
    task: TuningTask,
    kernel: str,
    outcome: Outcome,
    device: DeviceInfo,
    prediction: ModelledTime | None,
) -> int | None:
    """Record the result of a candidate of a claimed task, once; return how many rows changed.
    Returns None and writes nothing if the claim no longer holds."""
    if not work.extend(task):
        return None
    waiting = task.candidates.filter(kernel__name=kernel, state__in=OPEN_STATES)
    rows = list(waiting.select_related("build__kernel"))
    for row in rows:
        candidate_results.record_result(row, outcome, device, prediction=prediction)
    return len(rows)


def begin_task(task: TuningTask, problem: TuningProblem) -> None:
    """Record the problem's description; the first attempt of a search also records what rules
    rejected."""
    fields = candidate_results.call_fields(problem.call)
    TuningTask.objects.filter(pk=task.pk).update(**fields)
    waiting = task.candidates.filter(state__in=OPEN_STATES, build__state=State.DONE)
    waiting.update(state=State.RUNNING)
    if task.run.has_budget and not task.candidates.filter(kernel__isnull=True).exists():
        rejected = [recording.rejected_line(config) for config in problem.rejected]
        candidate_results.add_rejected(task, rejected, first=len(problem.callers))


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
            for row in rows.select_related("kernel", "build__kernel", "result", "task")
            if row.kernel is not None
        }
        ledger.drop_builds(rows)
        if not task.run.has_budget:
            waiting = task.candidates.filter(state__in=OPEN_STATES)
            for unknown in waiting.exclude(kernel__name__in=decided.offered):
                candidate_results.record_result(unknown, _UNKNOWN_KERNEL)
        tied: list[Candidate] = []
        chosen: tuple[Candidate, BenchmarkResult | None] | None = None
        for place, entry in decided.lines:
            row = by_kernel.get(entry.kernel)
            if row is None or entry.state is CandidateState.UNTRIED:
                reason = (entry.reason or "the budget was spent")[:500]
                untried = {"state": State.CANCELLED, "reason": reason, "finished_at": Now()}
                if row is None:
                    config = dict(entry.config)
                    Candidate.objects.create(task=task, position=place, config=config, **untried)
                else:
                    still_open = Candidate.objects.filter(pk=row.pk, state__in=OPEN_STATES)
                    still_open.update(**untried)
                continue
            result = _final_result(row, entry, device)
            if entry.tied:
                tied.append(row)
            if entry.state is CandidateState.CHOSEN:
                chosen = row, result
        if chosen is not None:
            candidate_results.choose(*chosen, tied, offered=decided.offered)
        ledger.close_run(task.run_id)


def _outcome(entry: Entry) -> Outcome:
    if entry.is_modelled and entry.modelled is not None:
        return entry.modelled
    return entry.measurement or Rejected(
        Stage(entry.stage or Stage.RUN), entry.reason, entry.detail
    )


def _final_result(row: Candidate, entry: Entry, device: DeviceInfo) -> BenchmarkResult | None:
    """Return the result that counts: that of the final rounds if there were any. None for a
    rejection, and for a modelled candidate."""
    outcome, earlier = _outcome(entry), row.result
    if isinstance(outcome, Rejected) and row.state == State.REJECTED:
        return None
    if (
        isinstance(outcome, Measurement)
        and earlier is not None
        and set(outcome.samples_ns) <= set(earlier.samples_ns)
    ):
        return earlier
    result = candidate_results.record_result(row, outcome, device, reason=entry.reason)
    if isinstance(outcome, Rejected) and earlier is not None:
        earlier.delete()  # fast, but wrong at other sizes
    return result


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
            own_template or "",
        )
        for shape, config, own_template in newest[:_MAX_PRIOR_RESULTS]
    ]
