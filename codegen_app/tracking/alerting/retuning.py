"""Tuning the problems of an alert's series again: one request, one run per problem."""

from __future__ import annotations

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from codegen_app.graphs.models import TemplateNode
from codegen_app.tracking.models import Alert, AlertRun, Series
from codegen_app.tracking.queries.remeasurable import changes_of, own_series
from codegen_app.tuning.models import TuningRun
from codegen_app.tuning.services import retuning, run_requests
from codegen_app.workers.models import OPEN_STATES
from scheduler.errors import UserError
from scheduler.tuning.budget import Budget

BUDGET_S = 60.0
MAX_RUNS = 10


@transaction.atomic
def retune(alert: Alert, actor: AbstractBaseUser | None) -> list[TuningRun]:
    """Start a run with a budget of ``BUDGET_S`` for each of the alert's own problems, the largest
    change first; an open run is reused. Raises ``UserError`` if there is nothing to tune."""
    alert = Alert.objects.select_for_update().get(pk=alert.pk)
    tunable = own_series(alert, changes_of(alert))
    if not tunable:
        raise UserError("no series of this alert is measured here: nothing to tune")
    known = AlertRun.objects.filter(alert=alert, run__state__in=OPEN_STATES)
    running = {row.series_id: row.run for row in known.select_related("run")}
    return [running.get(series.pk) or _start(alert, series, actor) for series in tunable[:MAX_RUNS]]


def _start(alert: Alert, series: Series, actor: AbstractBaseUser | None) -> TuningRun:
    """Tune a node of the problem: in the graph of the last point's run, else in the newest."""
    nodes = TemplateNode.objects.filter(problem=series.own_problem).select_related("graph")
    node = None
    last = series.data.filter(is_trunk=True, run__isnull=False).order_by("-at", "-pk").first()
    if last is not None and last.run is not None:
        node = nodes.filter(graph=last.run.graph_id).order_by("position").first()
    node = node or nodes.order_by("-graph", "position").first()
    if node is None:
        raise UserError(f"no imported graph contains {series.problem}: import its model again")
    symbols = node.graph.symbols
    run = run_requests.start_run(
        node.graph,
        retuning.device_for(series.target),
        series.target,
        {name: size for name, size in series.sizes.items() if name in symbols},
        actor,
        template_node=node,
        budget=Budget(seconds=BUDGET_S),
        why=f"alert {alert.pk}: {alert}"[:500],
    )
    AlertRun.objects.create(alert=alert, series=series, run=run)
    return run
