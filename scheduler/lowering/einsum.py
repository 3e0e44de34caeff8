"""Sums of products over named dimensions: einsum, tensordot and similar ops.

Operands are combined two at a time from the left. A name that neither a later operand nor the
result uses is summed as early as possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv, Mod
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Value, upcast
from scheduler.lowering import matmul, trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import ContradictionError
from scheduler.lowering.matmul import Operand
from scheduler.lowering.pointwise import convert_result, elementwise, times
from scheduler.lowering.reductions import accumulator_dtype, sum_over
from scheduler.lowering.tensor import Index, Tensor

_ZERO, _ONE = sympy.Integer(0), sympy.Integer(1)
Labels: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """A tensor with a unique name for each of its dimensions."""

    tensor: Tensor
    labels: Labels

    def at(self, index_of_label: dict[str, Expr]) -> Value:
        return self.tensor.at(tuple(index_of_label[label] for label in self.labels))


def einsum(b: Builder, equation: str, tensors: tuple[Tensor, ...], **_: Any) -> Tensor:
    inputs, result = parse_equation(equation, [tensor.rank for tensor in tensors])
    return convert_result(b, summed_product(b, list(zip(tensors, inputs, strict=True)), result))


def parse_equation(equation: str, ranks: Sequence[int]) -> tuple[list[Labels], Labels]:
    """The names of each operand's dimensions, and the result's. Dimensions under an ellipsis are
    named by their position from the right. Without an arrow the result has the names that occur
    once, in order."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    operands = left.split(",")
    if len(operands) != len(ranks):
        raise ContradictionError(f"einsum {equation!r} of {len(ranks)} operands")
    ellipsis_ranks = [
        rank - len(operand.replace("...", "")) if "..." in operand else 0
        for operand, rank in zip(operands, ranks, strict=True)
    ]
    max_ellipsis_rank = max(ellipsis_ranks, default=0)
    inputs = [
        _labels(operand, ellipsis_rank)
        for operand, ellipsis_rank in zip(operands, ellipsis_ranks, strict=True)
    ]
    for labels, rank in zip(inputs, ranks, strict=True):
        if len(labels) != rank:
            raise ContradictionError(
                f"einsum {equation!r} does not fit an operand with {rank} dimensions"
            )
    if arrow:
        return inputs, _labels(right, max_ellipsis_rank)
    letters = left.replace(",", "").replace("...", "")
    unique_labels = sorted(letter for letter in set(letters) if letters.count(letter) == 1)
    return inputs, (*_ellipsis_labels(max_ellipsis_rank), *unique_labels)


def _ellipsis_labels(count: int) -> Labels:
    return tuple(f".{count - position}" for position in range(count))


def _labels(text: str, ellipsis_rank: int) -> Labels:
    before, dots, after = text.partition("...")
    return (*before, *(_ellipsis_labels(ellipsis_rank) if dots else ()), *after)


def summed_product(b: Builder, operands: Sequence[tuple[Tensor, Labels]], result: Labels) -> Tensor:
    """The product of the operands for each value of the names, summed over names not in ``result``.

    An extent of 1 matches any other extent of its name, as in broadcasting.
    """
    dtype = b.output_meta().dtype
    parts = [_normalize_operand(tensor, labels) for tensor, labels in operands]
    while len(parts) > 1:
        x, y, *later_parts = parts
        is_last = not later_parts
        needed = {*result, *(label for part in later_parts for label in part.labels)}
        x = _sum_unused(b, x, {*needed, *y.labels}, dtype)
        y = _sum_unused(b, y, {*needed, *x.labels}, dtype)
        order = [label for label in result if label in (*x.labels, *y.labels)] if is_last else None
        product_part = _contract_pair(b, x, y, needed, order, dtype)
        parts = [product_part, *later_parts]
    (remaining,) = parts
    part = _sum_unused(b, remaining, set(result), dtype)
    if part.labels == result:
        return part.tensor
    # Permute to the result's order and restore dimensions of one element.
    sizes = dict(zip(part.labels, part.tensor.size, strict=True))
    size = tuple(sizes.get(label, _ONE) for label in result)
    return part.tensor.view(size, lambda i: tuple(i[result.index(label)] for label in part.labels))


