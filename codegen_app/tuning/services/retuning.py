"""Requesting tuning runs of selected graphs, nodes, kernels, choices or runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from codegen_app.graphs.models import Graph, TemplateNode
from codegen_app.tuning.models import Selection, TuningRun
from codegen_app.tuning.services import run_requests
from codegen_app.tuning.services.run_devices import measures_times
from codegen_app.workers.models import Worker
from scheduler import targets
from scheduler.errors import UserError
from scheduler.runtime.devices import default_device, modelled_device
from scheduler.targets.modelled import is_modelled
from scheduler.tuning.budget import Budget
from scheduler.tuning.strategies.registry import DEFAULT_STRATEGY

MAX_RUNS = 50


@dataclass(frozen=True)
class Subject:
    """The subject of one run: a graph, or one of its nodes."""

    graph: Graph
    node: TemplateNode | None = None

    def __str__(self) -> str:
        return f"{self.graph} {self.node.name} ({self.node.op})" if self.node else str(self.graph)


@dataclass(frozen=True)
class TuningRequest:
    """How to tune. ``targets`` may include modelled devices; ``bindings`` None keeps the sizes of
    the graph's latest run."""

    targets: Sequence[str]
    budget: Budget
    why: str
    priority: int = 0
    strategy: str = DEFAULT_STRATEGY
    bindings: Mapping[str, int] | None = None


def subjects(
    *,
    graphs: Sequence[int] = (),
    nodes: Sequence[int] = (),
    kernels: Sequence[str] = (),
    selections: Sequence[int] = (),
    runs: Sequence[int] = (),
) -> tuple[Subject, ...]:
    """Return what to tune, from keys of rows and names of kernels: a problem once per graph, and no
    node of a graph that is tuned as a whole.

    Nodes are the named ones, those that use a kernel, and that of a selection's problem in the
    newest graph that has it.
    """
    by_problem: dict[tuple[int, int | None], Subject] = {}

    def add(subject: Subject) -> None:
        problem = subject.node.problem_id if subject.node else None
        by_problem.setdefault((subject.graph.pk, problem), subject)

    for graph in Graph.objects.filter(pk__in=graphs):
        add(Subject(graph))
    for run in TuningRun.objects.filter(pk__in=runs).select_related("graph", "template_node"):
        add(Subject(run.graph, run.template_node))
    kernel_nodes = TemplateNode.objects.filter(problem__isnull=False).select_related("graph")
    for node in kernel_nodes.filter(pk__in=nodes).order_by("pk"):
        add(Subject(node.graph, node))
    for node in kernel_nodes.filter(kernels__name__in=kernels).order_by("pk"):
        add(Subject(node.graph, node))
    selected = Selection.objects.filter(pk__in=selections)
    for problem in selected.values_list("problem", flat=True).distinct():
        newest = kernel_nodes.filter(problem=problem).order_by("-graph", "position").first()
        if newest is not None:
            add(Subject(newest.graph, newest))
    whole = {graph for graph, problem in by_problem if problem is None}
    return tuple(
        subject
        for (graph, problem), subject in by_problem.items()
        if problem is None or graph not in whole
    )


@transaction.atomic
def start(
    subjects: Sequence[Subject], request: TuningRequest, actor: AbstractBaseUser | None
) -> list[TuningRun]:
    """Start a run for each subject on each target, all or none. Raises ``UserError``."""
    if not subjects:
        raise UserError("nothing to tune: start from a graph, a node, a kernel or a run")
    if not request.targets:
        raise UserError("choose at least one target")
    if not request.why.strip():
        raise UserError("enter a reason for the audit log")
    if len(subjects) * len(request.targets) > MAX_RUNS:
        count = len(subjects) * len(request.targets)
        raise UserError(f"{count} runs at once are too many: at most {MAX_RUNS}")
    runs: list[TuningRun] = []
    for subject, target in product(subjects, request.targets):
        latest = subject.graph.tuning_runs.filter(imported=None).order_by("-pk").first()
        bindings, note = request.bindings, ""
        if bindings is None:
            bindings, note = (latest.bindings, latest.note) if latest else ({}, "")
        modelled = modelled_device(target) if is_modelled(target) else None
        run = run_requests.start_run(
            subject.graph,
            modelled.id if modelled else device_for(target),
            modelled.target if modelled else target,
            bindings,
            actor,
            note=note,
            template_node=subject.node,
            budget=request.budget,
            strategy=request.strategy,
            priority=request.priority,
            why=request.why.strip(),
        )
        runs.append(run)
    return runs


def device_for(target: str) -> str:
    """Return a target's device as the live workers name it; the usual name if there is none.

    It is a device that times are measured on. Instruction emulators and modelled devices also have
    the target's name, with the ids of another backend or of none.

    Raises ``UserError`` for an unknown target.
    """
    requested = targets.find(target)
    for worker in Worker.objects.all():
        for device in worker.devices if worker.is_alive else ():
            if device["target"] == requested.name and measures_times(requested.name, device["id"]):
                return str(device["id"])
    return default_device(requested)
