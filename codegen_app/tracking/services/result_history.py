"""Measurements of other commits' kernels become points of series, and nothing else.

They are no tuning runs and select no kernel: another commit's kernels are not used here. A point
stands at its commit's place in the history, whenever it was measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from codegen_app.graphs.models import Problem
from codegen_app.kernels.models import Build
from codegen_app.tracking.models import Datum, Source
from codegen_app.tracking.services import history, point_storage
from codegen_app.tracking.services.result_kernels import RecordedKernels, device_of, measurement_of
from codegen_app.tuning.models import BenchmarkResult, Environment
from codegen_app.tuning.services.candidate_results import environment_fields
from scheduler.errors import UserError
from scheduler.results.model import KernelText, RunRecord
from scheduler.results.points.model import Point, RevisionKey

RecordedRuns = Sequence[tuple[int, RunRecord]]


@dataclass
class _BuildPoints:
    """A build of a commit's kernel for a problem, and the points of its runs."""

    problem: Problem
    build: Build
    points: list[Point] = field(default_factory=list)


def store(
    past: RecordedRuns,
    texts: Mapping[str, KernelText],
    listings: Mapping[str, str],
    source: str,
) -> int:
    """Add the points of runs that have a revision, each with its place in the file, at most once.
    Part of an import's transaction. Raises ``UserError`` naming row and field."""
    builds: dict[tuple[object, ...], _BuildPoints] = {}
    kernels: dict[tuple[object, ...], RecordedKernels] = {}
    commits = {run.revision.commit for _, run in past if run.revision}
    stored = Datum.objects.filter(
        source=Source.IMPORT, revision__name__in=commits, revision__repository=history.REPOSITORY
    )
    # Each run measures a problem once.
    known = {*stored.values_list("series__own_problem__digest", "measured_at")}
    for place, run in past:
        sizes = tuple(sorted(run.bindings.items()))
        key = run.graph.digest, run.target, sizes, run.compilers
        try:
            if key not in kernels:
                kernels[key] = RecordedKernels(run, texts, listings)
            _add_run(run, kernels[key], key, builds, known)
        except UserError as error:
            raise UserError(f"{source}: runs[{place}].{error}") from None
    for row in builds.values():
        if row.points:
            origin = point_storage.PointOrigin(row.problem.pk, row.build.kernel_id, row.build.pk)
            point_storage.store(row.points, Source.IMPORT, origin=origin)
    return sum(len(row.points) for row in builds.values())


def _add_run(
    run: RunRecord,
    kernels: RecordedKernels,
    run_key: tuple[object, ...],
    builds: dict[tuple[object, ...], _BuildPoints],
    known: set[tuple[str, datetime]],
) -> None:
    assert run.revision is not None
    measured_at = datetime.fromisoformat(run.finished_at)
    revision = RevisionKey(
        run.revision.commit,
        repository=history.REPOSITORY,
        at=datetime.fromisoformat(run.revision.date),
        subject=run.revision.subject,
    )
    for place, task in enumerate(run.tasks):
        if (task.problem, measured_at) in known:
            continue
        for record in task.candidates:
            if not record.chosen or record.timed is None or record.build is None:
                continue
            key = (*run_key, task.problem, record.kernel, record.build.code_digest)
            try:
                if key not in builds:
                    node, problem = kernels.node(task)
                    build = kernels.build(kernels.kernel(node, record), record)
                    builds[key] = _BuildPoints(problem, build)
            except UserError as error:
                raise UserError(f"tasks[{place}].{error}") from None
            build = builds[key].build
            result = BenchmarkResult(
                kernel=build.kernel,
                build=build,
                problem=builds[key].problem,
                environment=Environment(**environment_fields(device_of(run, record.timed), build)),
                **BenchmarkResult.fields_of(measurement_of(run, record.timed, record.kernel)),
            )
            point = history.point_of(result, revision, measured_at)
            # The compiler's whole name, which may contain spaces.
            series = replace(point.series, toolchain=build.toolchain)
            builds[key].points.append(replace(point, series=series))
