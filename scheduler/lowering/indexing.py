"""Select elements by index tensors: embedding, gather, index."""

from __future__ import annotations

from typing import Any

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.simplify import product
from scheduler.ir.values import Value, call, index_value, upcast
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.pointwise import materialize
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.views import broadcast, normalize_dim, reshape

_ZERO = sympy.Integer(0)


def embedding(b: Builder, weight: Tensor, indices: Tensor) -> Tensor:
    """out[i, d] = weight[indices[i], d]."""
    meta = b.output_meta()

    def read(index: Index) -> Value:
        return b.indirect(
            indices, index[:-1], weight.size[0], lambda row: weight.at((row, index[-1])), wrap=False
        )

    return materialize(b, Tensor(meta.size, meta.dtype, read))


def gather(b: Builder, self: Tensor, dim: int, index: Tensor) -> Tensor:
    """out[i] = self[i with index[i] along dim]."""
    meta = b.output_meta()
    axis = normalize_dim(dim, self.rank)

    def read(i: Index) -> Value:
        return b.indirect(
            index, i, self.size[axis], lambda x: self.at((*i[:axis], x, *i[axis + 1 :]))
        )

    if self.rank == 0 or 0 in meta.size:
        return materialize(
            b, Tensor(meta.size, meta.dtype, lambda _: self.at((_ZERO,) * self.rank))
        )
    return materialize(b, Tensor(meta.size, meta.dtype, read))


def take_along_dim(b: Builder, self: Tensor, indices: Tensor, dim: Any = None) -> Tensor:
    if dim is None:
        flat = reshape(b, self, (product(self.size),))
        return gather(b, flat, 0, reshape(b, indices, (product(indices.size),)))
    meta = b.output_meta()
    axis = normalize_dim(dim, self.rank)
    broadcast_indices = broadcast(indices, meta.size)
    source = broadcast(self, (*meta.size[:axis], self.size[axis], *meta.size[axis + 1 :]))
    return gather(b, source, axis, broadcast_indices)


def index_select(b: Builder, self: Tensor, dim: int, index: Tensor) -> Tensor:
    meta = b.output_meta()
    axis = normalize_dim(dim, self.rank)
    if self.rank == 0:
        return self
    positions = reshape(b, index, meta.size[axis : axis + 1])

    def read(i: Index) -> Value:
        return b.indirect(
            positions,
            i[axis : axis + 1],
            self.size[axis],
            lambda x: self.at((*i[:axis], x, *i[axis + 1 :])),
        )

    return materialize(b, Tensor(meta.size, meta.dtype, read))


def index_op(b: Builder, self: Tensor, indices: tuple[Tensor | None, ...]) -> Tensor:
    """NumPy indexing by integer tensors, which broadcast. Their dimensions replace the first
    indexed one if the indexed dimensions are adjacent; otherwise they come first."""
    indexed_dims = [d for d, t in enumerate(indices) if t is not None]
    tensors = [t for t in indices if t is not None]
    if any(t.dtype is DType.BOOL for t in tensors):
        raise Unsupported(
            "indexing by a mask is not supported: the size of its result depends on data"
        )
    meta = b.output_meta()
    width = max(t.rank for t in tensors)
    are_adjacent = indexed_dims == list(range(indexed_dims[0], indexed_dims[0] + len(indexed_dims)))
    first = indexed_dims[0] if are_adjacent else 0
    shape = meta.size[first : first + width]
    broadcast_indices = [broadcast(t, shape) for t in tensors]

    def read(i: Index) -> Value:
        tensor_index = i[first : first + width]
        other_indices = iter((*i[:first], *i[first + width :]))
        source_index: list[Expr | None] = [
            None if d in indexed_dims else next(other_indices) for d in range(self.rank)
        ]
        return _read_at_indices(
            b, self, indexed_dims, broadcast_indices, tensor_index, source_index
        )

    return materialize(b, Tensor(meta.size, meta.dtype, read))


def _read_at_indices(
    b: Builder,
    self: Tensor,
    dims: list[int],
    positions: list[Tensor],
    tensor_index: Index,
    source_index: list[Expr | None],
) -> Value:
    """Apply the index tensors one after the other; the innermost read has all positions."""
    if not dims:
        return self.at(tuple(i for i in source_index if i is not None))

    def step(x: Expr) -> Value:
        filled_index = [x if d == dims[0] else i for d, i in enumerate(source_index)]
        return _read_at_indices(b, self, dims[1:], positions[1:], tensor_index, filled_index)

    return b.indirect(positions[0], tensor_index, self.size[dims[0]], step)


def one_hot(b: Builder, self: Tensor, num_classes: int = -1) -> Tensor:
    meta = b.output_meta()
    if num_classes < 0:
        raise Unsupported("one_hot is not supported if the number of classes depends on data")

    def read(i: Index) -> Value:
        is_class = call("eq", upcast(self.at(i[:-1]), DType.I64), index_value(i[-1]))
        return upcast(is_class, DType.I64)

    return materialize(b, Tensor(meta.size, meta.dtype, read))
