"""Stored builds that a remote worker measures again: its input, and its results."""

from __future__ import annotations

from collections.abc import Mapping

from django.conf import settings

from codegen_app.graphs.models import Problem
from codegen_app.kernels.models import ProblemWork
from codegen_app.platform.models import Artifact
from codegen_app.remote import dispatch, leases
from codegen_app.remote.models import RemoteLease
from codegen_app.tracking.models import Remeasurement
from codegen_app.tracking.remeasuring import jobs
from codegen_app.tuning.services import candidate_results
from scheduler.agent.protocol import ReplayBuild, ReplayTask, Result
from scheduler.benchmark.measurement import Measurement
from scheduler.errors import Rejected, UserError
from scheduler.runtime.device import DeviceInfo


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
    devices = (
        device["id"]
        for device in lease.worker.devices
        if (device["target"], device["name"]) == device_kind(lease)
    )
    repeats = []
    for point in points:
        try:
            build = jobs.stored_build(point, uses)
        except UserError:  # the reason is recorded at the end
            continue
        assert build.library is not None
        first, *others = uses[build.kernel_id]
        calls = (first, *(use for use in others if use.place in places))
        library = dispatch.library_of(build, build.library)
        repeats.append(ReplayBuild(str(point.pk), calls, library))
    return ReplayTask(
        lease=lease.key,
        seconds=float(settings.WORK_LEASE_S),
        title=series.problem,
        device=next(devices, ""),
        target=series.target,
        problem=problem.digest,
        places=tuple(places),
        sizes=dict(series.sizes),
        seed=candidate_results.seed(problem),
        repeats=tuple(repeats),
    )


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
    sizes = dict(row.series.sizes)
    bytes_moved = problem_bytes(jobs.problem_of_series(row.series), sizes)
    builds = {str(point.pk): point.original.build for point in points if point.original.build}
    reasons: dict[str, str] = {}
    for point in points:
        reasons[str(point.pk)] = "the worker reported no result"
        try:
            jobs.stored_build(point, uses)
        except UserError as error:
            reasons[str(point.pk)] = str(error)
    outcomes: dict[str, Measurement | Rejected] = {}
    for result in results:
        build = builds.get(result.kernel)
        if build is None or result.kernel in outcomes:
            obstacle = "has two" if result.kernel in outcomes else "is no point of this work"
            raise UserError(f"results: {result.kernel} {obstacle}")
        if result.measured is not None:
            outcomes[result.kernel] = result.measured.measurement(
                build.kernel.name, device.id, sizes, device.emulated, bytes_moved
            )
        else:
            assert result.loss is not None
            outcomes[result.kernel] = result.loss
    jobs.record(row, outcomes, reasons, device, samples=samples[0], samples_due=samples[1])


def problem_bytes(problem: Problem, sizes: Mapping[str, int]) -> int:
    """Return the least bytes that a problem moves at these sizes; 0 if unrecorded."""
    used = {name: sizes.get(name) for name in problem.symbols}
    row = ProblemWork.objects.filter(problem=problem, bindings=used).first()
    return row.read_bytes + row.written_bytes if row is not None else 0
