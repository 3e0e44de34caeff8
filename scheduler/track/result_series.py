"""The series of a file of recorded results: each problem's selected candidate, with all its
conditions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scheduler.benchmark.metrics import TIME
from scheduler.codegen.kernel import ConfigValue
from scheduler.ir.bindings import format_bindings
from scheduler.results.model import (
    Results,
)
from scheduler.track.compared_series import MeasuredSeries
from scheduler.track.ratios import MIN_RATIO_SAMPLES
from scheduler.track.sides import Alternative, CodeObject, Compiler, Environment, Point


def series_from_results(results: Results) -> tuple[MeasuredSeries, ...]:
    """Return a series for each problem, sizes, target and device model, in the file's order. If
    enough runs repeat one, its samples are their medians, else all samples of its runs together;
    its conditions are those of its last run."""
    kernels = results.kernels
    by_name: dict[str, list[MeasuredSeries]] = {}
    selected = (
        (run, task, record, record.build, record.timed)
        for run in results.runs
        for task in run.tasks
        for record in task.candidates
        if record.chosen and record.timed and record.build
    )
    for run, task, record, build, timed in selected:
        time = timed.metrics[TIME]
        compiler = run.compilers[build.compiler]
        device = run.devices[timed.device]
        # The median of a clock; of a flag, the share of samples in which it was set.
        readings = {
            reading: float(np.median(values) if reading.endswith("_mhz") else np.mean(values))
            if values
            else 0.0
            for reading, values in timed.readings.items()
        }
        point = Point(
            value=time.value,
            low=time.low,
            high=time.high,
            n=len(timed.samples_ns),
            revision=run.origin.commit,
            source_digest=kernels[record.kernel].source_digest,
            configuration=_text(record.config),
            target=run.target,
            compiler=Compiler(compiler.name, compiler.version, compiler.flags, compiler.digest),
            code=CodeObject(build.code_digest, resources=build.resources),
            environment=Environment(
                driver=device.driver,
                runtime=device.runtime,
                device=device.name,
                host=run.origin.host,
            ),
            readings=readings,
            others={
                _text(other.config): Alternative(
                    kernels[other.kernel].source_digest, other.build.code_digest
                )
                for other in task.candidates
                if other.build and other.build.compiler == build.compiler
            },
        )
        sizes = format_bindings(run.bindings)
        series = f"{task.title}{f' at {sizes}' if sizes else ''}, {run.target}, {device.name}"
        name = f"{series} [{task.problem[:8]}]"
        samples = np.array(timed.samples_ns)
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


def _text(config: Mapping[str, ConfigValue]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(config.items()))
