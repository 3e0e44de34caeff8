"""What graphs and builds mean for tuning runs: receivers of their signals."""

from __future__ import annotations

from typing import Any

from django.dispatch import receiver

from codegen_app.graphs.models import Graph
from codegen_app.graphs.signals import graph_imported, graph_prepared, graph_rejected
from codegen_app.kernels.models import Build
from codegen_app.kernels.signals import build_finished, build_replaced
from codegen_app.tuning.models import Candidate
from codegen_app.tuning.services import ledger, planning, schedules
from codegen_app.workers.models import OPEN_STATES


@receiver(graph_imported)
def run_schedules(graph: Graph, **_: Any) -> None:
    schedules.after_import(graph)


@receiver(graph_prepared)
def plan_runs(graph: Graph, **_: Any) -> None:
    planning.plan_waiting(graph)


@receiver(graph_rejected)
def drop_runs(graph: Graph, reason: str, **_: Any) -> None:
    ledger.drop_runs(graph, f"the graph cannot be scheduled: {reason}")


@receiver(build_finished)
def close_candidates(build: Build, **_: Any) -> None:
    ledger.on_build_finished(build)


@receiver(build_replaced)
def replace_build(build: Build, new: Build, **_: Any) -> None:
    Candidate.objects.filter(build=build, state__in=OPEN_STATES).update(build=new)
