"""Our own measurements as points of series: a problem's time is its chosen kernel's time.

A run measures many candidates; a problem takes as long as the best, whichever kernel that is. So a
tuning run adds one point to a problem's series, and the history continues when another kernel, or
another language, becomes the fastest.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache

from codegen_app.tracking.models import Datum, Source
from codegen_app.tracking.services import point_storage
from codegen_app.tuning.models import BenchmarkResult, ResultImport
from codegen_app.tuning.services import selections
from scheduler.benchmark.metrics import TIME
from scheduler.results.origin import kiln_commit
from scheduler.results.points.model import MAX_SAMPLES, Point, RevisionKey, SeriesKey
from scheduler.version import kiln_version

REPOSITORY = "kiln"


def add_chosen(result: BenchmarkResult, measured_at: datetime | None = None) -> None:
    """Add a run's chosen result to its problem's series, at most once. ``measured_at`` is for an
    imported result, which is older than its row."""
    if Datum.objects.filter(result=result).exists():
        return
    task = result.task
    imported = ResultImport.objects.filter(run=task.run_id).first() if task else None
    if imported is None:
        name, source = own_revision(), Source.TUNING
    else:
        # The version adds nothing to a commit, so use the commit if it is known.
        name, source = imported.commit or imported.version or "unknown", Source.IMPORT
    revision = RevisionKey(name, repository=REPOSITORY)
    add_result(result, source, revision, measured_at or result.created_at)


@cache
def own_revision() -> str:
    """Return the revision of the Kiln that measures here; it is constant within a process."""
    return kiln_commit() or kiln_version() or "unknown"


def add_result(
    result: BenchmarkResult,
    source: Source,
    revision: RevisionKey,
    measured_at: datetime,
    key: SeriesKey | None = None,
    at: datetime | None = None,
) -> None:
    """Add a result to its problem's series, or to that of ``key``. Part of the transaction that
    records the result. ``at`` is its place in the history if that is neither the revision's time
    nor ``measured_at``."""
    origin = point_storage.PointOrigin(
        result.problem_id,
        result.kernel_id,
        result.build_id,
        result.task.run_id if result.task else None,
        result.pk,
        at,
    )
    point_storage.store([point_of(result, revision, measured_at, key)], source, origin=origin)


def point_of(
    result: BenchmarkResult,
    revision: RevisionKey,
    measured_at: datetime,
    key: SeriesKey | None = None,
) -> Point:
    """Return a result, which may be unsaved, as a point of its problem's series or of ``key``.

    Its conditions are what may explain a change: digests, which outlive kernel and build.
    """
    environment, metrics = result.environment, result.all_metrics
    time = metrics[TIME]
    if key is None:
        key = SeriesKey(
            problem=str(result.problem)[:500],
            own=result.problem.digest,
            sizes=dict(result.bindings),
            target=environment.target,
            device=environment.device_name,
            toolchain=selections.bucket_toolchain(result).partition(" ")[0],
            metric=TIME,
            unit=time.unit,
        )
    clocks = {name: round(metric.value) for name, metric in metrics.items() if metric.unit == "MHz"}
    return Point(
        series=key,
        value=time.value,
        low=time.low if time.bounds else None,
        high=time.high if time.bounds else None,
        n=time.n,
        samples=tuple(result.samples_ns[:: -(-len(result.samples_ns) // MAX_SAMPLES)]),
        measured_at=measured_at,
        revision=revision,
        conditions={
            "toolchain_version": environment.compiler,
            "flags": " ".join(result.build.flags),
            "driver": environment.driver,
            "runtime": environment.runtime,
            "source_digest": result.kernel.source_digest,
            "code_digest": result.build.code_digest,
            "kernel": result.kernel.name,
            "config": dict(result.kernel.config),
            "resources": dict(result.build.resources),
            "attributes": dict(environment.attributes),
            **({"clocks": clocks} if clocks else {}),
        },
    )
