"""Store results: a candidate's measurement, modelled time or rejection, and the decision of a task.

Local runs, remote workers, imports and remeasurements use the same functions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.db.models.functions import Coalesce, Now

from codegen_app.graphs.models import Problem
from codegen_app.kernels.models import Build
from codegen_app.tuning.models import BenchmarkResult, Candidate, Environment, TuningTask
from codegen_app.tuning.services import selections
from codegen_app.tuning.signals import result_chosen
from codegen_app.workers.models import State
from scheduler.benchmark.measurement import Measurement
from scheduler.errors import Rejected
from scheduler.runtime.device import DeviceInfo
from scheduler.tuning.decision import decision_reason
from scheduler.tuning.modelled_time import ModelledTime
from scheduler.tuning.modelled_time import to_json as modelled_to_json
from scheduler.tuning.problems import ProblemCall

Outcome = Measurement | ModelledTime | Rejected


def record_result(
    candidate: Candidate,
    outcome: Outcome,
    device: DeviceInfo | None = None,
    *,
    prediction: ModelledTime | None = None,
    reason: str = "",
) -> BenchmarkResult | None:
    """Record the outcome of a candidate: its state, and a result if it was measured.

    A later measurement in the same run replaces the earlier one: the final rounds' times count.
    A modelled time is no result, since nothing was measured; ``reason`` says why that candidate is
    preferred or not. ``prediction`` is what was modelled before the measurement.
    """
    result = None
    finished = {"finished_at": Coalesce("finished_at", Now())}  # the final rounds finish later
    if isinstance(outcome, Rejected):
        fields: dict[str, Any] = rejection_fields(outcome) | {"result": None}
    elif isinstance(outcome, Measurement):
        assert candidate.build is not None
        assert device is not None
        task = candidate.task
        result = store_measurement(outcome, candidate.build, task.problem_id, device, task)
        fields = {"state": State.DONE, "result": result, **finished}
    else:
        prediction, reason = outcome, (reason or outcome.obstacle)[:500]
        fields = {"state": State.DONE, "reason": reason, **finished}
    if prediction is not None:
        fields["modelled"] = modelled_to_json(prediction)
    Candidate.objects.filter(pk=candidate.pk).update(**fields)
    return result


def rejection_fields(rejected: Rejected) -> dict[str, Any]:
    """Return the columns of a rejected candidate."""
    return {
        "state": State.REJECTED,
        "stage": rejected.stage,
        "reason": rejected.reason[:500],
        "detail": rejected.detail,
        "finished_at": Now(),
    }


def store_measurement(
    measured: Measurement,
    build: Build,
    problem_id: int,
    device: DeviceInfo,
    task: TuningTask | None = None,
    measured_at: datetime | None = None,
) -> BenchmarkResult:
    """Store a measurement of a build, in a task in place of the kernel's earlier one.

    ``measured_at`` is for an imported measurement, which is older than its row.
    """
    facts = environment_fields(device, build)
    environment, _ = Environment.objects.get_or_create(digest=facts["digest"], defaults=facts)
    fields = {
        "build": build,
        "problem_id": problem_id,
        "environment": environment,
        **BenchmarkResult.fields_of(measured),
    }
    if task is None:
        return BenchmarkResult.objects.create(kernel=build.kernel, **fields)
    result, _ = BenchmarkResult.objects.update_or_create(
        task=task, kernel=build.kernel, defaults=fields
    )
    if measured_at is not None:  # the latest result of a bucket is shown
        BenchmarkResult.objects.filter(pk=result.pk).update(created_at=measured_at)
    return result


def environment_fields(device: DeviceInfo, build: Build) -> dict[str, Any]:
    """Return the columns of a device with the compiler of the code that runs on it; equal
    environments have equal digests."""
    facts = {
        "device": device.id,
        "device_name": device.name,
        "target": device.target,
        "driver": device.driver,
        "runtime": device.runtime,
        "compiler": f"{build.toolchain} {build.toolchain_version}"[:200],
        "compute_units": device.compute_units,
        "memory_bytes": device.memory_bytes,
        "emulated": device.emulated,
        "attributes": dict(device.attributes),
    }
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    return {"digest": digest, **facts}


def add_rejected(task: TuningTask, rejected: Iterable[Mapping[str, Any]], first: int) -> None:
    """Record the configurations that a rule rejected as candidates. ``rejected`` are lines as
    ``recording.rejected_line`` returns them."""
    Candidate.objects.bulk_create(
        Candidate(
            task=task,
            position=position,
            config=line["config"],
            **rejection_fields(Rejected(line["stage"], line["reason"], line["detail"])),
        )
        for position, line in enumerate(rejected, start=first)
    )


def choose(
    chosen: Candidate,
    result: BenchmarkResult | None,
    tied: Collection[Candidate],
    measured_at: datetime | None = None,
    offered: Collection[str] | None = None,
) -> None:
    """Record the tuner's decision for a problem. ``tied`` are the candidates that are not slower
    than the fastest by the test.

    A measured ``result`` is selected if it is better than the selected kernel's, and is added to
    the problem's history; the candidate's reason says what decided, and whether it is selected.
    ``offered`` are the kernels that the run could try. ``measured_at`` is for imported results,
    which are older than their rows and keep their recorded reason.
    """
    Candidate.objects.filter(pk__in=[row.pk for row in tied]).update(tied=True)
    Candidate.objects.filter(pk=chosen.pk).update(chosen=True)
    if result is None:
        return
    _, why = selections.offer(result, f"run {chosen.task.run_id}", offered)
    if measured_at is None:
        decided = decision_reason(
            max(0, len(tied) - 1),
            is_default=chosen.position == 0,
            samples=len(result.samples_ns),
        )
        reason = "; ".join(filter(None, (decided, why)))
        Candidate.objects.filter(pk=chosen.pk).update(reason=reason[:500])
    result_chosen.send(BenchmarkResult, result=result, measured_at=measured_at)


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
