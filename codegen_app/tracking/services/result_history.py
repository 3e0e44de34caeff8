"""Measurements of other commits' kernels become points of series, and nothing else.

They are no tuning runs and select no kernel: another commit's kernels are not used here. A point
stands at its commit's place in the history, whenever it was measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from codegen_app.graphs.models import Problem
from codegen_app.kernels.models import Build, GeneratedKernel
from codegen_app.tracking.models import Datum, Source
from codegen_app.tracking.services import history, series
from codegen_app.tracking.services.result_kernels import RecordedKernels
from codegen_app.tuning.models.benchmark_result import IMPORTED
from scheduler.benchmark.metrics import TIME
from scheduler.errors import UserError
from scheduler.results.model import (
    CandidateRecord,
    KernelText,
    MeasurementRecord,
    RunRecord,
    TaskRecord,
)
from scheduler.results.points.model import MOST_SAMPLES, Point, RevisionKey, SeriesKey

RecordedRuns = Sequence[tuple[int, RunRecord]]


@dataclass
class _Kernel:
    """A kernel of a commit with its rows, and the points of its runs."""

    problem: Problem
    kernel: GeneratedKernel
    build: Build
    points: list[Point] = field(default_factory=list)


def store(past: RecordedRuns, texts: Mapping[str, KernelText], what: str) -> int:
    """Add the points of runs that have a revision, each with its place in the file, at most once.
    Part of an import's transaction. Raises ``UserError`` naming row and field."""
    kernels: dict[tuple[object, ...], _Kernel] = {}
    known: dict[tuple[object, ...], RecordedKernels] = {}
    here = _stored_keys(past)
    for place, run in past:
        try:
            if _row_key(run) not in known:
                known[_row_key(run)] = RecordedKernels(run, texts)
            _add_run(run, known[_row_key(run)], kernels, here)
        except UserError as error:
            raise UserError(f"{what}: runs[{place}].{error}") from None
    for one in kernels.values():
        if one.points:
            own = series.PointSource(one.problem.pk, one.kernel.pk, one.build.pk, None, None)
            series.store(one.points, Source.IMPORT, own=own)
    return sum(len(one.points) for one in kernels.values())


def _row_key(run: RunRecord) -> tuple[object, ...]:
    """Return the key that decides which rows a run belongs to."""
    return run.graph.digest, run.target, tuple(sorted(run.bindings.items())), run.compilers


def _stored_keys(past: RecordedRuns) -> set[tuple[str, datetime]]:
    """Return the problems and times of the stored measurements of these revisions."""
    names = {run.revision.commit for _, run in past if run.revision}
    stored = Datum.objects.filter(
        source=Source.IMPORT, revision__name__in=names, revision__repository=history.REPOSITORY
    )
    return {*stored.values_list("series__own_problem__digest", "measured_at")}


def _add_run(
    run: RunRecord,
    rows: RecordedKernels,
    kernels: dict[tuple[object, ...], _Kernel],
    here: set[tuple[str, datetime]],
) -> None:
    for place, task in enumerate(run.tasks):
        for one, timed in _timed(task):
            if (task.problem, _measured_at(run)) in here:
                continue
            assert one.build is not None
            key = (*_row_key(run), task.problem, one.kernel, one.build.code_digest)
            try:
                if key not in kernels:
                    node, problem = rows.node(task)
                    kernel = rows.kernel(node, one)
                    kernels[key] = _Kernel(problem, kernel, rows.build(kernel, one))
                kernels[key].points.append(_point(run, timed, kernels[key]))
            except UserError as error:
                raise UserError(f"tasks[{place}].{error}") from None


def _timed(task: TaskRecord) -> Iterator[tuple[CandidateRecord, MeasurementRecord]]:
    for one in task.candidates:
        if one.chosen and one.timed is not None and one.build is not None:
            yield one, one.timed


def _measured_at(run: RunRecord) -> datetime:
    """Return the run's time; each run measures a problem once."""
    return datetime.fromisoformat(run.finished_at)


def _point(run: RunRecord, timed: MeasurementRecord, rows: _Kernel) -> Point:
    assert run.revision is not None
    device, time = run.devices[timed.device], timed.metrics[TIME]
    step = -(-len(timed.samples_ns) // MOST_SAMPLES)
    return Point(
        series=SeriesKey(
            problem=str(rows.problem)[:500],
            own=rows.problem.digest,
            sizes=dict(run.bindings),
            target=run.target,
            device=f"{device.name}{IMPORTED}",
            toolchain=rows.build.toolchain,
            metric=TIME,
            unit=time.unit,
        ),
        value=time.value,
        low=time.low if time.bounds else None,
        high=time.high if time.bounds else None,
        n=time.n,
        samples=tuple(timed.samples_ns[::step]),
        measured_at=_measured_at(run),
        revision=RevisionKey(
            run.revision.commit,
            repository=history.REPOSITORY,
            at=datetime.fromisoformat(run.revision.date),
        ),
        conditions=_conditions(run, timed, rows),
    )


def _conditions(run: RunRecord, timed: MeasurementRecord, rows: _Kernel) -> dict[str, object]:
    device = run.devices[timed.device]
    return history.conditions(
        rows.kernel,
        rows.build,
        history.Surroundings(
            f"{rows.build.toolchain} {rows.build.toolchain_version}"[:200],
            device.driver,
            device.runtime,
            device.attributes,
        ),
        timed.metrics,
    )
