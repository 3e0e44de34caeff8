"""Our own measurements as points of series: a problem's time is its chosen kernel's time.

A run measures many candidates; a problem takes as long as the best, whichever kernel that is. So a
tuning run adds one point to a problem's series, and the history continues when another kernel, or
another language, becomes the fastest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from codegen_app.kernels.models import Build, GeneratedKernel
from codegen_app.tracking.models import Datum, Source
from codegen_app.tracking.services import series
from codegen_app.tuning.models import BenchmarkResult, ResultImport, TuningTask
from codegen_app.tuning.services import selections
from scheduler.benchmark.metrics import TIME, Metric
from scheduler.results.origin import kiln_commit
from scheduler.results.points.model import MOST_SAMPLES, Point, RevisionKey, SeriesKey
from scheduler.version import kiln_version

REPOSITORY = "kiln"


def add_result(result: BenchmarkResult, measured_at: datetime | None = None) -> None:
    """Add a chosen result to its problem's series, at most once. Part of the transaction that
    records the choice. ``measured_at`` is for results whose row does not have the time."""
    if Datum.objects.filter(result=result).exists():
        return
    task = result.task
    imported = _imported(task)
    if imported is not None:
        # The version adds nothing to a commit, so use the commit if it is known.
        revision = RevisionKey(imported.commit or imported.version or "unknown")
        source = Source.IMPORT
    else:
        revision, source = own_revision(), Source.TUNING
    when = measured_at or result.created_at
    revision = RevisionKey(revision.name, repository=REPOSITORY)
    own = series.PointSource(
        problem_id=result.problem_id,
        kernel_id=result.kernel_id,
        build_id=result.build_id,
        run_id=task.run_id if task else None,
        result_id=result.pk,
    )
    series.store([point_of_result(result, _key(result), revision, when)], source, own=own)


@cache
def own_revision() -> RevisionKey:
    """Return the revision of the Kiln that measures here; it is constant within a process."""
    return RevisionKey(kiln_commit() or kiln_version() or "unknown")


def _imported(task: TuningTask | None) -> ResultImport | None:
    return ResultImport.objects.filter(run=task.run_id).first() if task else None


def _key(result: BenchmarkResult) -> SeriesKey:
    environment = result.environment
    return SeriesKey(
        problem=str(result.problem)[:500],
        own=result.problem.digest,
        sizes=dict(result.bindings),
        target=environment.target,
        device=environment.device_name,
        toolchain=selections.bucket_toolchain(result).partition(" ")[0],
        metric=TIME,
        unit=result.all_metrics[TIME].unit,
    )


def point_of_result(
    result: BenchmarkResult, key: SeriesKey, revision: RevisionKey, when: datetime
) -> Point:
    """Return a result as a point of a series, measured at that moment."""
    time = result.all_metrics[TIME]
    step = -(-len(result.samples_ns) // MOST_SAMPLES)
    return Point(
        series=key,
        value=time.value,
        low=time.low if time.bounds else None,
        high=time.high if time.bounds else None,
        n=time.n,
        samples=tuple(result.samples_ns[::step]),
        measured_at=when,
        revision=revision,
        conditions=conditions_of(result),
    )


def conditions_of(result: BenchmarkResult) -> dict[str, object]:
    """Return what may explain a change: digests, which outlive kernel and build."""
    environment = result.environment
    around = Surroundings(
        environment.compiler, environment.driver, environment.runtime, environment.attributes
    )
    return conditions(result.kernel, result.build, around, result.all_metrics)


@dataclass(frozen=True)
class Surroundings:
    """The environment of a measurement, and the compiler of its code."""

    compiler: str
    driver: str
    runtime: str
    attributes: Mapping[str, str]


def conditions(
    kernel: GeneratedKernel, build: Build, around: Surroundings, metrics: Mapping[str, Metric]
) -> dict[str, object]:
    """Return the conditions of a kernel, a build, its surroundings and a measurement."""
    clocks = {name: round(metric.value) for name, metric in metrics.items() if metric.unit == "MHz"}
    return {
        "toolchain_version": around.compiler,
        "flags": " ".join(build.flags),
        "driver": around.driver,
        "runtime": around.runtime,
        "source_digest": kernel.source_digest,
        "code_digest": build.code_digest,
        "kernel": kernel.name,
        "config": dict(kernel.config),
        "resources": dict(build.resources),
        "attributes": dict(around.attributes),
        **({"clocks": clocks} if clocks else {}),
    }
