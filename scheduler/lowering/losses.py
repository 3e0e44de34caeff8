"""Elementwise losses, and their reductions: mean, sum, or none."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Value, call, const, index_value, upcast
from scheduler.lowering.builder import Builder
from scheduler.lowering.compose import lazy_elementwise
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.pointwise import promoted_type
from scheduler.lowering.reductions import divide_by_count, reduced_count, sum_over
from scheduler.lowering.tensor import Index, Tensor

#: torch's numbers for the reduction of a loss.
NONE, MEAN, SUM = 0, 1, 2
_ZERO = sympy.Integer(0)


def squared(x: Value) -> Value:
    return x * x


def reduce_loss(b: Builder, losses: Tensor, reduction: int, output: int = 0) -> Tensor:
    """The losses, their mean or their sum."""
    meta = b.output_meta(output)
    if reduction == NONE:
        return b.pointwise(losses.size, meta.dtype, losses.at)
    if reduction not in (MEAN, SUM):
        raise Unsupported(f"a loss with reduction={reduction} is not supported")
    number = reduced_count(losses, range(losses.rank))

    def after(acc: Value, _: Index) -> Value:
        return divide_by_count(acc, number) if reduction == MEAN else acc

    return sum_all(b, losses, meta.dtype, after)


def sum_all(b: Builder, tensor: Tensor, dtype: DType, after: Any = None) -> Tensor:
    """The sum of all elements; ``after`` is applied to it before the store."""
    return sum_over(b, tensor, tuple(range(tensor.rank)), dtype=dtype, size=(), after=after)


def elementwise_loss(
    b: Builder, args: Sequence[Any], function: Callable[..., Value], reduction: int
) -> Tensor:
    return reduce_loss(b, lazy_elementwise(args, function, b.output_meta().dtype), reduction)


def squared_error(x: Value, y: Value) -> Value:
    return squared(x - y)


def absolute_error(x: Value, y: Value) -> Value:
    return call("abs", x - y)


def l1(b: Builder, self: Tensor, target: Tensor, reduction: int = MEAN) -> Tensor:
    """|x - y|, a real number also for complex arguments."""
    difference = lazy_elementwise((self, target), absolute_error, promoted_type((self, target)))
    return reduce_loss(b, difference, reduction)


def soft_margin(x: Value, y: Value) -> Value:
    """log(1 + exp(-y x))."""
    return call("log1p", call("exp", -(y * x)))


def smooth_l1(x: Value, y: Value, beta: float = 1.0) -> Value:
    """A parabola within ``beta``; beyond it the distance minus half of ``beta``."""
    distance = absolute_error(x, y)
    if beta == 0:
        return distance
    parabola = squared(distance) * (0.5 / beta)
    return call("where", distance < beta, parabola, distance + -0.5 * beta)


def huber(x: Value, y: Value, delta: float = 1.0) -> Value:
    distance = absolute_error(x, y)
    linear = (distance + -0.5 * delta) * delta
    return call("where", distance <= delta, squared(distance) * 0.5, linear)


def binary_cross_entropy(x: Value, y: Value, weight: Value | None = None) -> Value:
    """-(y log(x) + (1 - y) log(1 - x)), with the logarithms clamped to at least -100."""
    low = call("maximum", call("log1p", -x), -100)
    high = call("maximum", call("log", x), -100)
    loss = (y - 1) * low - y * high
    return loss if weight is None else loss * weight


def binary_cross_entropy_with_logits(
    x: Value, y: Value, weight: Value | None = None, pos_weight: Value | None = None
) -> Value:
    """``binary_cross_entropy`` of the sigmoid: (1 - y) x - (1 + (p - 1) y) log sigmoid(x)."""
    log_sigmoid = call("minimum", x, 0) - call("log1p", call("exp", -call("abs", x)))
    factor: Value = const(1, x.dtype) if pos_weight is None else (pos_weight - 1) * y + 1
    loss = (1 - y) * x - factor * log_sigmoid
    return loss if weight is None else loss * weight


def kl_div(x: Value, y: Value, log_target: bool = False) -> Value:
    """y (log y - x), 0 where y is 0; with ``log_target`` exp(y) (y - x)."""
    if log_target:
        return call("exp", y) * (y - x)
    negative_entropy = call("where", call("eq", y, 0), 0, y * call("log", y))
    return call("where", call("isnan", y), y, negative_entropy) - y * x


def poisson_nll(x: Value, y: Value, log_input: bool, full: bool, eps: float) -> Value:
    loss = call("exp", x) - y * x if log_input else x - y * call("log", x + eps)
    if not full:
        return loss
    stirling = y * call("log", y) - y + call("log", y * (2 * math.pi)) * 0.5
    return loss + call("where", y > 1, stirling, 0)


def hinge_embedding(x: Value, y: Value, margin: float = 1.0) -> Value:
    """x where the target is 1, max(0, margin - x) where it is -1; both for other targets."""
    hinge = call("maximum", margin - x, 0)
    negative_part = call("where", call("ne", y, 1), hinge, 0)
    return negative_part + call("where", call("ne", y, -1), x, 0)


def margin_ranking(
    b: Builder,
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    reduction: int = MEAN,
) -> Tensor:
    """max(0, margin - y (x1 - x2)); integers are multiplied as integers and wrap around."""

    common_dtype = promoted_type((input1, input2))
    difference = lazy_elementwise((input1, input2), lambda x, y: x - y, common_dtype)
    negated_target = lazy_elementwise((target,), lambda y: -y, target.dtype)
    product_dtype = promoted_type((difference, negated_target))
    product = lazy_elementwise((negated_target, difference), lambda x, y: x * y, product_dtype)
    return elementwise_loss(b, (product,), lambda x: call("maximum", x + margin, 0), reduction)


def multi_margin(
    b: Builder,
    self: Tensor,
    target: Tensor,
    p: Any = 1,
    margin: Any = 1,
    weight: Tensor | None = None,
    reduction: int = MEAN,
) -> Tensor:
    """max(0, margin - x_target + x_class)^p, summed over all classes except the target's, divided
    by the number of classes."""
    if p not in (1, 2):
        raise Unsupported(f"a multi-margin loss with p={p} is not supported")
    dtype = b.output_meta().dtype
    compute_dtype = dtype.compute_dtype
    if self.rank == 0:
        self = self.view((sympy.Integer(1),), lambda _: ())
    classes = self.size[-1]
    rows = self.size[:-1]
    target_class = target if self.rank == 2 else target.view((), lambda _: (_ZERO,) * target.rank)

    def read(index: Index, inner: Index) -> Value:
        target_score = b.indirect(
            target_class, index, classes, lambda t: self.at((*index, t)), wrap=False
        )
        x, target_value = (
            upcast(value, compute_dtype) for value in (self.at((*index, *inner)), target_score)
        )
        difference = call("maximum", x - target_value + float(margin), 0)
        difference = difference if p == 1 else squared(difference)
        if weight is not None:
            factor = b.indirect(target_class, index, classes, lambda t: weight.at((t,)), wrap=False)
            difference = difference * upcast(factor, compute_dtype)
        is_target = call("eq", index_value(inner[0]), upcast(target_class.at(index), DType.I64))
        return call("where", is_target, 0, difference)

    losses = b.reduction(
        rows,
        (classes,),
        ReductionKind.SUM,
        read,
        dtype=dtype if reduction == NONE or not rows else compute_dtype,
        accumulate=compute_dtype,
        after=lambda acc, _: divide_by_count(acc, classes),
    )
    return losses if reduction == NONE or not rows else reduce_loss(b, losses, reduction)
