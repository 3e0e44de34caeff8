"""Recording a problem's work, so that pages can show a board's best possible time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict

from codegen_app.graphs.models import Problem
from codegen_app.kernels.models import ProblemWork
from scheduler.errors import UserError
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.operations import Lowered
from scheduler.tuning.work import work_of

_BATCH = 500  # rows per statement
_MAX_BIGINT = 2**63 - 1  # the column's limit: products may exceed it while the tensors still fit


def record(
    problem: Problem, node: SchedulerNode, lowered: Lowered, bindings: Mapping[str, int]
) -> None:
    """Record the work of a problem at these sizes, once; ``node`` is any node with that problem.

    Nothing is recorded for sizes whose tensors no machine could hold.
    """
    record_all([(problem, node)], lowered, bindings)


def record_all(
    problems: Iterable[tuple[Problem, SchedulerNode]],
    lowered: Lowered,
    bindings: Mapping[str, int],
) -> None:
    """Record the work of many problems of a graph."""
    rows = []
    for problem, node in problems:
        with suppress(UserError):  # larger than any memory
            figures = asdict(work_of(node, lowered, dict(bindings)))
            numbers = (value for value in figures.values() if isinstance(value, int))
            if all(value <= _MAX_BIGINT for value in numbers):
                used = {name: bindings[name] for name in problem.symbols}
                rows.append(ProblemWork(problem=problem, bindings=used, **figures))
    ProblemWork.objects.bulk_create(rows, ignore_conflicts=True, batch_size=_BATCH)
