"""A worker's part: the builds of both sides, measured in turns on one device."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from codegen_app.models import (
    BenchmarkResult,
    Datum,
    KernelUse,
    RemeasuredPoint,
    Remeasurement,
    Series,
    Source,
    State,
    TemplateNode,
)
from codegen_app.services import devices, engine, environments, history, outcomes, work
from codegen_app.services import series as storing
from codegen_app.services.remote_builds import built
from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.measurement import Measurement
from scheduler.build.process import Cancellation, Cancelled
from scheduler.build.recipe import library_of
from scheduler.codegen.problem import problem_of
from scheduler.codegen.recorded_call import RecordedCall
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.operations import Lowered
from scheduler.outcome import MachineError, Rejected, Stage, UserError
from scheduler.results.points.model import RevisionKey, SeriesKey
from scheduler.runtime.device import DeviceInfo
from scheduler.tuning.again import measure_again

_MOST_SITES = 5


def waiting(target: str) -> QuerySet[Remeasurement]:
    """What waits for a device of that target, of a model that is here."""
    rows = Remeasurement.objects.filter(series__target=target)
    if not rows.filter(state=State.QUEUED).exists():
        return rows.none()
    kinds = Q(pk__in=[])
    for of, name in devices.models_here():
        kinds |= Q(series__target=of, series__device_name=name)
    return rows.filter(kinds)


def run(row: Remeasurement) -> None:
    """Do a claimed one. Raises ``work.LeaseLostError`` when the claim is lost meanwhile."""
    cancellation, progress = Cancellation(), _Progress()
    series = row.series
    with (
        work.heartbeat(row, cancellation.cancel, progress.fields) as lease_lost,
        devices.held_of_model(series.target, series.device_name, lease_lost) as device,
    ):
        if device is None:
            if lease_lost.is_set():
                raise work.LeaseLostError(f"{row} was cancelled, or is another worker's")
            reason = f"no {series.device_name} ({series.target}) is here any more"
            work.finish(row, State.REJECTED, stage=Stage.LOAD, reason=reason)
            return
        try:
            _measure(row, device, progress, cancellation)
        except Cancelled:
            raise work.LeaseLostError(f"{row} was cancelled, or is another worker's") from None
        except MachineError:
            raise
        except UserError as error:
            work.finish(row, State.REJECTED, stage=Stage.LOAD, reason=str(error))


class _Progress:
    """How far it is, as the heartbeat writes it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fields: dict[str, int] = {}

    def tell(self, samples: int, due: int) -> None:
        with self._lock:
            self._fields = {"samples": samples, "samples_due": due}

    def fields(self) -> dict[str, int]:
        with self._lock:
            return dict(self._fields)


@dataclass(frozen=True)
class _Site:
    """A node of the series' problem as it is scheduled now, at the series' sizes."""

    row: TemplateNode
    node: SchedulerNode
    lowered: Lowered
    bindings: dict[str, int]


def _measure(
    row: Remeasurement, device: DeviceInfo, progress: _Progress, cancellation: Cancellation
) -> None:
    related = ("original__build__library", "original__build__kernel", "original__revision")
    points = list(row.points.select_related(*related))
    uses = _uses(row.series, points)
    site = _site(row.series, uses)
    candidates: dict[str, BuiltCandidate] = {}
    reasons: dict[str, str] = {}
    for point in points:
        try:
            candidates[str(point.pk)] = _candidate(point, uses, site, device)
        except MachineError:
            raise
        except (UserError, FileNotFoundError) as error:
            reasons[str(point.pk)] = str(error)
    found = measure_again(
        site.node,
        site.lowered,
        site.bindings,
        candidates,
        device,
        outcomes.seed(site.row.problem) if site.row.problem else 0,
        progress.tell,
        cancellation,
    )
    if cancellation.cancelled:
        raise Cancelled
    with transaction.atomic():
        state, why_none = _outcome(row, points, found, reasons)
        work.finish(row, state, **why_none, **progress.fields())
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
    found: dict[str, Measurement | Rejected],
    reasons: dict[str, str],
) -> tuple[State, dict[str, str]]:
    """Done where both sides have a time; else why a side has none."""
    for side in ("before", "after"):
        keys = [str(one.pk) for one in points if one.side(row) == side]
        of_side = [found[key] for key in keys if key in found]
        if any(isinstance(one, Measurement) for one in of_side):
            continue
        rejected = [one.reason for one in of_side if isinstance(one, Rejected)]
        why = (rejected + [reasons[key] for key in keys if key in reasons])[0]
        reason = f"nothing of the side {side} the change was measured: {why}"
        return State.REJECTED, {"stage": Stage.RUN, "reason": reason}
    return State.DONE, {}


