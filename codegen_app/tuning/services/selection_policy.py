"""Whether a run's winner is better than the selected kernel, and why: text for the run."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from codegen_app.kernels.models import GeneratedKernel
from codegen_app.tuning.models import BenchmarkResult, Candidate, Selection
from codegen_app.tuning.queries.measurements import (
    MIN_SAMPLES,
    CurrentMeasurement,
    current_measurement,
    environment_change,
)
from codegen_app.tuning.queries.serving import bucket_results
from codegen_app.workers.models import State
from scheduler.benchmark.timing import default_plan
from scheduler.stats.intervals import bounds_text
from scheduler.track.units import format_value

FIRST = "selected: no kernel was selected before"
KEPT = "already selected"


def compare(
    result: BenchmarkResult, serving: Selection | None, offered: Collection[str] | None = None
) -> tuple[bool, str]:
    """Return whether the measured kernel replaces the selected one, and why or why not.

    A run confirms a new kernel by timing it in turns with the selected one. ``offered`` are the
    kernels that it could try: a selected kernel that is not among them cannot be generated any more
    and is replaced. None for an imported run, which may be compared with an earlier measurement in
    the same environment.
    """
    if serving is None:
        return True, FIRST
    if serving.kernel_id == result.kernel_id:
        return False, KEPT
    name = serving.kernel.name
    rejection = Candidate.objects.filter(
        task=result.task_id,
        task__isnull=False,
        kernel=serving.kernel_id,
        state__in=(State.REJECTED, State.QUARANTINED),
    ).first()
    if rejection is not None:
        return True, f"replaces {name}, which this run rejected: {rejection.reason}"
    rival = _result_in_run(result, serving)
    if rival is None and offered is not None:
        if name not in offered:
            return True, f"replaces {name}, which this version does not generate"
        return False, f"does not replace {name}: not confirmed, this run did not measure {name}"
    if rival is None:
        measurement = find_measurement(serving.bucket, serving.kernel)
        rival = measurement.result if measurement else serving.result
    if rival is None:
        return True, f"replaces {name}, which has no time"
    is_better, why = _compare_measured(result, rival, is_run=offered is not None)
    return is_better, f"{'replaces' if is_better else 'does not replace'} {name}: {why}"


def find_measurement(bucket: dict[str, Any], kernel: GeneratedKernel) -> CurrentMeasurement | None:
    """The measurement of a kernel in the bucket of a selection (1 query)."""
    rows = bucket_results(bucket["device_name"], bucket["target"], bucket["toolchain"]).filter(
        kernel=kernel, problem=bucket["problem_id"], bindings=bucket["bindings"]
    )
    return current_measurement(rows.select_related("environment", "task"))


def _compare_measured(
    result: BenchmarkResult, rival: BenchmarkResult, *, is_run: bool
) -> tuple[bool, str]:
    in_one_run = result.task_id is not None and rival.task_id == result.task_id
    samples, least = len(result.samples_ns), MIN_SAMPLES
    if is_run:
        # On a device, screening takes fewer: if the budget ended there, nothing was timed in turns.
        samples = min(samples, len(rival.samples_ns))
        least = default_plan(emulated=result.emulated).min_samples
    if samples < least:
        return False, f"n = {samples}, but a comparison needs {least} samples"
    under = "" if in_one_run else environment_change(rival.environment, result.environment)
    if under:
        return False, f"not measured in this run, only earlier under other conditions ({under})"
    rival_run = f"run {rival.task.run_id}" if rival.task else "another run"
    where = "both in this run" if in_one_run else f"the latter in {rival_run}"
    figures = f"{_figures(result)} vs. {_figures(rival)}, {where}"
    if result.high_ns < rival.low_ns:
        return True, figures
    slower = result.low_ns > rival.high_ns
    return False, f"{'slower' if slower else 'within the noise'}, {figures}"


def _result_in_run(result: BenchmarkResult, serving: Selection) -> BenchmarkResult | None:
    """Return the selected kernel's result in the run of ``result``."""
    rows = BenchmarkResult.objects.filter(
        task=result.task_id, task__isnull=False, kernel=serving.kernel_id
    )
    return rows.select_related("environment", "task").first()


def _figures(result: BenchmarkResult) -> str:
    median, low, high = (
        format_value(ns, "ns") for ns in (result.median_ns, result.low_ns, result.high_ns)
    )
    n = len(result.samples_ns)
    return f"{median} ({bounds_text(n, low, high)}, n {n})"
