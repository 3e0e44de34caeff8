"""What waits for workers: the rows behind each queue, whoever announces or counts them."""

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

#: What stands for the architecture in queues of runs of modelled times: any machine takes those.
MODELLED = "model"
#: Of a tuning task: the architecture, or what stands for it, whose queue it waits in.
MEASURED_ON = Case(
    When(run__device__startswith=DEVICE_PREFIX, then=Value(MODELLED)), default=F("run__target")
)

Rows = QuerySet[Any]


def prepare_backlog() -> tuple[Rows, ...]:
    """Graphs to be read, runs to be planned, bundles to be packed; graphs to be compared with torch
    where a worker that is alive has it."""
    compared = TorchComparison.objects.filter(Exists(Worker.alive_with_torch()))
    return *prepare_backlog_without_torch(), work.due_rows(compared)


def prepare_backlog_without_torch() -> tuple[Rows, ...]:
    """Work of the queue ``prepare`` that does not need torch."""
    unplanned = TuningRun.objects.filter(
        planned_at=None, state=State.QUEUED, graph__state=State.DONE
    )
    return work.due_rows(Graph.objects.all()), unplanned, work.due_rows(Packing.objects.all())


def compile_backlog() -> tuple[Rows, ...]:
    """Kernels to be compiled, what searches elsewhere ask for, and what the same workers model."""
    return work.due_rows(Build.objects.all()), *compile_backlog_without_builds()


def compile_backlog_without_builds() -> tuple[Rows, ...]:
    """What workers that compile do besides, whatever their compilers are."""
    modellings = Modelling.objects.filter(build__state=State.DONE)
    return search_leases(), work.due_rows(modellings), work.due_rows(ForeignKernel.objects.all())


def search_leases() -> QuerySet[RemoteLease]:
    """Leases whose worker may not ask yet, or whose asking was not answered."""
    rows = RemoteLease.objects.filter(Q(offered__isnull=True) | ~Q(asked=[]), ended_at=None)
    rows = rows.annotate(created_at=F("begun_at"))  # as all that waits says since when
    related = ("task__run__graph__file", "task__template_node", "task__problem")
    return rows.filter(task__state=State.RUNNING, task__claim=F("claim")).select_related(*related)


def notify_backlog() -> tuple[Rows, ...]:
    """Deliveries whose moment has come."""
    return (Delivery.objects.filter(state=DeliveryState.PENDING, next_at__lte=Now()),)
