"""A worker's part: the builds of both sides, measured interleaved on one device."""

from __future__ import annotations

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
from codegen_app.web.row import build_row
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
from scheduler.tuning.replay import GraphNodeRef, RecordedUse, find_call_site

_MOST_SITES = 5


def queued_remeasurements(target: str) -> QuerySet[Remeasurement]:
    """Return what waits for a device of that target, of a model that this host has."""
    rows = Remeasurement.objects.filter(series__target=target)
    if not rows.filter(state=State.QUEUED).exists():
        return rows.none()
    return queued_for_models(
        target, (name for model_target, name in devices.local_models() if model_target == target)
    )


def queued_for_models(target: str, names: Iterable[str]) -> QuerySet[Remeasurement]:
    """Return what waits for a device of that target, of one of these models."""
    return Remeasurement.objects.filter(series__target=target, series__device_name__in=set(names))


def run(row: Remeasurement) -> None:
    """Run a claimed remeasurement. Raises ``work.LeaseLostError`` when the claim is lost."""
    cancellation, progress = Cancellation(), dict[str, int]()
    series = row.series
    with (
        work.heartbeat(row, cancellation.cancel, progress.copy) as lease_lost,
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


def _measure(
    row: Remeasurement, device: DeviceInfo, progress: dict[str, int], cancellation: Cancellation
) -> None:
    points = points_of(row)
    uses = uses_of(row.series, points)
    problem = problem_of_series(row.series)
    site = find_call_site(sites_of(uses), problem.digest, row.series.sizes, _scheduled)
    candidates: dict[str, BuiltCandidate] = {}
    reasons: dict[str, str] = {}
    for point in points:
        key = str(point.pk)
        try:
            build = stored_build(point, uses)
            request = site.request(build.kernel.name, uses[build.kernel_id], device.target)
            built = build_result(build, cached=True)
            if isinstance(built, Rejected):
                reasons[key] = built.reason
            else:
                candidates[key] = BuiltCandidate(key, str(library_of(built)), request)
        except MachineError:
            raise
        except (UserError, FileNotFoundError) as error:
            reasons[key] = str(error)

    def record_progress(samples: int, due: int) -> None:
        progress.update(samples=samples, samples_due=due)

    outcomes = measure_interleaved(
        site.node,
        site.lowered,
        site.bindings,
        candidates,
        device,
        candidate_results.seed(problem),
        record_progress,
        cancellation,
    )
    if cancellation.cancelled:
        raise Cancelled
    record(row, outcomes, reasons, device, **progress)


@transaction.atomic
def record(
    row: Remeasurement,
    outcomes: Mapping[str, Measurement | Rejected],
    reasons: Mapping[str, str],
    device: DeviceInfo,
    **fields: int,
) -> None:
    """Close a claimed remeasurement: each measured point becomes a new point of its series, and the
    others record why not. Raises ``work.LeaseLostError``."""
    points = points_of(row)
    why: dict[int, str] = {}
    for point in points:
        outcome = outcomes.get(str(point.pk))
        if not isinstance(outcome, Measurement):
            why[point.pk] = outcome.reason if outcome is not None else reasons[str(point.pk)]
    state, rejection = State.DONE, {}
    for side in ("before", "after"):
        side_points = [point.pk for point in points if point.side(row) == side]
        if all(pk in why for pk in side_points):
            # What was measured and rejected says more than what could not be measured.
            first = min(side_points, key=lambda pk: str(pk) not in outcomes)
            reason = f"no point {side} the change could be measured: {why[first]}"
            state, rejection = State.REJECTED, {"stage": Stage.RUN, "reason": reason}
            break
    work.finish(row, state, **rejection, **fields)
    problem = problem_of_series(row.series)
    key = build_row(SeriesKey, row.series, own=problem.digest, device=row.series.device_name)
    for point in points:
        stored = RemeasuredPoint.objects.filter(pk=point.pk)
        outcome = outcomes.get(str(point.pk))
        if isinstance(outcome, Measurement):
            # A new point at the old point's place in the series, measured now.
            build, revision = point.original.build, point.original.revision
            assert build is not None
            result = store_measurement(outcome, build, problem.pk, device)
            history.add_result(
                result,
                Source.AGAIN,
                RevisionKey(revision.name, revision.at, revision.branch, revision.repository),
                timezone.now(),
                key,
                point.original.at,
            )
            stored.update(datum=Datum.objects.get(result=result), reason="")
        else:
            stored.update(reason=why[point.pk][:500])


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
    uses: dict[int, list[RecordedUse]] = {}
    related = ("kernel", "template_node__graph__file")
    for row in rows.select_related(*related).order_by("-template_node__graph", "template_node"):
        node = row.template_node
        file = node.graph.file
        place = GraphNodeRef(file.digest, file.size_bytes, node.name)
        buffers = (*node.reads, *node.writes)
        use = RecordedUse(place, tuple(row.kernel.args), row.call, buffers)
        uses.setdefault(row.kernel_id, []).append(use)
    return uses


def sites_of(uses: Mapping[int, list[RecordedUse]]) -> list[GraphNodeRef]:
    """Return where to look for the problem: some nodes with these calls."""
    places = dict.fromkeys(use.place for calls in uses.values() for use in calls)
    return list(places)[:_MOST_SITES]


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
