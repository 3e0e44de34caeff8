"""Views: other index expressions over the same elements, at no cost.

The engine lays out its own buffers and values never alias, so ``contiguous`` and ``clone`` are
views as well: where a kernel needs another memory order, its index expressions state it.
"""

# ruff: noqa: ARG001 - rules have the signature of their op

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy

from scheduler.ir.graph import Expr
from scheduler.ir.index.facts import is_equal, is_nonnegative
from scheduler.ir.index.functions import FloorDiv, Mod, as_expr
from scheduler.ir.index.simplify import product
from scheduler.ir.values import Value
from scheduler.lowering import layout
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import ContradictionError, Unsupported
from scheduler.lowering.tensor import Index, Tensor

_ZERO, _ONE = sympy.Integer(0), sympy.Integer(1)


def normalize_dim(dim: int, rank: int) -> int:
    """A dimension counted from the front. Raises ``Unsupported`` if it is outside the tensor."""
    if not isinstance(dim, int) or not -max(rank, 1) <= dim < max(rank, 1):
        raise Unsupported(f"dimension {dim} does not exist in a tensor of {rank} dimensions")
    return dim % max(rank, 1)


def broadcast(tensor: Tensor, size: tuple[Expr, ...]) -> Tensor:
    """The tensor broadcast to ``size``. Raises ``Unsupported`` if the shapes do not fit."""
    if tensor.size == size:
        return tensor
    leading_rank = len(size) - tensor.rank
    is_single = []
    for extent, result_extent in (
        zip(tensor.size, size[leading_rank:], strict=True) if leading_rank >= 0 else [(_ZERO, _ONE)]
    ):
        if extent != 1 and not is_equal(extent, result_extent):
            raise Unsupported(
                f"shape {layout.format_shape(tensor.size)} does not broadcast to "
                f"{layout.format_shape(size)}"
            )
        is_single.append(extent == 1)
    return tensor.view(
        size,
        lambda i: tuple(
            _ZERO if single else x for x, single in zip(i[leading_rank:], is_single, strict=True)
        ),
    )


def reshape(b: Builder, tensor: Tensor, size: tuple[Expr, ...]) -> Tensor:
    """The same elements in row-major order with another shape."""
    if tensor.size == size:
        return tensor
    if not is_equal(product(tensor.size), product(size)):
        raise Unsupported(
            f"{layout.format_shape(tensor.size)} does not have as many elements as "
            f"{layout.format_shape(size)}"
        )
    groups = _matching_groups(tensor.size, size, b.hints)

    def index(out: Index) -> Index:
        result: list[Expr] = [_ZERO] * tensor.rank
        for old, new in groups:
            steps = zip(out[new], layout.contiguous_strides(size[new]), strict=True)
            position = sympy.Add(*(i * step for i, step in steps))
            extents, strides = tensor.size[old], layout.contiguous_strides(tensor.size[old])
            long_dims = [d for d, extent in enumerate(extents) if extent != 1]
            for d in long_dims:
                quotient = FloorDiv(position, strides[d])
                result[old.start + d] = quotient if d == long_dims[0] else Mod(quotient, extents[d])
        return tuple(result)

    return tensor.view(size, index)


def _matching_groups(
    old: tuple[Expr, ...], new: tuple[Expr, ...], hints: Mapping[str, int]
) -> list[tuple[slice, slice]]:
    """The smallest groups of consecutive dimensions on both sides with equal numbers of
    elements."""
    groups, i, j = [], 0, 0
    while i < len(old) or j < len(new):
        start = (i, j)
        i, j = min(i + 1, len(old)), min(j + 1, len(new))
        while not is_equal(product(old[start[0] : i]), product(new[start[1] : j])):
            old_count = layout.size_hint(product(old[start[0] : i]), hints)
            new_count = layout.size_hint(product(new[start[1] : j]), hints)
            if i < len(old) and (old_count <= new_count or j == len(new)):
                i += 1
            elif j < len(new):
                j += 1
            else:
                break
        groups.append((slice(start[0], i), slice(start[1], j)))
    return groups


def view(b: Builder, self: Tensor, **_: Any) -> Tensor:
    return reshape(b, self, b.output_meta().size)


def unsqueeze(b: Builder, self: Tensor, dim: int) -> Tensor:
    axis = dim if dim >= 0 else dim + self.rank + 1
    size = (*self.size[:axis], _ONE, *self.size[axis:])
    return self.view(size, lambda i: (*i[:axis], *i[axis + 1 :]))


