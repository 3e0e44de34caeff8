"""Work that waits for workers: the due rows of each queue, for announcing and counting."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import Exists, QuerySet
from django.db.models.functions import Now

from codegen_app.graphs.models import Graph, TorchComparison
from codegen_app.graphs.services import torch_comparisons
from codegen_app.kernels.models import Build, ForeignKernel, Modelling, Packing
from codegen_app.kernels.services import builds
from codegen_app.remote import leases
from codegen_app.tracking.bisecting import building
from codegen_app.tracking.models import BisectionStep, Delivery, DeliveryState, Remeasurement
from codegen_app.tracking.remeasuring import jobs as remeasuring
from codegen_app.tracking.services import alert_pipeline
from codegen_app.tuning.models import TuningRun, TuningTask
from codegen_app.tuning.services import ledger
from codegen_app.workers import work
from codegen_app.workers.models import State, Worker
from codegen_app.workers.queue import Kind, notify, queue_name

Rows = QuerySet[Any]


def due_rows(kind: Kind, *, here: bool = False) -> tuple[Rows, ...]:
    """Return the due rows of a queue, by model; with ``here``, only those for this host."""
    if kind is Kind.PREPARE:
        unplanned = TuningRun.objects.filter(
            planned_at=None, state=State.QUEUED, graph__state=State.DONE
        )
        if here:
            comparisons = torch_comparisons.queued_comparisons()
        else:
            comparisons = TorchComparison.objects.filter(Exists(Worker.alive_with_torch()))
        return (
            work.due_rows(Graph.objects.all()),
            unplanned,
            work.due_rows(Packing.objects.all()),
            work.due_rows(comparisons),
        )
    if kind is Kind.COMPILE:  # workers that compile also model, and answer remote searches
        modellings = Modelling.objects.filter(build__state=State.DONE)
        return (
            work.due_rows(builds.local_builds() if here else Build.objects.all()),
            leases.search_leases(),
            work.due_rows(modellings),
            work.due_rows(ForeignKernel.objects.all()),
        )
    if kind is Kind.BISECT:
        return (work.due_rows(building.queued_steps() if here else BisectionStep.objects.all()),)
    if kind is Kind.NOTIFY:
        return (Delivery.objects.filter(state=DeliveryState.PENDING, next_at__lte=Now()),)
    return ()


@transaction.atomic
def notify_workers() -> None:
    """Wake workers for all due work."""
    for kind in (Kind.PREPARE, Kind.COMPILE, Kind.BISECT, Kind.NOTIFY):
        if count := sum(rows.count() for rows in due_rows(kind)):
            notify(kind, count)
    tasks = work.due_rows(TuningTask.objects.all()).order_by()
    remeasurements = work.due_rows(Remeasurement.objects.all()).order_by()
    for target in {
        *tasks.values_list(ledger.MEASURED_ON, flat=True).distinct(),
        *remeasurements.values_list("series__target", flat=True).distinct(),
    }:
        notify(Kind.MEASURE, target=target)


def has_work(queue: str) -> bool:
    """Return whether a worker of that queue on this host could begin some waiting work now."""
    if queue == queue_name(Kind.DETECT):
        return alert_pipeline.has_pending()
    rows: tuple[Rows, ...] = ()
    prefix = queue_name(Kind.MEASURE, "")
    if queue.startswith(prefix):
        target = queue.removeprefix(prefix)
        rows = (
            work.due_rows(ledger.ready_tasks(target)),
            work.due_rows(remeasuring.queued_remeasurements(target)),
        )
    elif queue in (Kind.PREPARE, Kind.COMPILE, Kind.BISECT):
        rows = due_rows(Kind(queue), here=True)
    return any(each.exists() for each in rows)
