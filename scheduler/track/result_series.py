"""The series of a file of recorded results: each problem's selected candidate, with all its
conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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
    found: dict[str, list[MeasuredSeries]] = {}
    for run in results.runs:
        for task in run.tasks:
            for one in _chosen_series(run, task, results.kernels):
                found.setdefault(one.series, []).append(one)
    return tuple(_merge_runs(runs) for runs in found.values())


def _merge_runs(runs: list[MeasuredSeries]) -> MeasuredSeries:
    last = runs[-1]
    if len(runs) >= MIN_RATIO_SAMPLES:
        samples = np.array([float(np.median(one.samples)) for one in runs])
    else:
        samples = np.concatenate([one.samples for one in runs])
    return MeasuredSeries(last.series, last.group, samples, last.point)


def _chosen_series(
    run: RunRecord, task: TaskRecord, kernels: Mapping[str, KernelText]
) -> Iterator[MeasuredSeries]:
    for one in task.candidates:
        if one.chosen and one.timed and one.build:
            device = run.devices[one.timed.device]
            sizes = format_bindings(run.bindings)
            series = f"{task.title}{f' at {sizes}' if sizes else ''}, {run.target}, {device.name}"
            point = _point(run, task, one, one.build, one.timed, kernels)
            name = f"{series} [{task.problem[:8]}]"
            yield MeasuredSeries(name, run.graph.name, np.array(one.timed.samples_ns), point)


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
        readings={name: _reading(name, values) for name, values in timed.readings.items()},
        others={
            _text(each.config): Alternative(
                kernels[each.kernel].source_digest, each.build.code_digest
            )
            for each in task.candidates
            if each.build and each.build.compiler == build.compiler
        },
    )


def _text(config: Mapping[str, ConfigValue]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(config.items()))


def _reading(name: str, values: tuple[float, ...]) -> float:
    """Return the median of a clock; of a flag, the share of samples in which it was set."""
    found = np.median(values) if name.endswith("_mhz") else np.mean(values)
    return float(found) if len(values) else 0.0
