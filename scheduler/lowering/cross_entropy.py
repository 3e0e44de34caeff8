"""Negative log-likelihood and cross entropy: losses of rows of scores.

The classes are dimension 1 of the scores, or the only one. A row's loss is computed where the
reductions over rows read it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.values import Value, call, const, index_value, upcast
from scheduler.lowering import softmax, trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.creation import full
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.losses import MEAN, NONE, SUM, sum_all
from scheduler.lowering.matmul import product
from scheduler.lowering.pointwise import materialize
from scheduler.lowering.reductions import divide_by_count, reduced_count, sum_over
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.views import transpose


def class_axis(rank: int) -> int:
    return 1 if rank > 1 else 0


@dataclass(frozen=True)
class Rows:
    """Rows of scores with their target classes.

    ``target`` has the rows' shape; rows of the class ``ignored`` do not count. ``weight`` is a
    factor for each class.
    """

    b: Builder
    scores: Tensor
    target: Tensor
    weight: Tensor | None
    ignored: int
    dtype: DType

    @property
    def axis(self) -> int:
        return class_axis(self.scores.rank)

    @property
    def classes(self) -> Expr:
        return self.scores.size[self.axis]

    @property
    def size(self) -> tuple[Expr, ...]:
        return (*self.scores.size[: self.axis], *self.scores.size[self.axis + 1 :])

    def score_index(self, row: Index, class_index: Expr) -> Index:
        return (*row[: self.axis], class_index, *row[self.axis :])

    def counted(self, row: Index, value: Value) -> Value:
        """``value`` if the row counts, else 0 without reading ``value``."""
        target_class = upcast(self.target.at(row), DType.I64)
        counts = call("ne", target_class, self.ignored)
        return trees.masked_value(counts, value, const(0, self.dtype))

    def target_value(self, row: Index, read: Callable[[Expr], Value]) -> Value:
        value = self.b.indirect(self.target, row, self.classes, read, wrap=False)
        return upcast(value, self.dtype)

    def factor(self, row: Index) -> Value:
        """The weight of the row's class (1 without weights); 0 if the row does not count."""
        weight = self.weight
        if weight is None:
            return self.counted(row, const(1, self.dtype))
        return self.counted(row, self.target_value(row, lambda c: weight.at((c,))))

    def likelihood(self, row: Index) -> Value:
        """The score of the row's class."""
        return self.target_value(row, lambda c: self.scores.at(self.score_index(row, c)))

    def loss(self, row: Index) -> Value:
        """The negated, weighted score of the row's class."""
        score = -self.likelihood(row)
        if self.weight is not None:
            score = self.factor(row) * score
        return self.counted(row, score)


def _reduced(
    b: Builder, rows: Rows, loss: Callable[[Index], Value], reduction: int, dtype: DType
) -> Tensor:
    """The losses of all rows, their sum, or their sum divided by the sum of the factors."""
    losses = Tensor(rows.size, rows.dtype, loss)
    if reduction == NONE:
        return b.pointwise(rows.size, dtype, losses.at)
    if reduction == SUM:
        return sum_all(b, losses, dtype)
    weights = sum_all(b, Tensor(rows.size, rows.dtype, rows.factor), rows.dtype)
    return sum_all(b, losses, dtype, lambda acc, _: acc / weights.at(()))


def _rows(b: Builder, scores: Tensor, target: Tensor, weight: Tensor | None, ignored: int) -> Rows:
    if target.rank < scores.rank - 1:
        target = target.view(scores.size[1:], lambda i: i[: target.rank])
    elif scores.rank == 1:
        given_target = target
        target = target.view((), lambda _: (sympy.Integer(0),) * given_target.rank)
    return Rows(b, scores, target, weight, ignored, b.output_meta().dtype.compute_dtype)


def nll_loss(
    b: Builder,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = MEAN,
    ignore_index: int = -100,
) -> Tensor:
    rows = _rows(b, self, target, weight, ignore_index)
    return _reduced(b, rows, rows.loss, reduction, b.output_meta().dtype)


def nll_loss_forward(
    b: Builder,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
) -> tuple[Tensor, Tensor]:
    """The loss and the sum of the factors, which is 0 without a reduction."""
    rows = _rows(b, self, target, weight, ignore_index)
    dtype = b.output_meta(1).dtype
    loss = _reduced(b, rows, rows.loss, reduction, b.output_meta().dtype)
    if reduction == NONE:
        return loss, Tensor((), dtype, lambda _: const(0, dtype))
    return loss, sum_all(b, Tensor(rows.size, rows.dtype, rows.factor), dtype)