def permute(tensor: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Result dimension d is ``dims[d]`` of the tensor; negative ones count from the end."""
    order = tuple(normalize_dim(d, tensor.rank) for d in dims)
    inverse_order = tuple(order.index(d) for d in range(len(order)))
    return tensor.view(
        tuple(tensor.size[d] for d in order), lambda i: tuple(i[d] for d in inverse_order)
    )


def permute_op(b: Builder, self: Tensor, dims: tuple[int, ...]) -> Tensor:
    return permute(self, dims)


def transpose(tensor: Tensor, dim0: int, dim1: int) -> Tensor:
    order = list(range(tensor.rank))
    if not order:
        return tensor
    first, second = normalize_dim(dim0, tensor.rank), normalize_dim(dim1, tensor.rank)
    order[first], order[second] = second, first
    return permute(tensor, tuple(order))


def transpose_op(b: Builder, self: Tensor, dim0: int, dim1: int) -> Tensor:
    return transpose(self, dim0, dim1)


def swapaxes(b: Builder, self: Tensor, axis0: int, axis1: int) -> Tensor:
    return transpose(self, axis0, axis1)


def t(b: Builder, self: Tensor) -> Tensor:
    return transpose(self, 0, 1) if self.rank == 2 else self


def transpose_last(b: Builder, self: Tensor) -> Tensor:
    return transpose(self, -2, -1)


def movedim(b: Builder, self: Tensor, source: Any, destination: Any) -> Tensor:
    pairs = (
        [(source, destination)]
        if isinstance(source, int)
        else zip(source, destination, strict=True)
    )
    source_of = {
        normalize_dim(to_dim, self.rank): normalize_dim(from_dim, self.rank)
        for from_dim, to_dim in pairs
    }
    other_dims = iter(d for d in range(self.rank) if d not in source_of.values())
    return permute(
        self, tuple(source_of[d] if d in source_of else next(other_dims) for d in range(self.rank))
    )


def expand(b: Builder, self: Tensor, **_: Any) -> Tensor:
    return broadcast(self, b.output_meta().size)


def identity(b: Builder, self: Tensor, **_: Any) -> Tensor:
    return self


def slice_dim(tensor: Tensor, dim: int, start: Expr, length: Expr, step: int = 1) -> Tensor:
    """``length`` elements of one dimension from ``start``, every ``step``-th."""
    size = (*tensor.size[:dim], length, *tensor.size[dim + 1 :])
    return tensor.view(size, lambda i: (*i[:dim], start + step * i[dim], *i[dim + 1 :]))


def slice_op(
    b: Builder, self: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Tensor:
    axis = normalize_dim(dim, self.rank)
    if step < 1:
        raise Unsupported(f"a slice with step {step} is not supported")
    first, length = start_along(b, start, self.size[axis]), b.output_meta().size[axis]
    _check_slice_length(b, self.size[axis], first, end, step, length)
    return slice_dim(self, axis, first, length, step)


def _check_slice_length(
    b: Builder, extent: Expr, start: Expr, end: Any, step: int, length: Expr
) -> None:
    """Raise ``ContradictionError`` if a slice has another length at the example's sizes."""
    last = extent if end is None else as_expr(end)
    if b.is_unbacked(extent, start, last, length):
        return
    size, first, stop, count = (layout.size_hint(e, b.hints) for e in (extent, start, last, length))
    sliced_count = len(range(size)[first:stop:step])
    if sliced_count != count:
        raise ContradictionError(
            f"the graph lists {count} elements along its dimension, "
            f"but the slice has {sliced_count}"
        )


def position_along(b: Builder, value: Any, extent: Expr) -> Expr:
    """A position along an axis; negative positions count from the end, as in torch."""
    position = as_expr(value)
    if is_nonnegative(position, b.sizes):
        return position
    if is_nonnegative(-position, b.sizes):
        return extent + position
    raise Unsupported(f"a position of {position} is not supported: its sign is unknown")


def start_along(b: Builder, value: Any, extent: Expr) -> Expr:
    """The start of a slice, clamped as in torch."""
    if value is None:
        return _ZERO
    position = position_along(b, value, extent)
    if position.is_Integer and extent.is_Integer:
        return sympy.Integer(min(max(int(position), 0), int(extent)))
    return position


def narrow(b: Builder, self: Tensor, dim: int, start: Any, length: Any) -> Tensor:
    axis = normalize_dim(dim, self.rank)
    first, slice_length = start_along(b, start, self.size[axis]), as_expr(length)
    _check_slice_length(b, self.size[axis], first, first + slice_length, 1, slice_length)
    return slice_dim(self, axis, first, slice_length)


def select(b: Builder, self: Tensor, dim: int, index: Tensor | int) -> Tensor:
    axis = normalize_dim(dim, self.rank)
    size = (*self.size[:axis], *self.size[axis + 1 :])
    if isinstance(index, Tensor):  # x[best]: a number that the model reads at run time

        def read(i: Index) -> Value:
            return b.indirect(
                index,
                (),
                self.size[axis],
                lambda position: self.at((*i[:axis], position, *i[axis:])),
            )

        return Tensor(size, self.dtype, read)
    position = position_along(b, index, self.size[axis])
    return self.view(size, lambda i: (*i[:axis], position, *i[axis:]))


def split_dim(tensor: Tensor, dim: int, lengths: list[Expr]) -> tuple[Tensor, ...]:
    """Consecutive pieces of one dimension."""
    result, start = [], _ZERO
    for length in lengths:
        result.append(slice_dim(tensor, dim, start, length))
        start = start + length
    return tuple(result)


def split_op(b: Builder, self: Tensor, dim: int = 0, **_: Any) -> tuple[Tensor, ...]:
    """split, split_with_sizes, chunk: the sizes of the pieces are those of the outputs."""
    axis = normalize_dim(dim, self.rank)
    assert b.node is not None
    lengths = [b.output_meta(k).size[axis] for k in range(len(b.node.outputs))]
    if not b.may_be_equal(sympy.Add(*lengths), self.size[axis]):
        raise ContradictionError("the parts do not add up to the whole")
    return split_dim(self, axis, lengths)


def unbind(b: Builder, self: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    assert b.node is not None
    return tuple(select(b, self, dim, k) for k in range(len(b.node.outputs)))


def flip(b: Builder, self: Tensor, dims: tuple[int, ...]) -> Tensor:
    flipped_dims = {normalize_dim(d, self.rank) for d in dims}
    size = self.size
    return self.view(
        size, lambda i: tuple(size[d] - 1 - x if d in flipped_dims else x for d, x in enumerate(i))
    )


def roll(b: Builder, self: Tensor, shifts: Any, dims: Any = ()) -> Tensor:
    shift_list = shifts if isinstance(shifts, tuple) else (shifts,)
    dim_list = dims if isinstance(dims, tuple) else (dims,)
    size = self.size
    if any(extent == 0 for extent in size):
        return self
    if not dim_list:
        flat = reshape(b, self, (product(self.size),))
        rolled = roll(b, flat, shift_list, (0,))
        return reshape(b, rolled, self.size)
    shift_of_dim = {
        normalize_dim(d, self.rank): as_expr(s) for d, s in zip(dim_list, shift_list, strict=True)
    }
    return self.view(
        size,
        lambda i: tuple(
            Mod(x - shift_of_dim[d], size[d]) if d in shift_of_dim else x for d, x in enumerate(i)
        ),
    )


def repeat(b: Builder, self: Tensor, **_: Any) -> Tensor:
    size = b.output_meta().size
    leading_rank = len(size) - self.rank
    old_size = self.size
    return self.view(
        size,
        lambda i: tuple(
            Mod(x, extent) for x, extent in zip(i[leading_rank:], old_size, strict=True)
        ),
    )


def repeat_interleave(b: Builder, repeats: int, self: Tensor, dim: Any = None) -> Tensor:
    """Each element repeated consecutively."""
    if dim is None:
        flat = reshape(b, self, (product(self.size),))
        return repeat_interleave(b, repeats, flat, 0)
    axis = normalize_dim(dim, self.rank)
    size = (*self.size[:axis], self.size[axis] * repeats, *self.size[axis + 1 :])
    return self.view(
        size, lambda i: (*i[:axis], FloorDiv(i[axis], as_expr(repeats)), *i[axis + 1 :])
    )


def pixel_shuffle(b: Builder, self: Tensor, upscale_factor: int) -> Tensor:
    *leading, channels, height, width = self.size
    factor = as_expr(upscale_factor)
    split = (*leading, FloorDiv(channels, factor * factor), factor, factor, height, width)
    n = len(leading)
    permuted = permute(reshape(b, self, split), (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return reshape(b, permuted, b.output_meta().size)


def diagonal(b: Builder, self: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    first, second = normalize_dim(dim1, self.rank), normalize_dim(dim2, self.rank)
    other_dims = [d for d in range(self.rank) if d not in (first, second)]

    def index(i: Index) -> Index:
        index_of_dim = dict(zip(other_dims, i[:-1], strict=True))
        index_of_dim[first] = i[-1] + max(-offset, 0)
        index_of_dim[second] = i[-1] + max(offset, 0)
        return tuple(index_of_dim[d] for d in range(len(index_of_dim)))

    return self.view(b.output_meta().size, index)


def unfold(b: Builder, self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    axis = normalize_dim(dimension, self.rank)
    if not self.rank:
        return self.view(b.output_meta().size, lambda _: ())
    return self.view(
        b.output_meta().size, lambda i: (*i[:axis], step * i[axis] + i[-1], *i[axis + 1 : -1])
    )


def broadcast_tensors(b: Builder, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(broadcast(tensor, b.output_meta(k).size) for k, tensor in enumerate(tensors))


def meshgrid(b: Builder, tensors: tuple[Tensor, ...], indexing: str = "ij") -> tuple[Tensor, ...]:
    """Each vector along its own dimension; ``xy`` swaps the first two dimensions."""
    results = []
    for k, tensor in enumerate(tensors):
        result_dim = {0: 1, 1: 0}.get(k, k) if indexing == "xy" and len(tensors) > 1 else k
        vector = reshape(b, tensor, (product(tensor.size),))

        def index(i: Index, result_dim: int = result_dim) -> Index:
            return (i[result_dim],)

        results.append(vector.view(b.output_meta(k).size, index))
    return tuple(results)
