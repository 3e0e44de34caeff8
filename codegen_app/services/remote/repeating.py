"""Kept builds that a remote worker measures again: what it gets, and what it sends of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from django.conf import settings

from codegen_app.models import (
    Artifact,
    Problem,
    ProblemWork,
    RemeasuredPoint,
    Remeasurement,
    RemoteLease,
)
from codegen_app.services import outcomes
from codegen_app.services.remeasuring import doing
from codegen_app.services.remote import leasing, offering
from scheduler.agent.protocol import ReplayBuild, ReplayTask, Result
from scheduler.benchmark.measurement import Measurement
from scheduler.errors import Rejected, UserError
from scheduler.runtime.device import DeviceInfo
from scheduler.tuning.replay import GraphNodeRef, RecordedUse

_NOTHING = "the worker said nothing of it"


def _row(lease: RemoteLease) -> Remeasurement:
    assert lease.remeasurement is not None
    return lease.remeasurement


def kind_of(lease: RemoteLease) -> tuple[str, str]:
    """Target and model of the device that it is measured on."""
    series = _row(lease).series
    return series.target, series.device_name


def again_of(lease: RemoteLease) -> ReplayTask:
    """All that measuring it needs; graphs and libraries are fetched by their digests."""
    series = _row(lease).series
    points = doing.points_of(_row(lease))
    uses = doing.uses_of(series, points)
    places = doing.places_of(uses)
    problem = doing.problem_of_series(series)
    here = lease.worker.devices
    alike = (one["id"] for one in here if (one["target"], one["name"]) == kind_of(lease))
    return ReplayTask(
        lease=lease.key,
        seconds=float(settings.WORK_LEASE_S),
        title=series.problem,
        device=next(alike, ""),
        target=series.target,
        problem=problem.digest,
        places=tuple(places),
        sizes=dict(series.sizes),
        seed=outcomes.seed(problem),
        repeats=tuple(_repeats(points, uses, places)),
    )


def _repeats(
    points: list[RemeasuredPoint], uses: Mapping[int, list[RecordedUse]], places: list[GraphNodeRef]
) -> Iterator[ReplayBuild]:
    """Of the points whose builds are kept; the others' reasons are known here at the end."""
    for point in points:
        try:
            build = doing.kept_build(point, uses)
        except UserError:
            continue
        assert build.library is not None
        first, *others = uses[build.kernel_id]
        known = (first, *(use for use in others if use.place in places))
        library = offering.library_of(build.kernel, build, build.library)
        yield ReplayBuild(str(point.pk), known, library)


def file_of(lease: RemoteLease, digest: str) -> Artifact:
    """A file that the leased work names. Raises ``leasing.NoFileError`` for any other."""
    points = doing.points_of(_row(lease))
    uses = doing.uses_of(_row(lease).series, points)
    for point in points:
        build = point.original.build
        if build is not None and build.library is not None and build.library.digest == digest:
            return build.library
    if digest in {place.graph for place in doing.places_of(uses)}:
        return Artifact.objects.get(digest=digest)
    raise leasing.NoFileError("the work of this lease names no such file")


def record(
    lease: RemoteLease, device: DeviceInfo, results: list[Result], samples: tuple[int, int]
) -> None:
    """Close the work by what writes it for every worker. What can be derived is derived here.

    Raises ``UserError`` for what is none of its points, and ``work.LeaseLostError``.
    """
    row = _row(lease)
    points = doing.points_of(row)
    uses = doing.uses_of(row.series, points)
    reasons = {str(point.pk): _why_not(point, uses) for point in points}
    known = {str(point.pk): point for point in points if point.original.build is not None}
    bytes_moved = moved(doing.problem_of_series(row.series), row.series.sizes)
    found: dict[str, Measurement | Rejected] = {}
    for one in results:
        point = known.get(one.kernel)
        if point is None or one.kernel in found:
            what = "has two" if one.kernel in found else "is no point of this work"
            raise UserError(f"results: {one.kernel} {what}")
        found[one.kernel] = _outcome(point, one, device, row.series.sizes, bytes_moved)
    doing.record(row, found, reasons, device, samples=samples[0], samples_due=samples[1])


def _why_not(point: RemeasuredPoint, uses: Mapping[int, list[RecordedUse]]) -> str:
    try:
        doing.kept_build(point, uses)
    except UserError as error:
        return str(error)
    return _NOTHING


def _outcome(
    point: RemeasuredPoint,
    one: Result,
    device: DeviceInfo,
    sizes: Mapping[str, int],
    bytes_moved: int,
) -> Measurement | Rejected:
    if one.measured is None:
        assert one.loss is not None
        return one.loss.rejected
    build = point.original.build
    assert build is not None
    return one.measured.measurement(
        build.kernel.name, device.id, dict(sizes), device.emulated, bytes_moved
    )


def moved(problem: Problem, sizes: Mapping[str, int]) -> int:
    """The bytes that a problem certainly moves at these sizes; 0 where nobody recorded it."""
    used = {name: sizes.get(name) for name in problem.symbols}
    row = ProblemWork.objects.filter(problem=problem, bindings=used).first()
    return row.read_bytes + row.written_bytes if row is not None else 0
