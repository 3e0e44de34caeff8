"""A worker's part: the builds of both sides, measured interleaved on one device."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from codegen_app.graphs.models import Problem
from codegen_app.kernels.models import Build, KernelUse
from codegen_app.kernels.services import engine
from codegen_app.kernels.services.remote_builds import build_result
from codegen_app.tracking.models import Datum, RemeasuredPoint, Remeasurement, Series, Source
from codegen_app.tracking.services import history
from codegen_app.tuning.services import candidate_results, devices
from codegen_app.tuning.services.candidate_results import store_measurement
from codegen_app.workers import work
from codegen_app.workers.models import State
from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.measurement import Measurement
from scheduler.build.recipe import library_of
from scheduler.errors import MachineError, Rejected, Stage, UserError
from scheduler.fusion.nodes import Schedule
from scheduler.results.points.model import RevisionKey, SeriesKey
from scheduler.runtime.device import DeviceInfo
from scheduler.sandbox.process import Cancellation, Cancelled
from scheduler.tuning.interleaved_bench import measure_interleaved
from scheduler.tuning.replay import CallSite, GraphNodeRef, RecordedUse, find_call_site

_MOST_SITES = 5


def queued_remeasurements(target: str) -> QuerySet[Remeasurement]:
    """Return what waits for a device of that target, of a model that this host has."""
    rows = Remeasurement.objects.filter(series__target=target)
    if not rows.filter(state=State.QUEUED).exists():
        return rows.none()
    return queued_for_models(target, (name for of, name in devices.local_models() if of == target))


def queued_for_models(target: str, names: Iterable[str]) -> QuerySet[Remeasurement]:
    """Return what waits for a device of that target, of one of these models."""
    return Remeasurement.objects.filter(series__target=target, series__device_name__in=set(names))


def run(row: Remeasurement) -> None:
    """Run a claimed remeasurement. Raises ``work.LeaseLostError`` when the claim is lost."""
    cancellation, progress = Cancellation(), _Progress()
    series = row.series
    with (
        work.heartbeat(row, cancellation.cancel, progress.fields) as lease_lost,
        devices.hold_device_of_model(series.target, series.device_name, lease_lost) as device,
    ):
        if device is None:
            if lease_lost.is_set():
                raise work.LeaseLostError(f"{row} was cancelled or taken over by another worker")
            reason = f"no {series.device_name} ({series.target}) is available any more"
            work.finish(row, State.REJECTED, stage=Stage.LOAD, reason=reason)
            return
        try:
            _measure(row, device, progress, cancellation)
        except Cancelled:
            raise work.LeaseLostError(
                f"{row} was cancelled or taken over by another worker"
            ) from None
        except MachineError:
            raise
        except UserError as error:
            work.finish(row, State.REJECTED, stage=Stage.LOAD, reason=str(error))


class _Progress:
    """The progress, as the heartbeat writes it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fields: dict[str, int] = {}

    def tell(self, samples: int, due: int) -> None:
        with self._lock:
            self._fields = {"samples": samples, "samples_due": due}

    def fields(self) -> dict[str, int]:
        with self._lock:
            return dict(self._fields)


def _measure(
    row: Remeasurement, device: DeviceInfo, progress: _Progress, cancellation: Cancellation
) -> None:
    points = points_of(row)
    uses = uses_of(row.series, points)
    problem = problem_of_series(row.series)
    site = find_call_site(sites_of(uses), problem.digest, row.series.sizes, _scheduled)
    candidates: dict[str, BuiltCandidate] = {}
    reasons: dict[str, str] = {}
    for point in points:
        try:
            candidates[str(point.pk)] = _candidate(point, uses, site, device)
        except MachineError:
            raise
        except (UserError, FileNotFoundError) as error:
            reasons[str(point.pk)] = str(error)
    found = measure_interleaved(
        site.node,
        site.lowered,
        site.bindings,
        candidates,
        device,
        candidate_results.seed(problem),
        progress.tell,
        cancellation,
    )
    if cancellation.cancelled:
        raise Cancelled
    record(row, found, reasons, device, **progress.fields())


@transaction.atomic
def record(
    row: Remeasurement,
    found: Mapping[str, Measurement | Rejected],
    reasons: Mapping[str, str],
    device: DeviceInfo,
    **fields: int,
) -> None:
    """Close a claimed remeasurement: each measured point becomes a new point of its series, and the
    others record why not. Raises ``work.LeaseLostError``."""
    points = points_of(row)
    state, why_none = _outcome(row, points, found, reasons)
    work.finish(row, state, **why_none, **fields)
    for point in points:
        outcome = found.get(str(point.pk))
        if isinstance(outcome, Measurement):
            datum = _record(point, row.series, outcome, device)
            RemeasuredPoint.objects.filter(pk=point.pk).update(datum=datum, reason="")
        else:
            why = outcome.reason if isinstance(outcome, Rejected) else reasons[str(point.pk)]
            RemeasuredPoint.objects.filter(pk=point.pk).update(reason=why[:500])