def _normalize_operand(tensor: Tensor, labels: Labels) -> Part:
    """Remove dimensions of one element, and take the diagonal of dimensions with the same name."""
    kept_labels = tuple(
        dict.fromkeys(
            label for label, extent in zip(labels, tensor.size, strict=True) if extent != 1
        )
    )
    is_single = tuple(extent == 1 for extent in tensor.size)

    def index(i: Index) -> Index:
        index_of_label = dict(zip(kept_labels, i, strict=True))
        return tuple(
            _ZERO if single else index_of_label[label]
            for label, single in zip(labels, is_single, strict=True)
        )

    size = tuple(
        next(
            extent
            for name, extent in zip(labels, tensor.size, strict=True)
            if name == label and extent != 1
        )
        for label in kept_labels
    )
    return Part(tensor.view(size, index), kept_labels)


def _sum_unused(b: Builder, part: Part, needed: set[str], dtype: DType) -> Part:
    """Sum over the names that are not needed."""
    dims = tuple(d for d, label in enumerate(part.labels) if label not in needed)
    if not dims:
        return part
    size = tuple(e for d, e in enumerate(part.tensor.size) if d not in dims)
    result = sum_over(b, part.tensor, dims, dtype=dtype, size=size)
    return Part(result, tuple(label for label in part.labels if label in needed))


def _contract_pair(
    b: Builder, x: Part, y: Part, needed: set[str], order: list[str] | None, dtype: DType
) -> Part:
    """The product of two operands, summed over common names that are not needed."""
    common = [label for label in x.labels if label in y.labels]
    batch = [label for label in common if label in needed]
    k = [label for label in common if label not in needed]
    m, n = ([label for label in part.labels if label not in common] for part in (x, y))
    labels = tuple(order if order is not None else [*batch, *m, *n])
    sizes = dict(zip((*x.labels, *y.labels), (*x.tensor.size, *y.tensor.size), strict=True))
    size = tuple(sizes[label] for label in labels)
    if not k or not dtype.is_float:
        return Part(_products(b, x, y, labels, k, sizes, dtype), labels)

    def operand(part: Part, own_labels: list[str]) -> Operand:
        def read(i: Index, j: Index, r: Index) -> Value:
            return part.at(
                {
                    **_label_indices(batch, i),
                    **_label_indices(own_labels, j),
                    **_label_indices(k, r),
                }
            )

        return Operand(tuple(sizes[label] for label in own_labels) or (_ONE,), read)

    def result_index(i: Index, j: Index, r: Index) -> Index:
        index_of_label = {
            **_label_indices(batch, i),
            **_label_indices(m, j),
            **_label_indices(n, r),
        }
        return tuple(index_of_label[label] for label in labels)

    result = matmul.contract(
        b,
        problem="einsum",
        template="gemm",
        batch=tuple(sizes[label] for label in batch),
        k=tuple(sizes[label] for label in k),
        left=operand(x, m),
        right=operand(y, n),
        size=size,
        result_index=result_index,
        dtype=dtype,
    )
    return Part(result, labels)


def _label_indices(labels: list[str], index: Index) -> dict[str, Expr]:
    """Map names to index values; a group without names has one axis of one step."""
    return dict(zip(labels, index, strict=True)) if labels else {}


def _products(
    b: Builder, x: Part, y: Part, labels: Labels, k: list[str], sizes: dict[str, Expr], dtype: DType
) -> Tensor:
    """The product without matrix instructions: no sum, or integers."""
    size = tuple(sizes[label] for label in labels)
    accumulate = accumulator_dtype(dtype)

    def product(index: Index, inner: Index) -> Value:
        index_of_label = {**dict(zip(labels, index, strict=True)), **_label_indices(k, inner)}
        return upcast(x.at(index_of_label), accumulate) * upcast(y.at(index_of_label), accumulate)

    if k:
        return b.reduction(
            size,
            tuple(sizes[label] for label in k),
            ReductionKind.SUM,
            product,
            dtype=dtype,
            accumulate=accumulate,
        )
    return b.pointwise(size, dtype, lambda index: product(index, ()))


def tensordot(
    b: Builder, self: Tensor, other: Tensor, dims_self: tuple[int, ...], dims_other: tuple[int, ...]
) -> Tensor:
    """The sum over pairs of dimensions of both."""
    left = [f"x{d}" for d in range(self.rank)]
    right = [f"y{d}" for d in range(other.rank)]
    for left_dim, right_dim in zip(dims_self, dims_other, strict=True):
        right[right_dim % other.rank] = left[left_dim % self.rank]
    shared = set(left) & set(right)
    result = tuple(label for label in (*left, *right) if label not in shared)
    return summed_product(b, [(self, tuple(left)), (other, tuple(right))], result)


