"""Match a softmax over the last dimension among lowered operations: two reductions and a
quotient."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scheduler.ir.index.ranges import Ranges
from scheduler.ir.index.substitute import substitute
from scheduler.ir.index.trees import simplify_tree
from scheduler.ir.operations import Axis, Operation, Pointwise, Reduction, ReductionKind
from scheduler.ir.values import Accumulator, Call, Cast, Const, Load, Value
from scheduler.lowering.attention_masks import is_elided_cast
from scheduler.lowering.attention_scores import Sources

_MAX_COPIES = 8  # of the weights, in other types, before they are read


@dataclass(frozen=True)
class Softmax:
    """A softmax of ``scores``, a tree over the reader's loops. ``through``: the operations that
    compute it. ``safe``: a row of only minus infinity gives 0 instead of NaN."""

    scores: Value
    through: tuple[Operation, ...]
    safe: bool


def match_softmax(value: Value, column: Axis, ranges: Ranges, sources: Sources) -> Softmax | None:
    """Match a tree over ``ranges`` that reads a softmax along ``column``."""
    copies: list[Operation] = []
    for _ in range(_MAX_COPIES):
        value = _strip_casts(value)
        if not isinstance(value, Load) or value.dtype.is_float8:
            break
        writer = sources.writer(value)
        if not isinstance(writer, Pointwise):
            return None
        written = _strip_casts(writer.store.value)
        if not isinstance(written, Load) and _match_quotient(written) is None:
            return None  # checked first because it is cheap
        stored = sources.stored(writer, value, ranges)
        if stored is None:
            return None
        copies.append(writer)
        value = stored
    quotient = _match_quotient(value)
    if quotient is None:
        return None
    scores, maximum_load, sum_load = quotient
    exponential = Call(
        "exp",
        (Call("sub", (scores, maximum_load), scores.dtype.compute_dtype),),
        scores.dtype.compute_dtype,
    )
    maximum = _match_reduction(maximum_load, ReductionKind.MAX, scores, column, ranges, sources)
    total = _match_reduction(sum_load, ReductionKind.SUM, exponential, column, ranges, sources)
    if maximum is None or total is None:
        return None
    safe = _is_safe(maximum.store.value, total.store.value)
    if safe is None:
        return None
    return Softmax(scores, (maximum, total, *reversed(copies)), safe)


def _strip_casts(value: Value) -> Value:
    """The value below elided float casts."""
    while isinstance(value, Cast) and is_elided_cast(value.value.dtype, value.dtype):
        value = value.value
    return value


def _match_quotient(value: Value) -> tuple[Value, Load, Load] | None:
    """x, the maximum and the sum in exp(x - maximum) / sum."""
    if not isinstance(value, Call) or value.op != "truediv":
        return None
    exponential, total = value.args
    if not isinstance(exponential, Call) or exponential.op != "exp":
        return None
    (difference,) = exponential.args
    if not isinstance(difference, Call) or difference.op != "sub":
        return None
    scores, maximum = difference.args
    if isinstance(maximum, Load) and isinstance(total, Load):
        return scores, maximum, total
    return None


def _match_reduction(
    load: Load, kind: ReductionKind, value: Value, column: Axis, ranges: Ranges, sources: Sources
) -> Reduction | None:
    """Match a load of the reduction of ``value`` along ``column``."""
    writer = sources.writer(load)
    if not isinstance(writer, Reduction) or writer.kind is not kind:
        return None
    if len(writer.reduction_axes) != 1 or writer.reduction_axes[0].size != column.size:
        return None
    if any(expr.has(column.var) for expr in load.index):
        return None
    positions = sources.places(writer.store, writer.axes, load, ranges)
    if positions is None:
        return None
    positions_with_column = {**positions, writer.reduction_axes[0].var: column.var}
    is_same_value = simplify_tree(substitute(writer.value, positions_with_column), ranges) == value
    return writer if is_same_value else None


def _is_safe(maximum: Value, total: Value) -> bool | None:
    """Whether a row of minus infinity gives 0, because its maximum becomes 0 and its sum 1. None
    for any other replacement."""
    match maximum, total:
        case Accumulator(), Accumulator():
            return False
        case (
            Call("where", (Call(test, (Accumulator(), *bounds)), Const(0), Accumulator())),
            Call("where", (Call("eq", (Accumulator(), Const(0))), Const(1), Accumulator())),
        ):
            is_lowest = test == "eq" and bounds == [Const(-math.inf, maximum.dtype)]
            return True if test == "isinf" or is_lowest else None
    return None
