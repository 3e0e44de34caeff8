"""Stored builds that a remote worker measures again: its input, and its results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from django.conf import settings

from codegen_app.graphs.models import Problem
from codegen_app.kernels.models import ProblemWork
from codegen_app.platform.models import Artifact
from codegen_app.remote import dispatch, leases
from codegen_app.remote.models import RemoteLease
from codegen_app.tracking.models import RemeasuredPoint, Remeasurement
from codegen_app.tracking.remeasuring import jobs
from codegen_app.tuning.services import candidate_results
from scheduler.agent.protocol import ReplayBuild, ReplayTask, Result
from scheduler.benchmark.measurement import Measurement
from scheduler.errors import Rejected, UserError
from scheduler.runtime.device import DeviceInfo
from scheduler.tuning.replay import GraphNodeRef, RecordedUse

_NO_REASON = "the worker reported no result"


def _remeasurement(lease: RemoteLease) -> Remeasurement:
    assert lease.remeasurement is not None
    return lease.remeasurement


def device_kind(lease: RemoteLease) -> tuple[str, str]:
    """Return target and model of the device for the measurement."""
    series = _remeasurement(lease).series
    return series.target, series.device_name


def remeasurement_task(lease: RemoteLease) -> ReplayTask:
    """Return all that measuring needs; graphs and libraries are fetched by their digests."""
    series = _remeasurement(lease).series
    points = jobs.points_of(_remeasurement(lease))
    uses = jobs.uses_of(series, points)
    places = jobs.sites_of(uses)
    problem = jobs.problem_of_series(series)
    here = lease.worker.devices
    alike = (one["id"] for one in here if (one["target"], one["name"]) == device_kind(lease))
    return ReplayTask(
        lease=lease.key,
        seconds=float(settings.WORK_LEASE_S),
        title=series.problem,
        device=next(alike, ""),
        target=series.target,
        problem=problem.digest,
        places=tuple(places),
        sizes=dict(series.sizes),
        seed=candidate_results.seed(problem),
        repeats=tuple(_repeats(points, uses, places)),
    )


def _repeats(
    points: list[RemeasuredPoint], uses: Mapping[int, list[RecordedUse]], places: list[GraphNodeRef]
) -> Iterator[ReplayBuild]:
    """Yield the points whose builds are stored; the others' reasons are known here at the end."""
    for point in points:
        try:
            build = jobs.stored_build(point, uses)
        except UserError:
            continue
        assert build.library is not None
        first, *others = uses[build.kernel_id]
        known = (first, *(use for use in others if use.place in places))
        library = dispatch.library_of(build.kernel, build, build.library)
        yield ReplayBuild(str(point.pk), known, library)


def file_of(lease: RemoteLease, digest: str) -> Artifact:
    """Return a file that the leased work names; otherwise raises ``leases.UnknownFileError``."""
    points = jobs.points_of(_remeasurement(lease))
    uses = jobs.uses_of(_remeasurement(lease).series, points)
    for point in points:
        build = point.original.build
        if build is not None and build.library is not None and build.library.digest == digest:
            return build.library
    if digest in {place.graph for place in jobs.sites_of(uses)}:
        return Artifact.objects.get(digest=digest)
    raise leases.UnknownFileError("the work of this lease names no such file")


def record(
    lease: RemoteLease, device: DeviceInfo, results: list[Result], samples: tuple[int, int]
) -> None:
    """Close the work with the function for all workers. Derived values are derived here.

    Raises ``UserError`` for a point that is not the work's, and ``work.LeaseLostError``.
    """
    row = _remeasurement(lease)
    points = jobs.points_of(row)
    uses = jobs.uses_of(row.series, points)
    reasons = {str(point.pk): _missing_build_reason(point, uses) for point in points}
    known = {str(point.pk): point for point in points if point.original.build is not None}
    bytes_moved = problem_bytes(jobs.problem_of_series(row.series), row.series.sizes)
    found: dict[str, Measurement | Rejected] = {}
    for one in results:
        point = known.get(one.kernel)
        if point is None or one.kernel in found:
            what = "has two" if one.kernel in found else "is no point of this work"
            raise UserError(f"results: {one.kernel} {what}")
        found[one.kernel] = _outcome(point, one, device, row.series.sizes, bytes_moved)
    jobs.record(row, found, reasons, device, samples=samples[0], samples_due=samples[1])


def _missing_build_reason(point: RemeasuredPoint, uses: Mapping[int, list[RecordedUse]]) -> str:
    try:
        jobs.stored_build(point, uses)
    except UserError as error:
        return str(error)
    return _NO_REASON


def _outcome(
    point: RemeasuredPoint,
    one: Result,
    device: DeviceInfo,
    sizes: Mapping[str, int],
    bytes_moved: int,
) -> Measurement | Rejected:
    if one.measured is None:
        assert one.loss is not None
        return one.loss
    build = point.original.build
    assert build is not None
    return one.measured.measurement(
        build.kernel.name, device.id, dict(sizes), device.emulated, bytes_moved
    )


def problem_bytes(problem: Problem, sizes: Mapping[str, int]) -> int:
    """Return the least bytes that a problem moves at these sizes; 0 if unrecorded."""
    used = {name: sizes.get(name) for name in problem.symbols}
    row = ProblemWork.objects.filter(problem=problem, bindings=used).first()
    return row.read_bytes + row.written_bytes if row is not None else 0