def _uses(series: Series, points: list[RemeasuredPoint]) -> dict[int, list[KernelUse]]:
    """By kernel: the calls that nodes of the problem make of it, the newest graph's first."""
    kernels = {point.original.kernel_id for point in points}
    rows = KernelUse.objects.filter(kernel__in=kernels, template_node__problem=series.own_problem)
    found: dict[int, list[KernelUse]] = {}
    related = ("kernel", "template_node__graph__file", "template_node__problem")
    for use in rows.select_related(*related).order_by("-template_node__graph", "template_node"):
        found.setdefault(use.kernel_id, []).append(use)
    return found


def _site(series: Series, uses: dict[int, list[KernelUse]]) -> _Site:
    """Where the kernels are called. Raises ``UserError`` where no graph has the problem now."""
    rows = {use.template_node_id: use.template_node for each in uses.values() for use in each}
    for row in list(rows.values())[:_MOST_SITES]:
        try:
            scheduled = engine.scheduled(row.graph.file.digest)
            node = scheduled.node(row.name)
        except (KeyError, FileNotFoundError):
            continue
        lowered = scheduled.schedule.lowered
        if row.problem is None or problem_of(node, lowered).digest != row.problem.digest:
            continue
        symbols = lowered.graph.symbols
        bindings = {name: series.sizes.get(name, info.hint) for name, info in symbols.items()}
        return _Site(row, node, lowered, bindings)
    raise UserError(
        "no imported graph has this problem as it was: this version of Kiln makes other kernels of"
        " it, or the model was deleted"
    )


def _candidate(
    point: RemeasuredPoint, uses: dict[int, list[KernelUse]], site: _Site, device: DeviceInfo
) -> BuiltCandidate:
    """The recorded build with its call at the site. Raises ``UserError``, ``FileNotFoundError``."""
    build = point.original.build
    of_kernel = uses.get(build.kernel_id, []) if build else []
    if build is None or build.library is None or not of_kernel:
        raise UserError("its build is not kept any more")
    same = [use for use in of_kernel if use.template_node_id == site.row.pk]
    use = (same or of_kernel)[0]
    there, here = ([*node.reads, *node.writes] for node in (use.template_node, site.node))
    call = RecordedCall(
        use.kernel.name, use.kernel.args, use.call, dict(zip(there, here, strict=True))
    )
    request = call.request(device.target, site.bindings, site.lowered.buffers)
    made = built(build, cached=True)
    if isinstance(made, Rejected):
        raise UserError(made.reason)
    return BuiltCandidate(str(point.pk), str(library_of(made)), request)


def _record(
    point: RemeasuredPoint, series: Series, measured: Measurement, device: DeviceInfo
) -> Datum:
    """A new point of the series at the place of the old one, measured now."""
    original = point.original
    build, problem = original.build, series.own_problem
    assert build is not None
    assert problem is not None
    result = BenchmarkResult.objects.create(
        kernel=build.kernel,
        build=build,
        problem=problem,
        environment=environments.record(device, build),
        **BenchmarkResult.fields_of(measured),
    )
    revision = original.revision
    new = history.point_of_result(
        result,
        SeriesKey(
            problem=series.problem,
            own=problem.digest,
            sizes=series.sizes,
            target=series.target,
            device=series.device_name,
            toolchain=series.toolchain,
            metric=series.metric,
            unit=series.unit,
        ),
        RevisionKey(revision.name, revision.at, revision.branch, revision.repository),
        timezone.now(),
    )
    own = storing.Own(problem.pk, build.kernel_id, build.pk, None, result.pk, at=original.at)
    storing.store([new], Source.AGAIN, own=own)
    return Datum.objects.get(result=result)
