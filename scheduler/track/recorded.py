"""The series of a file of recorded results: what was chosen of each problem, with all that is known
of it."""

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
    Results,
    RunRecord,
    TaskRecord,
    Timed,
)
from scheduler.track.compare import Measured
from scheduler.track.ratios import LEAST_SAMPLES
from scheduler.track.sides import Alternative, CodeObject, Compiler, Environment, Point


def measured(results: Results) -> tuple[Measured, ...]:
    """A series for each problem, sizes, target and model of device, in the file's order. Where runs
    repeat one often enough, their medians are its samples, else all samples of its runs together;
    it was measured with what its last run says."""
    found: dict[str, list[Measured]] = {}
    for run in results.runs:
        for task in run.tasks:
            for one in _chosen(run, task, results.kernels):
                found.setdefault(one.series, []).append(one)
    return tuple(_together(runs) for runs in found.values())


def _together(runs: list[Measured]) -> Measured:
    last = runs[-1]
    if len(runs) >= LEAST_SAMPLES:
        samples = np.array([float(np.median(one.samples)) for one in runs])
    else:
        samples = np.concatenate([one.samples for one in runs])
    return Measured(last.series, last.group, samples, last.point)


def _chosen(
    run: RunRecord, task: TaskRecord, kernels: Mapping[str, KernelText]
) -> Iterator[Measured]:
    for one in task.candidates:
        if one.chosen and one.timed and one.build:
            device = run.devices[one.timed.device]
            sizes = format_bindings(run.bindings)
            series = f"{task.title}{f' at {sizes}' if sizes else ''}, {run.target}, {device.name}"
            point = _point(run, task, one, one.build, one.timed, kernels)
            name = f"{series} [{task.problem[:8]}]"
            yield Measured(name, run.graph.name, np.array(one.timed.samples_ns), point)


def _point(
    run: RunRecord,
    task: TaskRecord,
    one: CandidateRecord,
    build: BuildFacts,
    timed: Timed,
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
    """Of clocks the median; of what holds or does not, the share of samples in which it did."""
    found = np.median(values) if name.endswith("_mhz") else np.mean(values)
    return float(found) if len(values) else 0.0
