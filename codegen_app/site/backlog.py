"""Work that waits for workers: the rows behind each queue, for announcing and counting."""

from __future__ import annotations

from typing import Any

from django.db.models import Exists, QuerySet
from django.db.models.functions import Now

from codegen_app.graphs.models import Graph, TorchComparison
from codegen_app.graphs.services import torch_comparisons
from codegen_app.kernels.models import Build, ForeignKernel, Modelling, Packing
from codegen_app.kernels.services import builds
from codegen_app.remote import leases
from codegen_app.tracking.models import Delivery, DeliveryState, Remeasurement
from codegen_app.tracking.remeasuring import jobs as remeasuring
from codegen_app.tracking.services import alert_pipeline
from codegen_app.tuning.models import TuningRun, TuningTask
from codegen_app.tuning.services import ledger
from codegen_app.workers import work
from codegen_app.workers.models import State, Worker
from codegen_app.workers.queue import Kind, notify, queue_name

Rows = QuerySet[Any]


def prepare_backlog() -> tuple[Rows, ...]:
    """Return graphs to import, runs to plan and bundles to pack, and graphs to compare with torch
    if a live worker has torch."""
    compared = TorchComparison.objects.filter(Exists(Worker.alive_with_torch()))
    return *prepare_backlog_without_torch(), work.due_rows(compared)


def prepare_backlog_without_torch() -> tuple[Rows, ...]:
    """Return the work of the queue ``prepare`` that does not need torch."""
    unplanned = TuningRun.objects.filter(
        planned_at=None, state=State.QUEUED, graph__state=State.DONE
    )
    return work.due_rows(Graph.objects.all()), unplanned, work.due_rows(Packing.objects.all())


def compile_backlog() -> tuple[Rows, ...]:
    """Return kernels to compile, build requests of remote searches, and work that the same workers
    model."""
    return work.due_rows(Build.objects.all()), *compile_backlog_without_builds()


def compile_backlog_without_builds() -> tuple[Rows, ...]:
    """Return the other work of compiling workers, which does not depend on their compilers."""
    modellings = Modelling.objects.filter(build__state=State.DONE)
    return (
        leases.search_leases(),
        work.due_rows(modellings),
        work.due_rows(ForeignKernel.objects.all()),
    )


def notify_backlog() -> tuple[Rows, ...]:
    """Return deliveries that are due."""
    return (Delivery.objects.filter(state=DeliveryState.PENDING, next_at__lte=Now()),)


def notify_workers() -> None:
    """Wake workers for all due work."""
    announced = {
        Kind.PREPARE: prepare_backlog(),
        Kind.COMPILE: compile_backlog(),
        Kind.NOTIFY: notify_backlog(),
    }
    for kind, rows in announced.items():
        if count := sum(each.count() for each in rows):
            notify(kind, count)
    tasks = work.due_rows(TuningTask.objects.all()).order_by()
    again = work.due_rows(Remeasurement.objects.all()).order_by()
    for target in {
        *tasks.values_list(ledger.MEASURED_ON, flat=True).distinct(),
        *again.values_list("series__target", flat=True).distinct(),
    }:
        notify(Kind.MEASURE, target=target)


def has_work(queue: str) -> bool:
    """Return whether a worker of that queue on this host could begin some waiting work now."""
    if queue == queue_name(Kind.DETECT):
        return alert_pipeline.has_pending()
    return any(rows.exists() for rows in _local_rows(queue))


def _local_rows(queue: str) -> tuple[Rows, ...]:
    """Return the due rows of a queue, restricted to work that this host can do."""
    if queue == queue_name(Kind.PREPARE):
        return *prepare_backlog_without_torch(), work.due_rows(
            torch_comparisons.queued_comparisons()
        )
    if queue == queue_name(Kind.COMPILE):
        return work.due_rows(builds.local_builds()), *compile_backlog_without_builds()
    prefix = queue_name(Kind.MEASURE, "")
    if queue.startswith(prefix):
        target = queue.removeprefix(prefix)
        return work.due_rows(ledger.ready_tasks(target)), work.due_rows(
            remeasuring.queued_remeasurements(target)
        )
    return ()
