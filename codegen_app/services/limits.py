"""Recording what a problem asks for, so that pages can say how fast a board could be at most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from codegen_app.models import Problem, ProblemWork
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.operations import Lowered
from scheduler.outcome import UserError
from scheduler.tuning.work import work_of


def record(
    problem: Problem, node: SchedulerNode, lowered: Lowered, bindings: Mapping[str, int]
) -> None:
    """Keep the work of a problem at these sizes, once; ``node`` is any node with that problem.

    Sizes at which no machine could hold the tensors have no bound that is worth a row.
    """
    used = {name: bindings[name] for name in problem.symbols}
    if ProblemWork.objects.filter(problem=problem, bindings=used).exists():
        return
    try:
        figures = asdict(work_of(node, lowered, dict(bindings)))
    except UserError:  # larger than any memory
        return
    if all(not isinstance(value, int) or value <= _MAX_BIGINT for value in figures.values()):
        ProblemWork.objects.get_or_create(problem=problem, bindings=used, defaults=figures)


_MAX_BIGINT = 2**63 - 1  # what a row can hold: products may pass it where the tensors still fit
