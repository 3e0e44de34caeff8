"""Work that waits for workers: the rows behind each queue, for announcing and counting."""

from __future__ import annotations

from typing import Any

from django.db.models import Case, Exists, F, Q, QuerySet, Value, When
from django.db.models.functions import Now

from codegen_app.models import (
    Build,
    Delivery,
    DeliveryState,
    ForeignKernel,
    Graph,
    Modelling,
    Packing,
    RemoteLease,
    State,
    TorchComparison,
    TuningRun,
    Worker,
)
from codegen_app.services import work
from scheduler.targets.modelled import DEVICE_PREFIX

#: The architecture in the queues of runs of modelled times: any machine takes these.
MODELLED = "model"
#: The architecture of a tuning task's queue, or ``MODELLED``.
MEASURED_ON = Case(
    When(run__device__startswith=DEVICE_PREFIX, then=Value(MODELLED)), default=F("run__target")
)

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
    return search_leases(), work.due_rows(modellings), work.due_rows(ForeignKernel.objects.all())


def search_leases() -> QuerySet[RemoteLease]:
    """Return leases whose worker may not send requests yet, or whose requests were not answered."""
    rows = RemoteLease.objects.filter(Q(offered__isnull=True) | ~Q(asked=[]), ended_at=None)
    rows = rows.annotate(created_at=F("begun_at"))  # like all waiting work
    related = ("task__run__graph__file", "task__template_node", "task__problem")
    return rows.filter(task__state=State.RUNNING, task__claim=F("claim")).select_related(*related)


def notify_backlog() -> tuple[Rows, ...]:
    """Return deliveries that are due."""
    return (Delivery.objects.filter(state=DeliveryState.PENDING, next_at__lte=Now()),)
