"""Planning a tuning run: its tasks, one a problem, and the candidates that each begins with.

A worker does it, in short transactions: whoever cancels the run, or looks at it, waits for none.
One that dies leaves what it made; the next goes on there.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from django.db import connection, transaction
from django.db.models import Q
from django.db.models.functions import Now

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
from codegen_app.services import builds, ledger, queue, tuning
from codegen_app.services.faults import fault_of
from scheduler import targets
from scheduler.build.recipe import builds as can_build
from scheduler.outcome import MachineError, UserError

_AT_ONCE = 20  # nodes of a transaction
_LOCK = 0x504C414E  # the advisory lock's first number: "PLAN"

log = logging.getLogger(__name__)


def plan_waiting(graph: Graph | None = None) -> int:
    """Plan the runs whose graph is prepared, in the order of their requests: how many.

    One that another worker is planning is left to that. A run that cannot be planned is closed
    with the reason; a failure of the machine leaves it for the next look.
    """
    waiting = TuningRun.objects.filter(
        planned_at=None, state__in=OPEN_STATES, graph__state=State.DONE
    )
    if graph is not None:
        waiting = waiting.filter(graph=graph)
    planned = 0
    for pk in list(waiting.order_by("-priority", "pk").values_list("pk", flat=True)):
        with _alone(pk) as mine:
            if mine:
                planned += _attempt(pk)
    return planned


def _attempt(pk: int) -> bool:
    try:
        return plan(pk)
    except Exception as error:
        fault = fault_of(error)
        if fault is not None:
            log.warning("run %s is planned later: %s", pk, fault.reason)
            return False
        if isinstance(error, UserError) and not isinstance(error, MachineError):
            ledger.drop_run(pk, State.REJECTED, str(error))
            return False
        reason = f"internal error: {type(error).__name__}: {error}"
        ledger.drop_run(pk, State.QUARANTINED, reason)
        raise


def plan(pk: int) -> bool:
    """Make the tasks of a run whose graph is prepared; False where it was closed meanwhile.

    Raises ``UserError`` where nothing builds for its target.
    """
    run = TuningRun.objects.select_related("graph").get(pk=pk)
    first_nodes = _first_nodes(run)
    for start in range(0, len(first_nodes), _AT_ONCE):
        if not _plan_part(run, first_nodes, start):
            return False
    with transaction.atomic():
        if not _lock(run):
            return False
        TuningRun.objects.filter(pk=pk).update(planned_at=Now())
        ledger.close_run(pk)  # where there was nothing to measure
        queue.notify(queue.Kind.MEASURE, target=ledger.served_by(run))
    return True


@contextmanager
def _alone(pk: int) -> Iterator[bool]:
    """Whether this is the one that plans the run; a lock that ends with the connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [_LOCK, pk])
        (mine,) = cursor.fetchone()
    try:
        yield mine
    finally:
        if mine:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [_LOCK, pk])


def _lock(run: TuningRun) -> bool:
    """Hold the run's row for this transaction; False where the run is over."""
    rows = TuningRun.objects.select_for_update(no_key=True)
    return rows.filter(pk=run.pk, state__in=OPEN_STATES).exists()


@transaction.atomic
def _plan_part(run: TuningRun, first_nodes: Sequence[tuple[int, int, str]], start: int) -> bool:
    if not _lock(run):
        return False
    made = set(TuningTask.objects.filter(run=run).values_list("problem", flat=True))
    part = [one for one in first_nodes[start : start + _AT_ONCE] if one[1] not in made]
    nodes = TemplateNode.objects.in_bulk([pk for pk, _, _ in part])
    # The tuner asks for what it wants to try; it begins with the defaults, wherever it is.
    uses = _uses(nodes.values(), run.target, 1 if run.has_budget else run.candidate_limit)
    kernels = [use.kernel for of_kernel in uses.values() for use in of_kernel]
    priority = tuning.build_priority(run)
    built = builds.request_builds(kernels, run.target, priority=priority) if kernels else {}
    for pk, problem, kind in part:
        is_first = first_nodes[0][0] == pk
        task = TuningTask.objects.create(
            run=run,
            problem_id=problem,
            template_node=nodes[pk],
            priority=tuning.PARTS * run.priority + _priority(kind, is_first=is_first),
        )
        Candidate.objects.bulk_create(
            Candidate(
                task=task,
                position=use.position,
                kernel=use.kernel,
                build=built[use.kernel_id],
                config=use.kernel.config,
            )
            for use in uses[pk]
        )
        if not run.has_budget:  # whose ledger is written as candidates are tried
            ledger.add_rejected(task, nodes[pk].rejected, first=nodes[pk].offered)
    _carry_on_finished(built.values())
    return True


def _priority(kind: str, *, is_first: bool) -> int:
    """Every run shows something early; then templates, which decide how long a model takes."""
    return 2 if is_first else 1 if kind in builds.TEMPLATE_KINDS else 0


def _first_nodes(run: TuningRun) -> list[tuple[int, int, str]]:
    """One node (key, problem, kind) for each problem that the run is about."""
    selection = Q(pk=run.template_node_id) if run.template_node_id else Q()
    if run.kinds:
        selection &= Q(kind__in=run.kinds)
    first: dict[int, tuple[int, int, str]] = {}
    nodes = run.graph.template_nodes.filter(selection, problem__isnull=False)
    for pk, problem, kind in nodes.values_list("pk", "problem", "kind"):
        assert problem is not None
        first.setdefault(problem, (pk, problem, kind))
    return list(first.values())


def _carry_on_finished(built: Iterable[Build]) -> None:
    """Builds that were over before the run began have nobody else to carry their outcome on."""
    for build in built:
        if build.state not in OPEN_STATES and build.state != State.DONE:
            ledger.build_is_over(build)


def _uses(
    nodes: Iterable[TemplateNode], target: str, limit: int | None
) -> dict[int, list[KernelUse]]:
    """The candidates of each node that the run tries, the default first; none in a language that
    nothing builds for the target."""
    uses: dict[int, list[KernelUse]] = {node.pk: [] for node in nodes}
    rows = KernelUse.objects.filter(template_node__in=list(uses)).select_related("kernel")
    for use in rows.defer("kernel__source").order_by("template_node", "position"):
        if can_build(targets.find(target), use.kernel.source_file):
            uses[use.template_node_id].append(use)
    return {pk: each[:limit] for pk, each in uses.items()}
