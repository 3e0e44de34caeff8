"""Planning a tuning run: its tasks, one per problem, and their first candidates.

A worker plans in short transactions, so that cancelling or viewing the run waits for none. If it
dies, its rows stay, and the next worker continues from them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from codegen_app.graphs.models import Graph, TemplateNode
from codegen_app.kernels.models import GeneratedKernel, KernelUse
from codegen_app.kernels.services import builds
from codegen_app.platform.advisory_lock import LockClass, try_lock
from codegen_app.platform.config.context import row_context
from codegen_app.tuning.models import Candidate, TuningRun, TuningTask
from codegen_app.tuning.services import candidate_results, ledger, run_requests, sampling
from codegen_app.tuning.services.sampling import CandidateSample, RunBuilds
from codegen_app.workers import queue
from codegen_app.workers.faults import fault_of
from codegen_app.workers.models import OPEN_STATES, State
from scheduler import targets
from scheduler.build.recipe import can_build
from scheduler.errors import MachineError, UserError

_BATCH_SIZE = 20  # nodes per transaction

log = logging.getLogger(__name__)


def plan_waiting(graph: Graph | None = None) -> int:
    """Plan the runs whose graph is prepared, in the order of their requests; return how many.

    A run that another worker is planning is left to that worker. A run that cannot be planned is
    closed with the reason; after a machine failure the run is tried again later.
    """
    waiting = TuningRun.objects.filter(
        planned_at=None, state__in=OPEN_STATES, graph__state=State.DONE
    )
    if graph is not None:
        waiting = waiting.filter(graph=graph)
    planned = 0
    for pk in list(waiting.order_by("-priority", "pk").values_list("pk", flat=True)):
        with try_lock(LockClass.PLAN, pk) as mine:
            if mine:
                with row_context(run_id=pk):
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
    """Create the tasks of a run whose graph is prepared; return False if it was closed meanwhile.
    The candidates are generated outside the transactions that record them.

    Raises ``UserError`` if nothing builds for the run's target.
    """
    run = TuningRun.objects.select_related("graph").get(pk=pk)
    selected = Q(pk=run.template_node_id) if run.template_node_id else Q()
    if run.kinds:
        selected &= Q(kind__in=run.kinds)
    rows = run.graph.template_nodes.filter(selected, problem__isnull=False)
    first: dict[int, tuple[int, int, str]] = {}  # one node per problem
    for node, problem, kind in rows.values_list("pk", "problem", "kind"):
        assert problem is not None
        first.setdefault(problem, (node, problem, kind))
    first_nodes = list(first.values())
    planned = TuningTask.objects.filter(run=run).values("problem")
    # A node without recorded kernels has no default: there is nothing to generate.
    has_kernels = Exists(KernelUse.objects.filter(template_node=OuterRef("pk")))
    for start in range(0, len(first_nodes), _BATCH_SIZE):
        samples: dict[int, CandidateSample] = {}
        if not run.has_budget:  # a search requests its own candidates
            keys = [node for node, _, _ in first_nodes[start : start + _BATCH_SIZE]]
            nodes = TemplateNode.objects.filter(has_kernels, pk__in=keys)
            samples = sampling.sample_candidates(run, nodes.exclude(problem__in=planned))
        if not _plan_part(run, first_nodes, start, samples):
            return False
    with transaction.atomic():
        if not _lock(run):
            return False
        TuningRun.objects.filter(pk=pk).update(planned_at=Now())
        ledger.close_run(pk)  # if nothing was to be measured
        queue.notify(queue.Kind.MEASURE, target=ledger.queue_target(run))
    return True


def _lock(run: TuningRun) -> bool:
    """Lock the run's row for this transaction; return False if the run is over."""
    rows = TuningRun.objects.select_for_update(no_key=True)
    return rows.filter(pk=run.pk, state__in=OPEN_STATES).exists()


@transaction.atomic
def _plan_part(
    run: TuningRun,
    first_nodes: Sequence[tuple[int, int, str]],
    start: int,
    samples: Mapping[int, CandidateSample],
) -> bool:
    if not _lock(run):
        return False
    planned = set(TuningTask.objects.filter(run=run).values_list("problem", flat=True))
    part = [row for row in first_nodes[start : start + _BATCH_SIZE] if row[1] not in planned]
    nodes = TemplateNode.objects.select_related("problem").in_bulk([pk for pk, _, _ in part])
    tried: dict[int, list[tuple[int, GeneratedKernel]]] = {}  # with positions, by node
    if run.has_budget:  # the tuner requests what it tries; it always begins with the defaults
        uses = KernelUse.objects.filter(template_node__in=list(nodes.values()))
        uses = uses.select_related("kernel").defer("kernel__source")
        target = targets.find(run.target)
        for use in uses.order_by("template_node", "position"):
            if can_build(target, use.kernel.source_file):
                tried.setdefault(use.template_node_id, [(use.position, use.kernel)])
    else:
        tried = sampling.record_kernels(run, nodes, samples)
    kernels = [kernel for candidates in tried.values() for _, kernel in candidates]
    defaults = [kernel for candidates in tried.values() for _, kernel in candidates[:1]]
    requested = RunBuilds(run, kernels, defaults)
    if samples:
        sampling.record_limits(run, [nodes[pk] for pk in samples if pk in nodes])
    for pk, problem, kind in part:
        sample = samples.get(pk)
        # Every run shows something early; then templates, which dominate a model's time.
        priority = run_requests.PARTS * run.priority + (kind in builds.TEMPLATE_KINDS)
        if pk == first_nodes[0][0]:
            priority = run_requests.PARTS * run.priority + 2
        task = TuningTask.objects.create(
            run=run,
            problem_id=problem,
            template_node=nodes[pk],
            priority=priority,
            **(candidate_results.call_fields(sample.call) if sample and sample.call else {}),
        )
        Candidate.objects.bulk_create(
            Candidate(
                task=task,
                position=place,
                kernel=kernel,
                config=kernel.config,
                **requested.fields(kernel),
            )
            for place, kernel in tried.get(pk, ())
        )
        if sample is not None:
            candidate_results.add_rejected(task, sample.rejected, first=sample.offered)
    for build in requested.builds:  # over before the run began: nothing else tells its candidates
        if build.state not in OPEN_STATES and build.state != State.DONE:
            ledger.on_build_finished(build)
    return True
