"""Recording a candidate's measurement or rejection, and the decision."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.db.models.functions import Coalesce, Now

from codegen_app.graphs.models import Problem
from codegen_app.tuning.models import BenchmarkResult, Candidate, TuningTask
from codegen_app.tuning.services import environments, selections
from codegen_app.tuning.signals import result_chosen
from codegen_app.workers.models import State
from scheduler.benchmark.measurement import Measurement
from scheduler.errors import Rejected
from scheduler.runtime.device import DeviceInfo
from scheduler.tuning.decision import decision_reason
from scheduler.tuning.modelled_time import ModelledTime
from scheduler.tuning.modelled_time import to_json as modelled_to_json
from scheduler.tuning.problems import ProblemCall, TuningProblem


def record_result(
    task: TuningTask, candidate: Candidate, measured: Measurement, device: DeviceInfo
) -> BenchmarkResult:
    """Record the candidate's result, replacing an earlier one of this run: the final rounds' times
    count, not the first measurement of the same kernel."""
    assert candidate.kernel is not None
    assert candidate.build is not None
    result, _ = BenchmarkResult.objects.update_or_create(
        task=task,
        kernel=candidate.kernel,
        defaults={
            "build": candidate.build,
            "problem_id": task.problem_id,
            "environment": environments.record(device, candidate.build),
            **BenchmarkResult.fields_of(measured),
        },
    )
    Candidate.objects.filter(pk=candidate.pk).update(
        state=State.DONE,
        result=result,
        finished_at=Coalesce("finished_at", Now()),  # the final rounds finish later
    )
    return result


def record_modelled(candidate: Candidate, modelled: ModelledTime, reason: str = "") -> None:
    """Record the candidate's modelled time; it has no result, since nothing was measured.
    ``reason`` says why it is not preferred, or why it is preferred over others."""
    Candidate.objects.filter(pk=candidate.pk).update(
        state=State.DONE,
        modelled=modelled_to_json(modelled),
        reason=(reason or modelled.obstacle)[:500],
        finished_at=Coalesce("finished_at", Now()),
    )


def record_prediction(candidate: Candidate, modelled: ModelledTime) -> None:
    """Record what was modelled of a candidate before it was measured."""
    Candidate.objects.filter(pk=candidate.pk).update(modelled=modelled_to_json(modelled))


def choose_modelled(chosen: Candidate, tied: Collection[Candidate]) -> None:
    """Record the decision of a run of modelled times: it selects no kernel and is in no history."""
    _mark_chosen(chosen, tied)


def record_rejection(candidate: Candidate, rejected: Rejected) -> None:
    """Record why the candidate was rejected."""
    Candidate.objects.filter(pk=candidate.pk).update(
        state=State.REJECTED,
        result=None,
        stage=rejected.stage,
        reason=rejected.reason[:500],
        detail=rejected.detail,
        finished_at=Now(),
    )


def choose(
    chosen: Candidate,
    result: BenchmarkResult,
    tied: Collection[Candidate],
    measured_at: datetime | None = None,
) -> None:
    """Record the tuner's decision for a problem, select the chosen kernel if it is better than the
    selected one, and add its time to the problem's history. ``tied`` are the candidates that are
    not slower than the fastest by the test; ``measured_at`` is for results that are older than
    their rows. The candidate's reason says what decided, and whether it is selected."""
    _mark_chosen(chosen, tied)
    offered = selections.offer(result, f"run {chosen.task.run_id}")
    if measured_at is None:  # imported results keep their recorded reason
        _record_reason(chosen, result, tied, offered.why)
    result_chosen.send(BenchmarkResult, result=result, measured_at=measured_at)


def _record_reason(
    chosen: Candidate, result: BenchmarkResult, tied: Collection[Candidate], why: str
) -> None:
    others = max(0, len(tied) - 1)
    samples = len(result.samples_ns)
    decided = decision_reason(others, is_default=chosen.position == 0, samples=samples)
    reason = "; ".join(filter(None, (decided, why)))
    Candidate.objects.filter(pk=chosen.pk).update(reason=reason[:500])


def _mark_chosen(chosen: Candidate, tied: Collection[Candidate]) -> None:
    Candidate.objects.filter(pk__in=[row.pk for row in tied]).update(tied=True)
    Candidate.objects.filter(pk=chosen.pk).update(chosen=True)


def describe_call(task: TuningTask, problem: TuningProblem) -> None:
    """Record the call as the autotune log shows it, and what makes the problem comparable."""
    TuningTask.objects.filter(pk=task.pk).update(**call_fields(problem.call))


def call_fields(call: ProblemCall) -> dict[str, Any]:
    """Return what a task records of its call."""
    return {
        "title": call.title[:300],
        "operands": [
            {"dtype": arg.dtype, "size": list(arg.size), "stride": list(arg.stride)}
            for arg in call.tensors
            if not arg.is_output
        ],
        "shape": asdict(call.shape),
    }


def seed(problem: Problem) -> int:
    """Return the seed of a problem's inputs: equal problems get equal inputs in every run."""
    return int(problem.digest[:16], 16)
