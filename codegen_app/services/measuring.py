"""Measuring: the candidates of one problem, checked and timed on a device of this host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from django.db import transaction
from django.db.models.functions import Now

from codegen_app.models import (
    OPEN_STATES,
    BenchmarkResult,
    Candidate,
    State,
    TuningRun,
    TuningTask,
)
from codegen_app.services import (
    artifacts,
    devices,
    engine,
    ledger,
    limits,
    outcomes,
    searching,
    work,
)
from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.measure import Outcome, measure
from scheduler.benchmark.measurement import Measurement
from scheduler.benchmark.problem import make_case
from scheduler.benchmark.protocol import Stopwatch
from scheduler.benchmark.worker import WorkerLostError
from scheduler.build.process import Cancellation, Cancelled
from scheduler.outcome import Rejected, Stage, UserError
from scheduler.runtime.device import DeviceInfo


def run_task(task: TuningTask) -> None:
    """Do a claimed task. Raises ``work.LeaseLostError`` when the claim is lost meanwhile."""
    run = task.run
    TuningRun.objects.filter(pk=run.pk, state=State.QUEUED).update(
        state=State.RUNNING, started_at=Now()
    )
    cancellation = Cancellation()
    with (
        work.heartbeat(task, cancellation.cancel) as lost,
        devices.held(run, lost) as device,
    ):
        if device is None:
            raise work.LeaseLostError(f"task {task.pk} was taken away while it waited")
        try:
            if isinstance(device, Rejected):
                _give_up(task, device)
            else:
                _keep_work(task)
                if run.has_budget:
                    searching.search(task, device, cancellation)
                else:
                    _measure_recorded(task, device, cancellation)
        except Cancelled:
            raise work.LeaseLostError(f"task {task.pk} was taken away") from None
        except UserError as error:  # sizes that no memory holds, for one
            _give_up(task, Rejected(Stage.LOAD, str(error)))


def _keep_work(task: TuningTask) -> None:
    """What the problem asks for at the sizes of this run, beside which its times are shown."""
    scheduled = engine.scheduled(task.run.graph.file.digest)
    node = scheduled.node(task.template_node.name)
    limits.record(task.problem, node, scheduled.schedule.lowered, task.run.bindings)


def _measure_recorded(task: TuningTask, device: DeviceInfo, cancellation: Cancellation) -> None:
    """Measure the candidates that the run was planned with."""
    watch = Stopwatch()
    found = _measure(task, _begin(task), device, cancellation)
    _record(task, found, device, watch.seconds())


def _begin(task: TuningTask) -> list[Candidate]:
    """The candidates to measure, marked as running (those of a dead worker's try included)."""
    waiting = task.candidates.filter(state__in=OPEN_STATES, build__state=State.DONE)
    waiting.update(state=State.RUNNING)
    return list(waiting.select_related("kernel", "build__library").order_by("position"))


def _measure(
    task: TuningTask,
    candidates: Sequence[Candidate],
    device: DeviceInfo,
    cancellation: Cancellation,
) -> dict[int, Outcome]:
    """Outcomes by the candidates' keys in the database."""
    built, lost = _built(task, candidates)
    if not built:
        return lost
    scheduled = engine.scheduled(task.run.graph.file.digest)
    case = make_case(
        scheduled.node(task.template_node.name),
        scheduled.schedule.lowered,
        dict(task.run.bindings),
        np.random.default_rng(outcomes.seed(task.problem)),
    )
    try:
        measured = measure(
            device.id,
            case,
            list(built.values()),
            emulated=device.emulated,
            cancellation=cancellation,
        )
    except WorkerLostError as gone:  # the device cannot even hold the problem
        return lost | dict.fromkeys(built, gone.rejected)
    return lost | {pk: measured[candidate.key] for pk, candidate in built.items()}


def _built(
    task: TuningTask, candidates: Sequence[Candidate]
) -> tuple[dict[int, BuiltCandidate], dict[int, Outcome]]:
    """What can be loaded, and the candidates that this version of the engine does not make."""
    callers = engine.callers(task.run.graph.file.digest, task.template_node.name)
    built: dict[int, BuiltCandidate] = {}
    lost: dict[int, Outcome] = {}
    for candidate in candidates:
        assert candidate.kernel is not None
        assert candidate.build is not None
        assert candidate.build.library is not None
        caller = callers.get(candidate.kernel.name)
        if caller is None:
            reason = "this version of the generator does not make this kernel; import again"
            lost[candidate.pk] = Rejected(Stage.RENDER, reason)
            continue
        if not built:
            outcomes.describe_call(task, caller)
        library = artifacts.local_file(candidate.build.library, ".so")
        request = caller.benchmark_request(task.run.target, task.run.bindings)
        built[candidate.pk] = BuiltCandidate(caller.name, str(library), request)
    return built, lost


def _record(
    task: TuningTask, found: Mapping[int, Outcome], device: DeviceInfo, spent_s: float
) -> None:
    """Write what became of each candidate, choose the winner, close the task."""
    with transaction.atomic():
        # The run before its tasks before their candidates, as everywhere.
        TuningRun.objects.select_for_update().get(pk=task.run_id)
        work.finish(task, State.DONE, spent_s=spent_s)
        results: list[tuple[Candidate, BenchmarkResult]] = []
        for candidate in task.candidates.filter(pk__in=found).select_related("build", "kernel"):
            outcome = found[candidate.pk]
            if isinstance(outcome, Measurement):
                result = outcomes.record_result(task, candidate, outcome, device)
                results.append((candidate, result))
            else:
                outcomes.record_loss(candidate, outcome)
        outcomes.choose(task, results)
        ledger.close_run(task.run_id)


def _give_up(task: TuningTask, why: Rejected) -> None:
    """Close a task that cannot be measured here, whatever the candidate."""
    with transaction.atomic():
        TuningRun.objects.select_for_update().get(pk=task.run_id)
        work.finish(task, State.REJECTED, stage=why.stage, reason=why.reason)
        for candidate in task.candidates.filter(state__in=OPEN_STATES):
            outcomes.record_loss(candidate, why)
        ledger.close_run(task.run_id)
