"""Writing what came of a candidate: its measurement, or how it was lost."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models.functions import Coalesce, Now

from codegen_app.models import BenchmarkResult, Candidate, Problem, State, TuningTask
from codegen_app.services import environments, selections
from scheduler.benchmark.measurement import Measurement
from scheduler.codegen.benchmark_request import TensorArg
from scheduler.codegen.caller import TemplateCaller
from scheduler.outcome import Rejected
from scheduler.runtime.device import DeviceInfo


def record_result(
    task: TuningTask, candidate: Candidate, measured: Measurement, device: DeviceInfo
) -> BenchmarkResult:
    """The candidate's result, in place of an earlier one of this run."""
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
        state=State.DONE,
        result=result,
        finished_at=Coalesce("finished_at", Now()),  # the last rounds come after the fact
    )
    return result


def record_loss(candidate: Candidate, rejected: Rejected) -> None:
    """How the candidate was lost."""
    Candidate.objects.filter(pk=candidate.pk).update(
        state=State.REJECTED,
        result=None,
        stage=rejected.stage,
        reason=rejected.reason[:500],
        detail=rejected.detail,
        finished_at=Now(),
    )


def choose(task: TuningTask, results: Sequence[tuple[Candidate, BenchmarkResult]]) -> None:
    """Mark the winner of a problem, and let it serve if it is better than what serves now.

    What lies within the fastest one's interval ties with it: the default stays then, else the
    first by name wins.
    """
    if not results:
        return
    fastest = min((result for _, result in results), key=lambda result: result.median_ns)
    tied = [pair for pair in results if pair[1].median_ns <= fastest.high_ns]
    winner, result = min(tied, key=lambda pair: (pair[0].position != 0, pair[1].kernel.name))
    if len(tied) > 1:
        Candidate.objects.filter(pk__in=[row.pk for row, _ in tied]).update(reason=Candidate.TIED)
    Candidate.objects.filter(pk=winner.pk).update(chosen=True)
    selections.offer(result, f"run {task.run_id}")


def describe_call(task: TuningTask, caller: TemplateCaller) -> None:
    """Keep the call as the autotune log shows it, and what makes the problem comparable."""
    request = caller.benchmark_request(task.run.target, task.run.bindings)
    tensors = [arg for arg in request.args if isinstance(arg, TensorArg)]
    TuningTask.objects.filter(pk=task.pk).update(
        title=caller.problem[:300],
        operands=[
            {"dtype": arg.dtype, "size": list(arg.size), "stride": list(arg.stride)}
            for arg in tensors
            if not arg.is_output
        ],
        shape={
            "template": caller.kernel.template,
            "dtypes": [arg.dtype for arg in tensors],
            "extents": [size for arg in tensors for size in arg.size],
        },
    )


def seed(problem: Problem) -> int:
    """Equal problems get equal inputs, in every run."""
    return int(problem.digest[:16], 16)