def inner(b: Builder, self: Tensor, other: Tensor) -> Tensor:
    """The sum over the last dimensions of both; the product if one is a number."""
    if self.rank == 0 or other.rank == 0:
        return elementwise(b, (self, other), lambda x, y: x * y)
    return tensordot(b, self, other, (self.rank - 1,), (other.rank - 1,))


def kron(b: Builder, self: Tensor, other: Tensor) -> Tensor:
    """Each element of the first times all of the second."""
    meta = b.output_meta()
    rank = len(meta.size)
    extents = (*(_ONE,) * (rank - other.rank), *other.size)

    def read(index: Index) -> Value:
        outer_index = tuple(FloorDiv(i, e) for i, e in zip(index, extents, strict=True))
        inner_index = tuple(Mod(i, e) for i, e in zip(index, extents, strict=True))
        x, y = self.at(outer_index[rank - self.rank :]), other.at(inner_index[rank - other.rank :])
        return times(*(upcast(value, meta.dtype) for value in (x, y)))

    return b.pointwise(meta.size, meta.dtype, read)


def addbmm(
    b: Builder, self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Tensor:
    """``beta * self`` plus ``alpha`` times the sum of the batches' products."""
    labels = [("b", "m", "k"), ("b", "k", "n")]
    result = summed_product(b, list(zip((batch1, batch2), labels, strict=True)), ("m", "n"))
    dtype = b.output_meta().dtype

    def function(x: Value, y: Value) -> Value:
        product = trees.scale_value(y, alpha, dtype)
        if trees.is_zero_factor(beta, dtype):
            return product
        return trees.scale_value(x, beta, dtype) + product

    return elementwise(b, (self, result), function)


def addr(
    b: Builder, self: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Tensor:
    """``beta * self + alpha * vec1 vec2^T``."""
    column = vec1.view((vec1.size[0], _ONE), lambda i: i[:1])
    dtype = b.output_meta().dtype
    if dtype is DType.BOOL:
        with_self = lambda x, y, z: x | y & z  # noqa: E731
        without_self = lambda _, y, z: y & z  # noqa: E731
        return elementwise(b, (self, column, vec2), with_self if beta else without_self)

    def function(x: Value, y: Value, z: Value) -> Value:
        product = trees.scale_value(y * z, alpha, dtype)
        if trees.is_zero_factor(beta, dtype):
            return product
        return trees.scale_value(x, beta, dtype) + product

    return elementwise(b, (self, column, vec2), function)


def chain_matmul(b: Builder, matrices: tuple[Tensor, ...]) -> Tensor:
    result = matrices[0]
    for matrix in matrices[1:]:
        size = (result.size[0], matrix.size[1])
        result = matmul.product(b, "mm", result, matrix, size, b.output_meta().dtype, None)
    return result


def bilinear(
    b: Builder, input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None
) -> Tensor:
    """x1^T W_o x2 + bias_o."""
    leading = tuple(f"x{d}" for d in range(input1.rank - 1))
    result = summed_product(
        b,
        [(input1, (*leading, "i")), (weight, ("o", "i", "j")), (input2, (*leading, "j"))],
        (*leading, "o"),
    )
    if bias is None:
        return result
    return elementwise(b, (result, bias), lambda x, y: x + y)


def trilinear(
    b: Builder,
    i1: Tensor,
    i2: Tensor,
    i3: Tensor,
    expand1: tuple[int, ...],
    expand2: tuple[int, ...],
    expand3: tuple[int, ...],
    sumdim: tuple[int, ...],
    **_: Any,
) -> Tensor:
    """The decomposed form of ``bilinear``: each operand is repeated along its ``expand``, and the
    product is summed."""
    rank = i1.rank + len(expand1)
    operands = []
    for tensor, repeated in ((i1, expand1), (i2, expand2), (i3, expand3)):
        labels = tuple(str(d) for d in range(rank) if d not in repeated)
        operands.append((tensor, labels))
    return summed_product(b, operands, tuple(str(d) for d in range(rank) if d not in sumdim))
