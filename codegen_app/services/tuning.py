"""Starting tuning runs: which problems, which candidates, at which sizes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

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
) -> TuningRun:
    """Ask for a run; one of a graph that is not prepared yet begins when it is.

    Sizes that ``bindings`` leaves out are the model's own hints. Raises ``UserError`` for an
    unknown target, an unknown symbol, a size out of its bounds, or a graph that was rejected.
    """
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
        requested_by_id=actor.pk if actor is not None else None,
    )
    audit.record(actor, "tune", run)
    if graph.state == State.DONE:
        plan(run)
    return run


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
    uses = _uses(first_nodes, run.candidate_limit)
    kernels = [use.kernel for taken in uses.values() for use in taken]
    built = builds.request_builds(kernels, run.target, priority=_TIMED) if kernels else {}
    for node in first_nodes:
        assert node.problem is not None
        task = TuningTask.objects.create(
            run=run,
            problem=node.problem,
            template_node=node,
            priority=_priority(node, is_first=node is first_nodes[0]),
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
        Candidate.objects.bulk_create(waiting + _refused(task, node, first=node.offered))
    _carry_on(run, built.values())


def _priority(node: TemplateNode, *, is_first: bool) -> int:
    """Every run shows something early; then templates, which decide how long a model takes."""
    return 2 if is_first else 1 if node.kind in builds.TEMPLATE_KINDS else 0


def _first_nodes(run: TuningRun) -> list[TemplateNode]:
    """One node for each problem that the run is about."""
    wanted = Q(pk=run.template_node_id) if run.template_node_id else Q()
    if run.kinds:
        wanted &= Q(kind__in=run.kinds)
    first: dict[int | None, TemplateNode] = {}
    for node in run.graph.template_nodes.filter(wanted, problem__isnull=False).select_related(
        "problem"
    ):
        first.setdefault(node.problem_id, node)
    return list(first.values())


def _carry_on(run: TuningRun, built: Iterable[Build]) -> None:
    """Builds that were over before the run began have nobody else to carry their outcome on."""
    for build in built:
        if build.state not in OPEN_STATES and build.state != State.DONE:
            ledger.build_is_over(build)
    ledger.close_run(run.pk)  # where there was nothing to measure
    queue.look_now(queue.Kind.MEASURE, target=run.target)


def _uses(nodes: Iterable[TemplateNode], limit: int | None) -> dict[int, list[KernelUse]]:
    """The candidates of each node that the run tries, the default first."""
    uses: dict[int, list[KernelUse]] = {node.pk: [] for node in nodes}
    rows = KernelUse.objects.filter(template_node__in=uses).select_related("kernel")
    for use in rows.order_by("template_node", "position"):
        uses[use.template_node_id].append(use)
    return {pk: each[:limit] for pk, each in uses.items()}


def _refused(task: TuningTask, node: TemplateNode, first: int) -> list[Candidate]:
    return [
        Candidate(
            task=task,
            position=position,
            config=refused["config"],
            state=State.REJECTED,
            stage=refused["stage"],
            reason=refused["reason"][:500],
            detail=refused["detail"],
            finished_at=timezone.now(),
        )
        for position, refused in enumerate(node.refused, start=first)
    ]
