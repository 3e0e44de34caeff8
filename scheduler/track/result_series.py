"""The series of a file of recorded results: each problem's selected candidate, with all its
conditions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scheduler.benchmark.metrics import TIME
from scheduler.codegen.kernel import ConfigValue
from scheduler.ir.bindings import format_bindings
from scheduler.results.model import (
    BuildFacts,
    CandidateRecord,
    KernelText,
    MeasurementRecord,
    Results,
    RunRecord,
    TaskRecord,
)
from scheduler.track.compare import MeasuredSeries
from scheduler.track.ratios import MIN_RATIO_SAMPLES
from scheduler.track.sides import Alternative, CodeObject, Compiler, Environment, Point


def series_from_results(results: Results) -> tuple[MeasuredSeries, ...]:
    """Return a series for each problem, sizes, target and device model, in the file's order. If
    enough runs repeat one, its samples are their medians, else all samples of its runs together;
    its conditions are those of its last run."""
    by_name: dict[str, list[MeasuredSeries]] = {}
    selected_candidates = (
        (run, task, candidate)
        for run in results.runs
        for task in run.tasks
        for candidate in task.candidates
        if candidate.chosen
    )
    for run, task, selected in selected_candidates:
        if not selected.timed or not selected.build:
            continue
        device = run.devices[selected.timed.device]
        sizes = format_bindings(run.bindings)
        series = f"{task.title}{f' at {sizes}' if sizes else ''}, {run.target}, {device.name}"
        name = f"{series} [{task.problem[:8]}]"
        samples = np.array(selected.timed.samples_ns)
        point = _point(run, task, selected, selected.build, selected.timed, results.kernels)
        by_name.setdefault(name, []).append(MeasuredSeries(name, run.graph.name, samples, point))
    merged = []
    for name, runs in by_name.items():
        all_samples = [series.samples for series in runs]
        if len(runs) >= MIN_RATIO_SAMPLES:
            samples = np.array([float(np.median(samples)) for samples in all_samples])
        else:
            samples = np.concatenate(all_samples)
        merged.append(MeasuredSeries(name, runs[-1].group, samples, runs[-1].point))
    return tuple(merged)


def _point(
    run: RunRecord,
    task: TaskRecord,
    one: CandidateRecord,
    build: BuildFacts,
    timed: MeasurementRecord,
    kernels: Mapping[str, KernelText],
) -> Point:
    time = timed.metrics[TIME]
    compiler = run.compilers[build.compiler]
    device = run.devices[timed.device]
    # The median of a clock; of a flag, the share of samples in which it was set.
    readings = {
        name: float(np.median(values) if name.endswith("_mhz") else np.mean(values))
        if values
        else 0.0
        for name, values in timed.readings.items()
    }
    return Point(
        value=time.value,
        low=time.low,
        high=time.high,
        n=len(timed.samples_ns),
        revision=run.origin.commit,
        source_digest=kernels[one.kernel].source_digest,
        configuration=_text(one.config),
        target=run.target,
        compiler=Compiler(compiler.name, compiler.version, compiler.flags, compiler.digest),
        code=CodeObject(build.code_digest, resources=build.resources),
        environment=Environment(
            driver=device.driver, runtime=device.runtime, device=device.name, host=run.origin.host
        ),
        readings=readings,
        others={
            _text(record.config): Alternative(
                kernels[record.kernel].source_digest, record.build.code_digest
            )
            for record in task.candidates
            if record.build and record.build.compiler == build.compiler
        },
    )


def _text(config: Mapping[str, ConfigValue]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(config.items()))
