"""Recording what a problem asks for, so that pages can say how fast a board could be at most."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict

from codegen_app.models import Problem, ProblemWork
from scheduler.errors import UserError
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.operations import Lowered
from scheduler.tuning.work import work_of


def record(
    problem: Problem, node: SchedulerNode, lowered: Lowered, bindings: Mapping[str, int]
) -> None:
    """Keep the work of a problem at these sizes, once; ``node`` is any node with that problem.

    Sizes at which no machine could hold the tensors have no bound that is worth a row.
    """
    record_all([(problem, node)], lowered, bindings)


def record_all(
    problems: Iterable[tuple[Problem, SchedulerNode]],
    lowered: Lowered,
    bindings: Mapping[str, int],
) -> None:
    """``record`` for many problems of a graph."""
    rows = (_work(problem, node, lowered, bindings) for problem, node in problems)
    ProblemWork.objects.bulk_create(
        (row for row in rows if row is not None), ignore_conflicts=True, batch_size=_BATCH
    )


def _work(
    problem: Problem, node: SchedulerNode, lowered: Lowered, bindings: Mapping[str, int]
) -> ProblemWork | None:
    try:
        figures = asdict(work_of(node, lowered, dict(bindings)))
    except UserError:  # larger than any memory
        return None
    if any(isinstance(value, int) and value > _MAX_BIGINT for value in figures.values()):
        return None
    used = {name: bindings[name] for name in problem.symbols}
    return ProblemWork(problem=problem, bindings=used, **figures)


_BATCH = 500  # rows written at once
_MAX_BIGINT = 2**63 - 1  # what a row can hold: products may pass it where the tensors still fit