def _outcome(
    row: Remeasurement,
    points: list[RemeasuredPoint],
    found: Mapping[str, Measurement | Rejected],
    reasons: Mapping[str, str],
) -> tuple[State, dict[str, str]]:
    """Return done if both sides have a time; else why a side has none."""
    for side in ("before", "after"):
        keys = [str(one.pk) for one in points if one.side(row) == side]
        of_side = [found[key] for key in keys if key in found]
        if any(isinstance(one, Measurement) for one in of_side):
            continue
        rejected = [one.reason for one in of_side if isinstance(one, Rejected)]
        why = (rejected + [reasons[key] for key in keys if key in reasons])[0]
        reason = f"no point {side} the change could be measured: {why}"
        return State.REJECTED, {"stage": Stage.RUN, "reason": reason}
    return State.DONE, {}


def points_of(row: Remeasurement) -> list[RemeasuredPoint]:
    """Return its points with all that is recorded of their builds."""
    related = ("original__build__library", "original__build__kernel", "original__revision")
    return list(row.points.select_related(*related))


def problem_of_series(series: Series) -> Problem:
    """Return the problem that the series' kernels solve: only our own series are measured again."""
    assert series.own_problem is not None
    return series.own_problem


def uses_of(series: Series, points: list[RemeasuredPoint]) -> dict[int, list[RecordedUse]]:
    """Return by kernel the calls from nodes of the problem, the newest graph's first."""
    kernels = {point.original.kernel_id for point in points}
    rows = KernelUse.objects.filter(kernel__in=kernels, template_node__problem=series.own_problem)
    found: dict[int, list[RecordedUse]] = {}
    related = ("kernel", "template_node__graph__file")
    for row in rows.select_related(*related).order_by("-template_node__graph", "template_node"):
        node = row.template_node
        file = node.graph.file
        place = GraphNodeRef(file.digest, file.size_bytes, node.name)
        buffers = (*node.reads, *node.writes)
        use = RecordedUse(place, tuple(row.kernel.args), row.call, buffers)
        found.setdefault(row.kernel_id, []).append(use)
    return found


def sites_of(uses: Mapping[int, list[RecordedUse]]) -> list[GraphNodeRef]:
    """Return where to look for the problem: some nodes with these calls."""
    each = dict.fromkeys(use.place for of_kernel in uses.values() for use in of_kernel)
    return list(each)[:_MOST_SITES]


def stored_build(point: RemeasuredPoint, uses: Mapping[int, list[RecordedUse]]) -> Build:
    """Return the build to measure again. Raises ``UserError`` if it is gone, or its call is
    unknown."""
    build = point.original.build
    if build is None or build.library is None or not uses.get(build.kernel_id):
        raise UserError("its build is no longer stored")
    return build


def _scheduled(place: GraphNodeRef) -> Schedule | None:
    try:
        return engine.scheduled(place.graph).schedule
    except FileNotFoundError:
        return None


def _candidate(
    point: RemeasuredPoint, uses: dict[int, list[RecordedUse]], site: CallSite, device: DeviceInfo
) -> BuiltCandidate:
    """Return the recorded build with its call at the site. Raises ``UserError``,
    ``FileNotFoundError``."""
    build = stored_build(point, uses)
    request = site.request(build.kernel.name, uses[build.kernel_id], device.target)
    made = build_result(build, cached=True)
    if isinstance(made, Rejected):
        raise UserError(made.reason)
    return BuiltCandidate(str(point.pk), str(library_of(made)), request)


def _record(
    point: RemeasuredPoint, series: Series, measured: Measurement, device: DeviceInfo
) -> Datum:
    """Store a new point at the old point's place in the series, measured now."""
    original, problem = point.original, problem_of_series(series)
    assert original.build is not None
    result = store_measurement(measured, original.build, problem.pk, device)
    key = SeriesKey(
        problem=series.problem,
        own=problem.digest,
        sizes=series.sizes,
        target=series.target,
        device=series.device_name,
        toolchain=series.toolchain,
        metric=series.metric,
        unit=series.unit,
    )
    revision = original.revision
    history.add_result(
        result,
        Source.AGAIN,
        RevisionKey(revision.name, revision.at, revision.branch, revision.repository),
        timezone.now(),
        key,
        original.at,
    )
    return Datum.objects.get(result=result)
