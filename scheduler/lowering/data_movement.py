"""Ops that move elements: diagonals, rotations, shuffles, grids.

Ops without arithmetic are views (``views.py``); ops that add zeros are masked reads.
"""

from __future__ import annotations

from typing import Any

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv, Mod, as_expr
from scheduler.ir.index.simplify import product
from scheduler.ir.values import Value, call, const, index_value, upcast
from scheduler.lowering import concat, indexing, matmul, reductions, scatter, trees, views
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import FACTORS, Unsupported
from scheduler.lowering.pointwise import convert_result, materialize
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.views import normalize_dim, permute, reshape

_ZERO, _ONE = sympy.Integer(0), sympy.Integer(1)


def rot90(b: Builder, self: Tensor, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """Rotate by ``k`` quarter turns from the first of two dimensions towards the second."""
    first, second = dims
    turns = k % 4
    if turns == 0:
        return self
    if turns == 2:
        return views.flip(b, self, (first, second))
    flipped = views.flip(b, self, (second if turns == 1 else first,))
    return views.transpose(flipped, first, second)


def fliplr(b: Builder, self: Tensor) -> Tensor:
    return views.flip(b, self, (1,))


def flipud(b: Builder, self: Tensor) -> Tensor:
    return views.flip(b, self, (0,))


def diag_embed(b: Builder, self: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The last dimension as a diagonal, zeros elsewhere."""
    meta = b.output_meta()
    row, column = normalize_dim(dim1, self.rank + 1), normalize_dim(dim2, self.rank + 1)

    def read(i: Index) -> Value:
        distance = index_value(i[column] - i[row])
        is_on_diagonal = call("eq", distance, index_value(offset))
        leading = tuple(x for d, x in enumerate(i) if d not in (row, column))
        position = i[row] if offset >= 0 else i[column]
        return trees.masked_value(
            is_on_diagonal, self.at((*leading, position)), const(0, meta.dtype)
        )

    return materialize(b, Tensor(meta.size, meta.dtype, read))


def diag(b: Builder, self: Tensor, diagonal: int = 0) -> Tensor:
    if self.rank == 1:
        return diag_embed(b, self, diagonal)
    return views.diagonal(b, self, diagonal)


def diagflat(b: Builder, self: Tensor, offset: int = 0) -> Tensor:
    return diag_embed(b, reshape(b, self, (product(self.size),)), offset)


def linalg_diagonal(
    b: Builder,
    A: Tensor,  # noqa: N803 - torch's name
    offset: int = 0,
    dim1: int = -2,
    dim2: int = -1,
) -> Tensor:
    return views.diagonal(b, A, offset, dim1, dim2)


def trace(b: Builder, self: Tensor) -> Tensor:
    """The sum of the diagonal."""
    meta = b.output_meta()
    length = sympy.Min(*self.size)
    diagonal = self.view((length,), lambda i: (i[0], i[0]))
    return reductions.sum_over(b, diagonal, (0,), dtype=meta.dtype, size=meta.size)


# Splits. The lengths of the pieces are in the graph.


def hsplit(b: Builder, self: Tensor, **_: Any) -> tuple[Tensor, ...]:
    return views.split_op(b, self, 0 if self.rank == 1 else 1)


def vsplit(b: Builder, self: Tensor, **_: Any) -> tuple[Tensor, ...]:
    return views.split_op(b, self, 0)


def dsplit(b: Builder, self: Tensor, **_: Any) -> tuple[Tensor, ...]:
    return views.split_op(b, self, 2)


# Stacking.


def _at_least_rank(b: Builder, tensor: Tensor, rank: int) -> Tensor:
    """Implement ``atleast_1d``, ``atleast_2d`` and ``atleast_3d``: new dimensions at NumPy's
    positions."""
    missing = max(rank - tensor.rank, 0)
    if rank == 3 and tensor.rank in (1, 2):
        before = 1 if tensor.rank == 1 else 0
        size = (*(_ONE,) * before, *tensor.size, _ONE)
    else:
        size = (*(_ONE,) * missing, *tensor.size)
    return reshape(b, tensor, size)


def atleast(
    b: Builder, self: Tensor | None = None, tensors: tuple[Tensor, ...] = ()
) -> tuple[Tensor, ...]:
    """``atleast_1d``, ``atleast_2d``, ``atleast_3d`` for one tensor or several."""
    inputs = tensors if self is None else (self,)
    return tuple(reshape(b, tensor, b.output_meta(k).size) for k, tensor in enumerate(inputs))


def hstack(b: Builder, tensors: tuple[Tensor, ...]) -> Tensor:
    ranked = tuple(_at_least_rank(b, tensor, 1) for tensor in tensors)
    return concat.cat(b, ranked, 0 if ranked[0].rank == 1 else 1)


def vstack(b: Builder, tensors: tuple[Tensor, ...]) -> Tensor:
    return concat.cat(b, tuple(_at_least_rank(b, tensor, 2) for tensor in tensors), 0)


def dstack(b: Builder, tensors: tuple[Tensor, ...]) -> Tensor:
    return concat.cat(b, tuple(_at_least_rank(b, tensor, 3) for tensor in tensors), 2)


def column_stack(b: Builder, tensors: tuple[Tensor, ...]) -> Tensor:
    def column(tensor: Tensor) -> Tensor:
        return tensor if tensor.rank > 1 else reshape(b, tensor, (product(tensor.size), _ONE))

    return concat.cat(b, tuple(map(column, tensors)), 1)


def block_diag(b: Builder, tensors: tuple[Tensor, ...]) -> Tensor:
    """Block diagonal matrix: each matrix to the right of and below the one before it, zeros
    elsewhere."""
    meta = b.output_meta()
    blocks = [_at_least_rank(b, tensor, 2) for tensor in tensors]
    corners = [(_ZERO, _ZERO)]
    for block in blocks:
        corners.append((corners[-1][0] + block.size[0], corners[-1][1] + block.size[1]))

    def read(i: Index) -> Value:
        value: Value = const(0, meta.dtype)
        for block, corner in zip(blocks, corners[:-1], strict=True):
            local_index = (i[0] - corner[0], i[1] - corner[1])
            conditions = []
            for x, extent in zip(local_index, block.size, strict=True):
                conditions += [index_value(x) >= index_value(0)]
                conditions += [trees.less_than(x, extent)]
            element = upcast(block.at(local_index), meta.dtype)
            value = trees.masked_value(trees.all_of(*conditions), element, value)
        return value

    b.check_output_shape(corners[-1])
    return materialize(b, Tensor(meta.size, meta.dtype, read))


def chunk_cat(b: Builder, tensors: tuple[Tensor, ...], dim: int, num_chunks: int) -> Tensor:
    """Split each tensor into ``num_chunks`` chunks along ``dim``, padded with zeros, and
    concatenate the tensors chunk by chunk."""
    meta = b.output_meta()
    axis = normalize_dim(dim, tensors[0].rank)
    chunks = as_expr(num_chunks)
    flat_chunks = []
    for tensor in tensors:
        rows = FloorDiv(tensor.size[axis] + chunks - 1, chunks)

        def read(i: Index, tensor: Tensor = tensor, rows: Expr = rows) -> Value:
            row, *trailing = scatter.unflatten_index(i[-1], (rows, *tensor.size[axis + 1 :]))
            position = i[axis] * rows + row
            value = upcast(tensor.at((*i[:axis], position, *trailing)), meta.dtype)
            is_inside = trees.less_than(position, tensor.size[axis])
            return trees.masked_value(is_inside, value, const(0, meta.dtype))

        size = (*tensor.size[:axis], chunks, rows * product(tensor.size[axis + 1 :]))
        flat_chunks.append(Tensor(size, meta.dtype, read))
    result = concat.concatenate(flat_chunks, axis + 1, meta.dtype)
    b.check_output_shape(result.size)
    return materialize(b, result)


def flatten_dense_tensors(b: Builder, tensors: tuple[Tensor, ...]) -> Tensor:
    """All elements, one tensor after the other."""
    dtype = b.output_meta().dtype
    result = concat.concatenate(
        [reshape(b, tensor, (product(tensor.size),)) for tensor in tensors], 0, dtype
    )
    b.check_output_shape(result.size)
    return materialize(b, result)


def cartesian_prod(b: Builder, tensors: tuple[Tensor, ...]) -> Tensor:
    """Rows are all combinations of one element of each tensor; the last tensor's varies fastest."""
    if len(tensors) == 1:
        return tensors[0]
    rows = b.output_meta().size[0]
    columns = []
    for k, tensor in enumerate(tensors):
        repeats = product(tuple(t.size[0] for t in tensors[k + 1 :]))

        def index(i: Index, extent: Expr = tensor.size[0], repeats: Expr = repeats) -> Index:
            return (Mod(FloorDiv(i[0], repeats), extent),)

        columns.append(tensor.view((rows, _ONE), index))
    return concat.cat(b, tuple(columns), 1)


# Channel shuffles.


def pixel_unshuffle(b: Builder, self: Tensor, downscale_factor: int) -> Tensor:
    *leading, channels, height, width = self.size
    factor = as_expr(downscale_factor)
    n = len(leading)
    split_size = (FloorDiv(height, factor), factor, FloorDiv(width, factor), factor)
    split = reshape(b, self, (*leading, channels, *split_size))
    permuted = permute(split, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return reshape(b, permuted, b.output_meta().size)


def channel_shuffle(b: Builder, self: Tensor, groups: int) -> Tensor:
    batch, channels, *spatial = self.size
    group_count = as_expr(groups)
    split = reshape(b, self, (batch, group_count, FloorDiv(channels, group_count), *spatial))
    return reshape(b, views.transpose(split, 1, 2), self.size)


def take(b: Builder, self: Tensor, index: Tensor) -> Tensor:
    """Elements at positions of the flattened tensor."""
    meta = b.output_meta()
    count = product(self.size)
    flat = reshape(b, self, (count,))

    def read(i: Index) -> Value:
        return b.indirect(index, i, count, lambda x: flat.at((x,)))

    return materialize(b, Tensor(meta.size, meta.dtype, read))


def vander(b: Builder, x: Tensor, increasing: bool = False, **_: Any) -> Tensor:
    """Column j is ``x`` to the power j, counted from the last column unless ``increasing``."""
    meta = b.output_meta()

    def read(i: Index) -> Value:
        power = i[1] if increasing else meta.size[1] - 1 - i[1]
        exponent = upcast(index_value(power), meta.dtype)
        return call("pow", upcast(x.at(i[:1]), meta.dtype), exponent)

    return materialize(b, Tensor(meta.size, meta.dtype, read))


def matrix_power(b: Builder, self: Tensor, n: int) -> Tensor:
    """Matrix power by repeated squaring; an inverse has no kernel."""
    meta = b.output_meta()
    if not isinstance(n, int) or n < 0:
        raise Unsupported(FACTORS.reason)  # a negative power needs an inverse
    if n == 0:

        def unit(i: Index) -> Value:
            is_diagonal = trees.equal(i[-1], i[-2])
            return call("where", is_diagonal, const(1, meta.dtype), 0)

        return materialize(b, Tensor(meta.size, meta.dtype, unit))
    result: Tensor | None = None
    square = self
    while n:
        if n & 1:
            result = square if result is None else _matrix_product(b, result, square)
        n >>= 1
        square = _matrix_product(b, square, square) if n else square
    assert result is not None
    return result


def _matrix_product(b: Builder, left: Tensor, right: Tensor) -> Tensor:
    return matmul.product(b, "mm", left, right, left.size, left.dtype, None)


def sum_to_size(b: Builder, self: Tensor, **_: Any) -> Tensor:
    """Sum over the dimensions that the requested size lacks."""
    meta = b.output_meta()
    leading_rank = self.rank - len(meta.size)
    dims = tuple(
        d
        for d in range(self.rank)
        if d < leading_rank or (meta.size[d - leading_rank] == 1 != self.size[d])
    )
    if not dims:
        return convert_result(b, self)
    summed = reductions.sum_over(b, self, dims, dtype=meta.dtype)
    return reshape(b, summed, meta.size)


def unsafe_masked_index(
    b: Builder, self: Tensor, mask: Tensor, indices: tuple[Tensor | None, ...], fill: Any
) -> Tensor:
    """Elements where the mask holds, ``fill`` elsewhere; only elements under the mask are read."""
    meta = b.output_meta()
    selected = indexing.index_op(b, self, indices)
    is_selected = views.broadcast(mask, meta.size)

    def read(i: Index) -> Value:
        condition = upcast(is_selected.at(i), DType.BOOL)
        return trees.masked_value(condition, selected.at(i), const(fill, meta.dtype))

    return materialize(b, Tensor(meta.size, meta.dtype, read))
