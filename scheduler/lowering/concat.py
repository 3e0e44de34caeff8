"""Concatenation and padding of tensors: a masked read of each part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import Mod, as_expr
from scheduler.ir.values import Value, call, const, index_value, upcast
from scheduler.lowering import trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.pointwise import materialize
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.views import normalize_dim, slice_dim

_ZERO, _ONE = sympy.Integer(0), sympy.Integer(1)
_MAX_DIFFERENCES = 64  # computed one after the other


def concatenate(tensors: Sequence[Tensor], dim: int, dtype: DType) -> Tensor:
    """Concatenate tensors along ``dim``; each element is read from the tensor it comes from."""
    first = tensors[0]
    ends: list[Expr] = []
    for tensor in tensors:
        ends.append((ends[-1] if ends else _ZERO) + tensor.size[dim])
    size = (*first.size[:dim], ends[-1], *first.size[dim + 1 :])

    def read(index: Index) -> Value:
        x = index[dim]
        value: Value | None = None
        for position in reversed(range(len(tensors))):
            start = ends[position - 1] if position else _ZERO
            local_index = (*index[:dim], x - start, *index[dim + 1 :])
            element = upcast(tensors[position].at(local_index), dtype)
            value = (
                element
                if value is None
                else trees.masked_value(trees.less_than(x, ends[position]), element, value)
            )
        assert value is not None
        return value

    return Tensor(size, dtype, read)


def cat(b: Builder, tensors: tuple[Tensor, ...], dim: int = 0) -> Tensor:
    meta = b.output_meta()
    # torch accepts tensors of shape [0], whatever the other shapes are.
    parts = [t for t in tensors if t.size != (_ZERO,)] or list(tensors[:1])
    axis = normalize_dim(dim, len(meta.size))
    result = concatenate(parts, axis, meta.dtype)
    for part in parts:
        b.check_output_shape((*part.size[:axis], result.size[axis], *part.size[axis + 1 :]))
    return materialize(b, Tensor(meta.size, meta.dtype, result.at))


def stack(b: Builder, tensors: tuple[Tensor, ...], dim: int = 0) -> Tensor:
    meta = b.output_meta()
    axis = normalize_dim(dim, len(meta.size))
    unsqueezed = [
        t.view((*t.size[:axis], _ONE, *t.size[axis:]), lambda i: (*i[:axis], *i[axis + 1 :]))
        for t in tensors
    ]
    result = concatenate(unsqueezed, axis, meta.dtype)
    for part in unsqueezed:
        b.check_output_shape((*part.size[:axis], result.size[axis], *part.size[axis + 1 :]))
    return materialize(b, Tensor(meta.size, meta.dtype, result.at))


def constant_pad(b: Builder, self: Tensor, pad: tuple[Any, ...], value: Any = 0) -> Tensor:
    """Pad with a constant. ``pad`` is (before, after) for the last dimension, then the one before
    it, …"""
    meta = b.output_meta()
    before, after = _before(self, pad), _before(self, pad[1:])
    b.check_output_shape([s + p + q for s, p, q in zip(self.size, before, after, strict=True)])

    def read(index: Index) -> Value:
        source = tuple(i - p for i, p in zip(index, before, strict=True))
        conditions = []
        for d, i in enumerate(source):
            if before[d] != 0 or self.size[d] != meta.size[d]:
                is_not_negative = index_value(i) >= index_value(0)
                conditions += [is_not_negative, trees.less_than(i, self.size[d])]
        fill = const(value or 0, meta.dtype)
        return trees.masked_value(trees.all_of(*conditions), self.at(source), fill)

    return materialize(b, Tensor(meta.size, meta.dtype, read))


def _before(tensor: Tensor, pad: tuple[Any, ...]) -> tuple[Expr, ...]:
    """The padding before each dimension."""
    amounts = [as_expr(p) for p in pad[::2]][::-1]
    return (*(_ZERO,) * (tensor.rank - len(amounts)), *amounts)


def pad_op(
    b: Builder, self: Tensor, pad: tuple[Any, ...], mode: str = "constant", value: Any = None
) -> Tensor:
    if mode == "constant":
        return constant_pad(b, self, pad, value)
    meta = b.output_meta()
    return self.view(meta.size, source_index(self, meta.size, pad, mode))


def source_index(
    tensor: Tensor, size: tuple[Expr, ...], pad: tuple[Any, ...], mode: str
) -> Callable[[Index], Index]:
    """Return a function that maps an index of the padded tensor, of ``size``, to the index of the
    element that is copied there."""
    before = _before(tensor, pad)
    if mode == "circular":
        return _circular_index(tensor, size, before, _before(tensor, pad[1:]))

    def fold(i: Expr, extent: Expr) -> Expr:
        if mode == "replicate":
            return sympy.Max(_ZERO, sympy.Min(i, extent - 1))
        if mode == "reflect":
            magnitude = sympy.Max(i, -i)
            return sympy.Min(magnitude, 2 * (extent - 1) - magnitude)
        raise Unsupported(f"padding with mode {mode!r} is not supported")

    def index(out: Index) -> Index:
        return tuple(
            i if p == 0 and tensor.size[d] == size[d] else fold(i - p, tensor.size[d])
            for d, (i, p) in enumerate(zip(out, before, strict=True))
        )

    return index


def _circular_index(
    tensor: Tensor, size: tuple[Expr, ...], before: tuple[Expr, ...], after: tuple[Expr, ...]
) -> Callable[[Index], Index]:
    """The circular index map; negative amounts first crop the dimension that is repeated."""

    def index(out: Index) -> Index:
        source = []
        for d, i in enumerate(out):
            low, high = before[d], after[d]
            cropped, padded = sympy.Max(-low, _ZERO), sympy.Max(low, _ZERO)
            period = tensor.size[d] - cropped - sympy.Max(-high, _ZERO)
            is_unchanged = low == 0 and tensor.size[d] == size[d]
            source.append(i if is_unchanged else cropped + Mod(i - padded, period))
        return tuple(source)

    return index


def diff(
    b: Builder,
    self: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Each element minus the one before it, along ``dim``."""
    axis = normalize_dim(dim, self.rank)
    dtype = b.output_meta().dtype
    if n > _MAX_DIFFERENCES:
        raise Unsupported(f"differences of order {n} are not supported")
    if n == 0:
        return self
    current = concatenate([t for t in (prepend, self, append) if t is not None], axis, dtype)
    op = "logical_xor" if dtype is DType.BOOL else "sub"
    for order in range(n):
        length = current.size[axis] - 1
        if length.is_negative:
            return Tensor(b.output_meta().size, dtype, lambda _: const(0, dtype))
        later, before = (slice_dim(current, axis, start, length) for start in (_ONE, _ZERO))

        def difference(index: Index, later: Tensor = later, before: Tensor = before) -> Value:
            operands = (upcast(operand.at(index), dtype) for operand in (later, before))
            return call(op, *operands)

        result = Tensor(later.size, dtype, difference)
        # Higher-order differences read each element repeatedly: from memory at every second order.
        current = materialize(b, result) if order % 2 or order == n - 1 else result
    return current
