"""Starting tuning runs: which problems, which candidates, at which sizes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import Q

from codegen_app.models import (
    OPEN_STATES,
    Build,
    Candidate,
    Graph,
    KernelUse,
    State,
    TemplateNode,
    TuningRun,
    TuningTask,
)
from codegen_app.services import audit, builds, ledger, queue
from scheduler import targets
from scheduler.outcome import UserError
from scheduler.tuning.budget import Budget
from scheduler.tuning.strategies.registry import DEFAULT_STRATEGY, strategy_named

NO_LIMIT = Budget()
MAX_PRIORITY = 100
_PARTS = 10  # the priorities of a run's tasks lie within its own
_MAX_COUNT = 10**6
_TIMED = 25  # before builds that nobody waits for, after those that a person asks for


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
    """Ask for a run; one of a graph that is not prepared yet begins when it is.

    With a ``budget`` the candidates are searched for among all that the generator offers, in the
    order of the ``strategy``. Sizes that ``bindings`` leaves out are the model's own hints. Raises
    ``UserError`` for an unknown target or strategy, an unknown symbol, a size out of its bounds, a
    priority or budget that is none, or a graph that was rejected.
    """
    _check_limits(budget, priority)
    strategy_named(strategy)
    # A preparation that ends right now either sees this run, or is seen here to be over.
    graph = Graph.objects.select_for_update().get(pk=graph.pk)
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
    if graph.state == State.DONE:
        plan(run)
    return run


def _check_limits(budget: Budget, priority: int) -> None:
    if abs(priority) > MAX_PRIORITY:
        raise UserError(f"priority {priority}: from -{MAX_PRIORITY} to {MAX_PRIORITY}")
    for name, limit in asdict(budget).items():
        if limit is not None and not 0 < limit <= _MAX_COUNT:
            raise UserError(f"budget: {limit} {name} are no limit")


def checked_bindings(graph: Graph, bindings: Mapping[str, int]) -> dict[str, int]:
    """A size for every symbol of the graph, each within its bounds; raises ``UserError``."""
    for name in bindings:
        if name not in graph.symbols:
            known = ", ".join(graph.symbols) or "none"
            raise UserError(f"{graph} has no symbolic size {name!r}; it has: {known}")
    chosen = {name: bindings.get(name, info["hint"]) for name, info in graph.symbols.items()}
    for name, value in chosen.items():
        low, high = graph.symbols[name]["min"], graph.symbols[name]["max"]
        if value < low or (high is not None and value > high):
            bounds = f"{low} to {'any' if high is None else high}"
            raise UserError(f"{name}={value} is out of the bounds of {graph}: {bounds}")
    return chosen


def plan(run: TuningRun) -> None:
    """Make the tasks and the ledger of a run whose graph is prepared, and ask for the builds."""
    first_nodes = _first_nodes(run)
    # The tuner asks for what it wants to try; it begins with the defaults, wherever it is.
    uses = _uses(first_nodes, 1 if run.has_budget else run.candidate_limit)
    kernels = [use.kernel for of_kernel in uses.values() for use in of_kernel]
    priority = build_priority(run)
    built = builds.request_builds(kernels, run.target, priority=priority) if kernels else {}
    for node in first_nodes:
        assert node.problem is not None
        task = TuningTask.objects.create(
            run=run,
            problem=node.problem,
            template_node=node,
            priority=_PARTS * run.priority + _priority(node, is_first=node is first_nodes[0]),
        )
        waiting = [
            Candidate(
                task=task,
                position=use.position,
                kernel=use.kernel,
                build=built[use.kernel_id],
                config=use.kernel.config,
            )
            for use in uses[node.pk]
        ]
        Candidate.objects.bulk_create(waiting)
        if not run.has_budget:  # whose ledger is written as candidates are tried
            ledger.add_rejected(task, node.rejected, first=node.offered)
    _close_finished_builds(run, built.values())


def build_priority(run: TuningRun) -> int:
    """Of the builds that a run waits for."""
    return _TIMED + _PARTS * run.priority


def _priority(node: TemplateNode, *, is_first: bool) -> int:
    """Every run shows something early; then templates, which decide how long a model takes."""
    return 2 if is_first else 1 if node.kind in builds.TEMPLATE_KINDS else 0


def _first_nodes(run: TuningRun) -> list[TemplateNode]:
    """One node for each problem that the run is about."""
    selection = Q(pk=run.template_node_id) if run.template_node_id else Q()
    if run.kinds:
        selection &= Q(kind__in=run.kinds)
    first: dict[int | None, TemplateNode] = {}
    for node in run.graph.template_nodes.filter(selection, problem__isnull=False).select_related(
        "problem"
    ):
        first.setdefault(node.problem_id, node)
    return list(first.values())


def _close_finished_builds(run: TuningRun, built: Iterable[Build]) -> None:
    """Builds that were over before the run began have nobody else to carry their outcome on."""
    for build in built:
        if build.state not in OPEN_STATES and build.state != State.DONE:
            ledger.build_is_over(build)
    ledger.close_run(run.pk)  # where there was nothing to measure
    queue.notify(queue.Kind.MEASURE, target=run.target)


def _uses(nodes: Iterable[TemplateNode], limit: int | None) -> dict[int, list[KernelUse]]:
    """The candidates of each node that the run tries, the default first."""
    uses: dict[int, list[KernelUse]] = {node.pk: [] for node in nodes}
    rows = KernelUse.objects.filter(template_node__in=uses).select_related("kernel")
    for use in rows.order_by("template_node", "position"):
        uses[use.template_node_id].append(use)
    return {pk: each[:limit] for pk, each in uses.items()}
