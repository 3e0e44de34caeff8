"""What waits for workers: the rows behind each queue, whoever announces or counts them."""

from __future__ import annotations

from typing import Any

from django.db.models import Case, F, QuerySet, Value, When
from django.db.models.functions import Now

from codegen_app.models import (
    Build,
    Delivery,
    DeliveryState,
    ForeignKernel,
    Graph,
    Modelling,
    Packing,
    State,
    TuningRun,
)
from codegen_app.services import work
from scheduler.targets.modelled import PREFIX

#: What stands for the architecture in queues of runs of modelled times: any machine takes those.
MODELLED = "model"
#: Of a tuning task: the architecture, or what stands for it, whose queue it waits in.
MEASURED_ON = Case(
    When(run__device__startswith=PREFIX, then=Value(MODELLED)), default=F("run__target")
)

Rows = QuerySet[Any]


def to_prepare() -> tuple[Rows, ...]:
    """Graphs to be read, runs to be planned, bundles to be packed."""
    unplanned = TuningRun.objects.filter(
        planned_at=None, state=State.QUEUED, graph__state=State.DONE
    )
    return work.due(Graph.objects.all()), unplanned, work.due(Packing.objects.all())


def to_compile() -> tuple[Rows, ...]:
    """Kernels to be compiled, and what the same workers model."""
    modellings = Modelling.objects.filter(build__state=State.DONE)
    foreign = ForeignKernel.objects.all()
    return work.due(Build.objects.all()), work.due(modellings), work.due(foreign)


def to_notify() -> tuple[Rows, ...]:
    """Deliveries whose moment has come."""
    return (Delivery.objects.filter(state=DeliveryState.PENDING, next_at__lte=Now()),)
