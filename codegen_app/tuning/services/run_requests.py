"""Requesting tuning runs, at given sizes, and the priority of their builds."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from codegen_app.accounts import audit
from codegen_app.graphs.models import Graph, TemplateNode
from codegen_app.graphs.services.sizes import checked_bindings
from codegen_app.tuning.models import TuningRun
from codegen_app.workers import queue
from codegen_app.workers.models import State
from scheduler import targets
from scheduler.errors import UserError
from scheduler.runtime.devices import modelled_device
from scheduler.runtime.isa_device import require_timing
from scheduler.targets.modelled import is_modelled
from scheduler.tuning.budget import Budget
from scheduler.tuning.strategies.registry import DEFAULT_STRATEGY, find_strategy

NO_LIMIT = Budget()
MAX_PRIORITY = 100
PARTS = 10  # the priorities of a run's tasks lie within its own
_MAX_COUNT = 10**6
_TIMED = 25  # before builds that nothing waits for, after those that a person requests


@transaction.atomic
def start_run(
    graph: Graph,
    device: str,
    target: str,
    bindings: Mapping[str, int],
    actor: AbstractBaseUser | None,
    *,
    note: str = "",
    template_node: TemplateNode | None = None,
    kinds: Collection[str] = (),
    candidate_limit: int | None = None,
    budget: Budget = NO_LIMIT,
    strategy: str = DEFAULT_STRATEGY,
    priority: int = 0,
    why: str = "",
) -> TuningRun:
    """Request a run: a row, for which a worker creates tasks once the graph is prepared.

    With a ``budget`` the candidates are searched among all that the generator has, in the order of
    the ``strategy``. Sizes that ``bindings`` leaves out are the model's own hints. Raises
    ``UserError`` for an unknown target or strategy, an unknown symbol, a size out of its bounds, an
    invalid priority, budget or modelled device, a device that measures nothing, or a rejected
    graph.
    """
    if abs(priority) > MAX_PRIORITY:
        raise UserError(f"priority {priority}: from -{MAX_PRIORITY} to {MAX_PRIORITY}")
    for name, limit in asdict(budget).items():
        if limit is not None and not 0 < limit <= _MAX_COUNT:
            raise UserError(f"budget: {name}={limit} is out of range")
    find_strategy(strategy)
    if is_modelled(device):
        modelled = modelled_device(device)
        if modelled.target != target:
            raise UserError(f"{modelled.id} is a board of {modelled.target}, not of {target}")
        device = modelled.id
    require_timing(device)
    graph.refresh_from_db(fields=["state", "reason", "symbols"])
    if graph.state in {State.REJECTED, State.QUARANTINED}:
        raise UserError(f"{graph} cannot be tuned: {graph.reason}")
    run = TuningRun.objects.create(
        graph=graph,
        template_node=template_node,
        device=device,
        target=targets.find(target).name,
        bindings=checked_bindings(graph, bindings),
        note=note,
        kinds=list(kinds),
        candidate_limit=candidate_limit,
        budget_s=budget.seconds,
        max_compiles=budget.compiles,
        max_measurements=budget.measurements,
        strategy=strategy,
        priority=priority,
        why=why[:500],
        requested_by_id=audit.actor_id(actor),
    )
    audit.record(actor, "tune", run, why)
    queue.notify(queue.Kind.PREPARE)  # its workers plan
    return run


def build_priority(run: TuningRun) -> int:
    """Return the priority of the builds that a run waits for."""
    return _TIMED + PARTS * run.priority
