"""Our own measurements feed series: the time of a problem is that of the kernel a run chose.

A run measures many candidates; what a problem takes is what the best of them takes, whichever
kernel that is. So a tuning run adds one point to a problem's series, and the history goes on when
another kernel, or another language, becomes the fastest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from codegen_app.models import (
    BenchmarkResult,
    Build,
    Datum,
    GeneratedKernel,
    ResultImport,
    Source,
    TuningTask,
)
from codegen_app.services import selections, series
from scheduler.benchmark.metrics import TIME, Metric
from scheduler.results.origin import kiln_commit
from scheduler.results.points.model import MOST_SAMPLES, Point, RevisionKey, SeriesKey
from scheduler.version import kiln_version

REPOSITORY = "kiln"


def add_result(result: BenchmarkResult, measured_at: datetime | None = None) -> None:
    """Add a chosen result to its problem's series; again it adds nothing. Part of the transaction
    that records the choice. ``measured_at``: where the row does not say it."""
    if Datum.objects.filter(result=result).exists():
        return
    task = result.task
    imported = _imported(task)
    if imported is not None:
        # Of equal commits the version tells nothing more: the commit is when it is known.
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
    """The Kiln that measures here; one process is of one commit as long as it runs."""
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
    """A result as a point of a series, measured at that moment."""
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
    """What may explain a change: by digests, so that it outlives kernel and build."""
    environment = result.environment
    around = Surroundings(
        environment.compiler, environment.driver, environment.runtime, environment.attributes
    )
    return conditions(result.kernel, result.build, around, result.all_metrics)


@dataclass(frozen=True)
class Surroundings:
    """Where something was measured, and by what it was made."""

    compiler: str
    driver: str
    runtime: str
    attributes: Mapping[str, str]


def conditions(
    kernel: GeneratedKernel, build: Build, around: Surroundings, metrics: Mapping[str, Metric]
) -> dict[str, object]:
    """The same of rows and a measurement."""
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