def cross_entropy(
    b: Builder,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = MEAN,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Tensor:
    """The negative log-likelihood of the softmax. Targets are classes or class probabilities."""
    dtype = b.output_meta().dtype
    compute_dtype = dtype.compute_dtype
    axis = class_axis(self.rank)
    scores = softmax.lazy_log_softmax(b, self, (axis,), compute_dtype)
    if target.dtype.is_float:
        return _probability_loss(b, scores, target, weight, reduction, label_smoothing)
    rows = _rows(b, scores, target, weight, ignore_index)
    if label_smoothing == 0:
        return _reduced(b, rows, rows.loss, reduction, dtype)
    uniform_loss = _weighted(b, scores, axis, weight, compute_dtype)

    def loss(row: Index) -> Value:
        target_loss = rows.loss(row) * (1 - label_smoothing)
        share = divide_by_count(const(label_smoothing, compute_dtype), rows.classes)
        return target_loss + rows.counted(row, share * uniform_loss.at(row))

    return _reduced(b, rows, loss, reduction, dtype)


def _weighted(
    b: Builder,
    scores: Tensor,
    axis: int,
    weight: Tensor | None,
    dtype: DType,
    share: Callable[[Index], Value] | None = None,
) -> Tensor:
    """The negated sum of a row's scores, each times its weight and its share."""

    def before(value: Value, index: Index) -> Value:
        value = -value
        if weight is not None:
            value = value * upcast(weight.at((index[axis],)), dtype)
        return value if share is None else value * share(index)

    size = (*scores.size[:axis], *scores.size[axis + 1 :])
    return sum_over(b, scores, (axis,), dtype=dtype, size=size, before=before)


def _probability_loss(
    b: Builder,
    scores: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    smoothing: float,
) -> Tensor:
    """The cross entropy with class probabilities. The mean is over the rows, whatever their
    weights."""
    dtype = b.output_meta().dtype
    compute_dtype = dtype.compute_dtype
    axis = class_axis(scores.rank)
    classes = scores.size[axis]

    def share(index: Index) -> Value:
        probability = upcast(target.at(index), compute_dtype)
        if smoothing == 0:
            return probability
        uniform_share = divide_by_count(const(smoothing, compute_dtype), classes)
        return probability * (1 - smoothing) + uniform_share

    losses = _weighted(b, scores, axis, weight, compute_dtype, share)
    if reduction == NONE:
        return b.pointwise(losses.size, dtype, losses.at)
    number = reduced_count(losses, range(losses.rank))
    after: Any = (lambda acc, _: divide_by_count(acc, number)) if reduction == MEAN else None
    if losses.rank == 0:
        return b.pointwise((), dtype, losses.at)
    return sum_all(b, losses, dtype, after)


def linear_cross_entropy(
    b: Builder,
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    **_: Any,
) -> Tensor:
    """One loss per row, of scores made by a linear layer (torch processes some rows at a time)."""
    scores = _linear_scores(b, input, linear_weight, linear_bias)
    return cross_entropy(b, scores, target, weight, NONE, ignore_index)


def linear_cross_entropy_with_gradients(
    b: Builder,
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    reduction: str,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    compute_input_grad: bool = False,
    compute_linear_weight_grad: bool = False,
    compute_linear_bias_grad: bool = False,
    **_: Any,
) -> tuple[Tensor, ...]:
    """The loss of all rows. The gradients that torch may compute with it are returned empty;
    ``Unsupported`` if one is requested."""
    if compute_input_grad or compute_linear_weight_grad or compute_linear_bias_grad:
        raise Unsupported("a loss that computes its gradients in the forward pass is not supported")
    kind = MEAN if reduction == "mean" else SUM
    scores = _linear_scores(b, input, linear_weight, linear_bias)
    loss = cross_entropy(b, scores, target, weight, kind, ignore_index, label_smoothing)
    metas = [b.output_meta(output) for output in (1, 2, 3)]
    return loss, *(full(meta.size, 0, meta.dtype) for meta in metas)


def _linear_scores(b: Builder, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    size = (input.size[0], weight.size[0])

    def biased(accumulator: Value, index: Index) -> Value:
        if bias is None:
            return accumulator
        return accumulator + upcast(bias.at(index[1:]), accumulator.dtype)

    columns = transpose(weight, 0, 1)
    return product(b, "linear", input, columns, size, input.dtype.compute_dtype, biased)


def nll_loss_backward(
    b: Builder,
    grad_output: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
) -> Tensor:
    """-weight[class] at each row's own class (divided by the total weight for a mean), 0 at all
    other classes and where the class is ignored."""
    axis = 0 if self.rank < 2 else 1
    compute_dtype = self.dtype.compute_dtype

    def read(i: Index) -> Value:
        row = (*i[:axis], *i[axis + 1 :])
        # Without a batch the class may be a one-element tensor.
        target_class = upcast(
            target.at((sympy.Integer(0),) * target.rank if axis == 0 else row), DType.I64
        )
        g = -upcast(grad_output.at(row if grad_output.rank == len(row) else ()), compute_dtype)
        if weight is not None:
            g = g * upcast(weight.at(i[axis : axis + 1]), compute_dtype)
        if reduction == MEAN:
            g = g / upcast(total_weight.at(()), compute_dtype)
        is_target = call("eq", target_class, index_value(i[axis]))
        counts = call("ne", target_class, ignore_index)
        return call("where", is_target & counts, g, 0)

    return materialize(b, Tensor(self.size, self.dtype, read))
