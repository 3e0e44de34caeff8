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
    through: list[Operation] = []
    for _ in range(_MAX_COPIES):
        value = _strip_casts(value)
        if not isinstance(value, Load) or value.dtype.is_float8:
            break
        writer = sources.writer(value)
        if not isinstance(writer, Pointwise):
            return None
        written = _strip_casts(writer.store.value)
        if not isinstance(written, Load) and _match_parts(written) is None:
            return None  # checked first because it is cheap
        stored = sources.stored(writer, value, ranges)
        if stored is None:
            return None
        through.append(writer)
        value = stored
    parts = _match_parts(value)
    if parts is None:
        return None
    scores, top, total = parts
    power = Call(
        "exp", (Call("sub", (scores, top), scores.dtype.compute_dtype),), scores.dtype.compute_dtype
    )
    highest = _match_reduction(top, ReductionKind.MAX, scores, column, ranges, sources)
    summed = _match_reduction(total, ReductionKind.SUM, power, column, ranges, sources)
    if highest is None or summed is None:
        return None
    safe = _is_safe(highest.store.value, summed.store.value)
    if safe is None:
        return None
    return Softmax(scores, (highest, summed, *reversed(through)), safe)


def _strip_casts(value: Value) -> Value:
    """The value below elided float casts."""
    while isinstance(value, Cast) and is_elided_cast(value.value.dtype, value.dtype):
        value = value.value
    return value


def _match_parts(value: Value) -> tuple[Value, Load, Load] | None:
    """x, the maximum and the sum in exp(x - maximum) / sum."""
    if not isinstance(value, Call) or value.op != "truediv":
        return None
    power, total = value.args
    if not isinstance(power, Call) or power.op != "exp":
        return None
    (difference,) = power.args
    if not isinstance(difference, Call) or difference.op != "sub":
        return None
    scores, top = difference.args
    if isinstance(top, Load) and isinstance(total, Load):
        return scores, top, total
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
    places = sources.places(writer.store, writer.axes, load, ranges)
    if places is None:
        return None
    inside = {**places, writer.reduction_axes[0].var: column.var}
    same = simplify_tree(substitute(writer.value, inside), ranges) == value
    return writer if same else None


def _is_safe(top: Value, total: Value) -> bool | None:
    """Whether a row of minus infinity gives 0, because its maximum becomes 0 and its sum 1. None
    for any other replacement."""
    match top, total:
        case Accumulator(), Accumulator():
            return False
        case (
            Call("where", (Call(test, (Accumulator(), *rest)), Const(0), Accumulator())),
            Call("where", (Call("eq", (Accumulator(), Const(0))), Const(1), Accumulator())),
        ):
            is_lowest = test == "eq" and rest == [Const(-math.inf, top.dtype)]
            return True if test == "isinf" or is_lowest else None
    return None
