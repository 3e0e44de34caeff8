"""Means and sums of squares about them in one loop, for rows that are long enough to be shared.

A variance is lowered as two sums, of which the second needs the first: two loops over elements that
registers cannot hold. One pass gives count, mean and squares about it, from which the second sum
follows about any point that its tree names (``kiln/moments.h``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scheduler.codegen.loops.statements import Statement
from scheduler.codegen.rocm.reduction.stages import Stage, fuse_stages
from scheduler.ir.dtypes import DType
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Call, Load, Value

_TYPES = (DType.F32, DType.F64)


def fuse_moments(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Return the stages, with each loop that only sums squared distances merged into the loop
    before it, which sums the same elements."""
    return fuse_stages(stages, _fuse_pair)


def _fuse_pair(before: Stage, stage: Stage) -> Stage | None:
    if len(stage.loop) != 1 or before.points:
        return None
    (statement,) = stage.loop
    parts = _squared_distance(statement)
    if parts is None or statement.accumulate not in _TYPES:
        return None
    element, point = parts
    sums = [s for s in before.loop if s.kind is ReductionKind.SUM and s.value == element]
    rows = {s.store.buffer for s in (*before.reductions, *before.after)}
    if not sums or point.buffer not in rows:
        return None
    summed = replace(statement, value=element)
    return Stage(
        (*before.loop, summed),
        (*before.after, summed, *stage.after),
        {summed.name: point},
    )


def _squared_distance(statement: Statement) -> tuple[Value, Load] | None:
    """Return the summed value and the point, if the statement sums squared distances."""
    square = statement.value
    if statement.kind is not ReductionKind.SUM or not isinstance(square, Call):
        return None
    if square.op != "mul" or square.args[0] != square.args[1]:
        return None
    distance = square.args[0]
    if not isinstance(distance, Call) or distance.op != "sub":
        return None
    element, point = distance.args
    return (element, point) if isinstance(point, Load) else None
