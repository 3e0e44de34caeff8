"""Measuring: the candidates of one problem, checked and timed on a device of this host."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import numpy as np
from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from codegen_app.models import (
    OPEN_STATES,
    BenchmarkResult,
    Candidate,
    Problem,
    State,
    TuningRun,
    TuningTask,
)
from codegen_app.services import artifacts, engine, environments, ledger, selections, work
from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.measure import Outcome, Progress, measure
from scheduler.benchmark.measurement import Measurement
from scheduler.benchmark.problem import make_case
from scheduler.benchmark.worker import WorkerLostError
from scheduler.outcome import Rejected, Stage
from scheduler.runtime.device import Absent, DeviceInfo
from scheduler.runtime.devices import probe
from scheduler.runtime.lock import exclusive


class _StoppedError(Exception):
    """The claim is lost (the run was cancelled, or the lease ran out): stop at once."""


def run_task(task: TuningTask) -> None:
    """Do a claimed task. Raises ``work.LeaseLostError`` when the claim is lost meanwhile."""
    run = task.run
    TuningRun.objects.filter(pk=run.pk, state=State.QUEUED).update(
        state=State.RUNNING, started_at=Now()
    )
    with work.heartbeat(task) as lost:
        device = _device(run.device)
        if isinstance(device, Rejected):
            _record(task, _everything_lost(task, device), None)
            return
        with exclusive(device.id, settings.DEVICE_LOCKS_DIR):
            candidates = _begin(task)
            try:
                outcomes = _measure(task, candidates, device, lost)
            except _StoppedError:
                raise work.LeaseLostError(f"task {task.pk} was taken away") from None
        _record(task, outcomes, device)


def _begin(task: TuningTask) -> list[Candidate]:
    """The candidates to measure, marked as running (those of a dead worker's try included)."""
    waiting = task.candidates.filter(state__in=OPEN_STATES, build__state=State.DONE)
    waiting.update(state=State.RUNNING)
    return list(waiting.select_related("kernel", "build__library").order_by("position"))


def _measure(
    task: TuningTask,
    candidates: Sequence[Candidate],
    device: DeviceInfo,
    lost: threading.Event,
) -> dict[int, Outcome]:
    """Outcomes by the candidates' keys in the database."""
    built, outcomes = _built(task, candidates)
    if not built:
        return outcomes
    scheduled = engine.scheduled(task.run.graph.file.digest)
    case = make_case(
        scheduled.node(task.template_node.name),
        scheduled.schedule.lowered,
        dict(task.run.bindings),
        np.random.default_rng(_seed(task.problem)),
    )

    def stop_if_lost(_: Progress) -> None:
        if lost.is_set():
            raise _StoppedError

    try:
        measured = measure(
            device.id,
            case,
            list(built.values()),
            emulated=device.emulated,
            on_progress=stop_if_lost,
        )
    except WorkerLostError as gone:  # the device cannot even hold the problem
        return outcomes | dict.fromkeys(built, gone.rejected)
    return outcomes | {pk: measured[candidate.key] for pk, candidate in built.items()}


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
        library = artifacts.local_file(candidate.build.library, ".so")
        request = caller.benchmark_request(task.run.target, task.run.bindings)
        built[candidate.pk] = BuiltCandidate(caller.name, str(library), request)
    return built, lost


def _record(task: TuningTask, outcomes: Mapping[int, Outcome], device: DeviceInfo | None) -> None:
    """Write what became of each candidate, choose the winner, close the task."""
    with transaction.atomic():
        # The run before its tasks before their candidates, as everywhere.
        TuningRun.objects.select_for_update().get(pk=task.run_id)
        work.finish(task, State.DONE)
        results: list[tuple[Candidate, BenchmarkResult]] = []
        for candidate in task.candidates.filter(pk__in=outcomes).select_related("build", "kernel"):
            outcome = outcomes[candidate.pk]
            if isinstance(outcome, Measurement):
                assert device is not None
                results.append((candidate, _record_result(task, candidate, outcome, device)))
            else:
                _record_loss(candidate, outcome)
        if results:
            winner, result = min(results, key=lambda pair: (pair[1].median_ns, pair[0].position))
            Candidate.objects.filter(pk=winner.pk).update(chosen=True)
            selections.offer(result, f"run {task.run_id}")
        ledger.close_run(task.run_id)


def _record_result(
    task: TuningTask, candidate: Candidate, measured: Measurement, device: DeviceInfo
) -> BenchmarkResult:
    assert candidate.kernel is not None
    assert candidate.build is not None
    result = BenchmarkResult.objects.create(
        kernel=candidate.kernel,
        build=candidate.build,
        problem_id=task.problem_id,
        environment=environments.record(device, candidate.build),
        bindings=dict(measured.bindings),
        samples_ns=list(measured.samples_ns),
        batch=measured.batch,
        median_ns=measured.median_ns,
        low_ns=measured.low_ns,
        high_ns=measured.high_ns,
        rejected_samples=[list(sample) for sample in measured.rejected],
        check_max_error=measured.check.max_error,
        check_bound=measured.check.bound,
        check_ratio=measured.check.ratio,
        check_detail=measured.check.detail,
        emulated=measured.emulated,
    )
    Candidate.objects.filter(pk=candidate.pk).update(
        state=State.DONE, result=result, finished_at=Now()
    )
    return result


def _record_loss(candidate: Candidate, rejected: Rejected) -> None:
    Candidate.objects.filter(pk=candidate.pk).update(
        state=State.REJECTED,
        stage=rejected.stage,
        reason=rejected.reason[:500],
        detail=rejected.detail,
        finished_at=Now(),
    )


def _everything_lost(task: TuningTask, why: Rejected) -> dict[int, Outcome]:
    waiting = task.candidates.filter(Q(state__in=OPEN_STATES))
    return dict.fromkeys(waiting.values_list("pk", flat=True), why)


def _device(device_id: str) -> DeviceInfo | Rejected:
    """The device of that id here, or why there is none."""
    found = probe()
    for one in found:
        if isinstance(one, DeviceInfo) and one.id == device_id:
            return one
    kind = device_id.partition(":")[0]
    reasons = [one.reason for one in found if isinstance(one, Absent) and one.kind == kind]
    why = reasons[0] if reasons else "no such device here"
    return Rejected(Stage.LOAD, f"device {device_id}: {why}")


def _seed(problem: Problem) -> int:
    """Equal problems get equal inputs, in every run."""
    return int(problem.digest[:16], 16)
