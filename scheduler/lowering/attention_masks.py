"""Masks of attention written out in a model: which columns a row sees, as far as indices determine
it, and the value to add to scores so that a kernel in f32 does not overflow."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.encoding import encode_values, widen
from scheduler.ir.graph import Expr
from scheduler.ir.index.facts import is_equal, is_nonnegative
from scheduler.ir.index.ranges import Ranges
from scheduler.ir.index.substitute import substitute
from scheduler.ir.index.trees import as_index_expr, simplify_tree
from scheduler.ir.operations import Axis
from scheduler.ir.values import Call, Cast, Const, Load, Masked, Value, call, const
from scheduler.lowering import trees

#: A score of at most this gets weight 0 beside any score that a model computes: exp(-1e4) is 0 in
#: f16, and in f32 unless every other score of the row is below -9,800.
HIDDEN = -1e4
#: Adding it to a score in f32 absorbs the score, and many multiples of it are finite in f32.
_ABSORBING = -(2.0**120)
_HIDDEN_SCALE = 2.0**-8  # factor for f32 numbers below _ABSORBING: not below it after

_AND, _OR = ("logical_and", "bitwise_and"), ("logical_or", "bitwise_or")
#: (sign, least) of a comparison of integers: it holds where sign * (left - right) >= least.
_COMPARISONS: Mapping[str, tuple[int, int]] = {
    "ge": (1, 0),
    "gt": (1, 1),
    "le": (-1, 0),
    "lt": (-1, 1),
}
_OPPOSITE = {"ge": "lt", "lt": "ge", "le": "gt", "gt": "le"}


def literal_value(value: Value) -> float | None:
    """The real number that a literal represents."""
    if isinstance(value, Cast) and value.dtype.is_float:
        number = literal_value(value.value)
        return None if number is None else round_literal(number, value.dtype)
    if isinstance(value, Const) and isinstance(value.value, int | float):
        return float(value.value)
    return None


def is_elided_cast(source: DType, target: DType) -> bool:
    """Whether a conversion between these types is ignored as a float conversion that loses
    little."""
    return all(dtype.is_float and not dtype.is_float8 for dtype in (source, target))


def round_literal(number: float, dtype: DType) -> float:
    """A number rounded to a type: the least f32 is minus infinity in f16."""
    with np.errstate(over="ignore"):
        return float(widen(encode_values(np.asarray(number, np.float64), dtype), dtype))


@dataclass(frozen=True)
class Hidden:
    """Scores that become ``fill`` where ``seen`` is false."""

    seen: Value
    fill: float
    added: bool = False  # fill is added to the scores, which still count

    def rounded_to(self, dtype: DType) -> Hidden:
        """The same, stored in a buffer of that type."""
        return replace(self, fill=round_literal(self.fill, dtype))


#: Steps applied to scores in order: hiding, or adding a value.
Steps: TypeAlias = tuple[Hidden | Value, ...]


@dataclass(frozen=True)
class Mask:
    """The mask of an ``Attention``. ``sees``: each row certainly sees at least one column."""

    causal: bool
    value: Value | None
    sees: bool


def match_hidden(value: Value) -> tuple[Hidden, Value] | None:
    """Match ``where(seen, value, fill)`` with a literal as ``fill``, in either order of the
    branches. Returns what it hides, and the value."""
    if isinstance(value, Cast) and value.dtype.is_float and value.value.dtype.is_float:
        inner = match_hidden(value.value)
        if inner is None:
            return None
        return inner[0].rounded_to(value.dtype), trees.cast(inner[1], value.dtype)
    if isinstance(value, Masked):
        condition, visible, other = value.condition, value.value, value.other
    elif isinstance(value, Call) and value.op == "where":
        condition, visible, other = value.args
    else:
        return None
    fill = literal_value(other)
    if fill is not None and fill <= HIDDEN:
        return Hidden(condition, fill), visible
    fill = literal_value(visible)
    if fill is not None and fill <= HIDDEN:
        return Hidden(_negated(condition), fill), other
    return None


def combine_mask(
    steps: Steps, row: Axis, column: Axis, ranges: Ranges, dtype: DType
) -> Mask | None:
    """Combine all steps into one mask; None if the result would not be equivalent.

    For a row that sees nothing, a softmax over minus infinity gives NaN, while one over equal
    numbers averages all columns. A finite number is therefore replaced by minus infinity only if
    such a row certainly does not exist.
    """
    hidden = [step for step in steps if isinstance(step, Hidden)]
    added = [step for step in steps if not isinstance(step, Hidden)]
    conditions = [part for step in hidden for part in _conditions(step.seen)]
    sees = not hidden or _sees_a_column(trees.all_of(*conditions), row, column, ranges)
    finite_steps = [step for step in hidden if math.isfinite(step.fill)]
    if not finite_steps or (sees and not added):
        other_conditions = [part for part in conditions if not _is_causal(part, row, column)]
        causal = len(other_conditions) < len(conditions)
        if not added:
            return Mask(causal, trees.all_of(*other_conditions) if other_conditions else None, sees)
        if not other_conditions:
            return Mask(causal, _fold_additive(added, dtype), False)
        return Mask(False, _fold_additive(steps, dtype), False)
    # A step that adds a finite number becomes a plain additive mask, for rows that may see nothing:
    # the differences between the row's scores are preserved, and minus infinity is unchanged.
    additive_steps = tuple(
        call("where", step.seen, 0, bound_mask(const(step.fill, dtype)))
        if isinstance(step, Hidden) and step.added and math.isfinite(step.fill)
        else step
        for step in steps
    )
    if additive_steps != steps:
        return combine_mask(additive_steps, row, column, ranges, dtype)
    # In a fully hidden row, another added value would count beside the number.
    is_only_step = len(finite_steps) == 1 and not added
    return Mask(False, _fold_additive(steps, dtype), False) if is_only_step else None


def _fold_additive(steps: Sequence[Hidden | Value], dtype: DType) -> Value | None:
    """The sum of all steps as one additive mask. Scores hidden by a finite number get the same
    number, which absorbs every score."""
    mask: Value | None = None
    for step in steps:
        if isinstance(step, Hidden):
            fill = const(_ABSORBING if math.isfinite(step.fill) else step.fill, dtype)
            visible = const(0, dtype) if mask is None else mask
            mask = call("where", step.seen, visible, fill)
        else:
            mask = step if mask is None else mask + step
    return mask


def _conditions(value: Value) -> Iterator[Value]:
    """The conjuncts of a condition."""
    if isinstance(value, Call) and value.op == "logical_not":
        value = _negated(value.args[0])
    if isinstance(value, Call) and value.op in _AND and value.dtype is DType.BOOL:
        for part in value.args:
            yield from _conditions(part)
    else:
        yield value


def _is_causal(value: Value, row: Axis, column: Axis) -> bool:
    """Whether the condition says that a row sees the columns up to its own number."""
    difference = _difference(value)
    return difference is not None and is_equal(difference, row.var - column.var)


def _difference(value: Value) -> Expr | None:
    """An expression that is nonnegative exactly where a comparison of integers holds."""
    if not isinstance(value, Call) or value.op not in _COMPARISONS:
        return None
    left, right = (as_index_expr(part) for part in value.args)
    if left is None or right is None:
        return None
    sign, min_difference = _COMPARISONS[value.op]
    return sign * (left - right) - min_difference


def _negated(condition: Value) -> Value:
    """The negation of a condition; comparisons of integers are inverted directly."""
    if isinstance(condition, Call):
        if condition.op == "logical_not":
            return condition.args[0]
        integers = all(part.dtype in (DType.I32, DType.I64) for part in condition.args)
        if condition.op in _OPPOSITE and integers:
            return call(_OPPOSITE[condition.op], *condition.args)
        if condition.op in (*_AND, *_OR) and condition.dtype is DType.BOOL:
            other = "logical_or" if condition.op in _AND else "logical_and"
            return call(other, *map(_negated, condition.args))
    return ~condition


def _sees_a_column(seen: Value, row: Axis, column: Axis, ranges: Ranges) -> bool:
    """Whether indices prove that each row sees a column: the first, the last, its own, or the
    column as far from the last as the row is from the last row."""
    extra_columns = column.size - row.size
    columns: list[Expr] = [sympy.Integer(0), column.size - 1]
    columns += [row.var] if is_nonnegative(extra_columns, ranges) else []
    columns += [row.var + extra_columns] if is_nonnegative(extra_columns, ranges) else []
    for column_index in columns:
        condition = simplify_tree(substitute(seen, {column.var: column_index}), ranges)
        if _holds(condition, ranges, expected=True):
            return True
    return False


def _holds(value: Value, ranges: Ranges, *, expected: bool) -> bool:
    """Whether a condition provably equals ``expected``."""
    if isinstance(value, Const):
        return bool(value.value) is expected
    if not isinstance(value, Call):
        return False
    if value.op in ("logical_not", "bitwise_not"):
        return _holds(value.args[0], ranges, expected=not expected)
    if value.op in _AND or value.op in _OR:
        needs_all = (value.op in _AND) is expected
        results = (_holds(part, ranges, expected=expected) for part in value.args)
        return all(results) if needs_all else any(results)
    difference = _difference(value)
    if difference is None:
        return False
    return is_nonnegative(difference if expected else -1 - difference, ranges)


def bound_mask(mask: Value) -> Value:
    """Bound an additive mask so that a kernel can sum its numbers and multiply them by log2(e) in
    f32: models use the least f32 for hidden scores. A small fraction of it hides them as well, and
    minus infinity is unchanged."""
    root = mask
    while isinstance(root, Cast):
        root = root.value
    if isinstance(root, Load) and root.dtype is DType.F16:
        return mask
    number = literal_value(mask)
    if number is not None:
        return const(number * _HIDDEN_SCALE if number < _ABSORBING else number, mask.dtype)
    if isinstance(mask, Call) and mask.op == "where":
        condition, *branches = mask.args
        return call("where", condition, *map(bound_mask, branches))
    return call("where", mask < _ABSORBING, mask * _HIDDEN_SCALE, mask)
