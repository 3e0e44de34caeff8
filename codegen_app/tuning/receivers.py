"""What graphs and builds mean for tuning runs: receivers of their signals."""

from __future__ import annotations

from typing import Any

from codegen_app.graphs.models import Graph
from codegen_app.graphs.signals import graph_imported, graph_prepared, graph_rejected
from codegen_app.kernels.models import Build
from codegen_app.kernels.signals import build_finished, build_replaced
from codegen_app.tuning.models import Candidate
from codegen_app.tuning.services import ledger, planning, schedules
from codegen_app.workers.models import OPEN_STATES


def connect() -> None:
    """Connect the signals; called once, when the applications are ready."""
    graph_imported.connect(_graph_imported)
    graph_prepared.connect(_graph_prepared)
    graph_rejected.connect(_graph_rejected)
    build_finished.connect(_build_finished)
    build_replaced.connect(_build_replaced)


def _graph_imported(graph: Graph, **_: Any) -> None:
    schedules.after_import(graph)


def _graph_prepared(graph: Graph, **_: Any) -> None:
    planning.plan_waiting(graph)


def _graph_rejected(graph: Graph, reason: str, **_: Any) -> None:
    ledger.drop_runs(graph, f"the graph cannot be scheduled: {reason}")


def _build_finished(build: Build, **_: Any) -> None:
    ledger.on_build_finished(build)


def _build_replaced(build: Build, new: Build, **_: Any) -> None:
    Candidate.objects.filter(build=build, state__in=OPEN_STATES).update(build=new)
