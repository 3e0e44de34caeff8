"""Strided views of memory: as_strided, and writes through them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy

from scheduler.ir.check import node_references
from scheduler.ir.graph import Expr, TensorMeta
from scheduler.ir.index.facts import is_equal, is_nonnegative
from scheduler.ir.index.functions import as_expr
from scheduler.ir.index.simplify import product
from scheduler.lowering import layout
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.pointwise import materialize
from scheduler.lowering.scatter import flatten_index, overwrite, unflatten_index
from scheduler.lowering.tensor import Index, Tensor


def as_strided(
    b: Builder, self: Tensor, size: Any, stride: Any, storage_offset: Any = None
) -> Tensor:
    """out[i] = memory[offset + sum of i * stride]"""
    flat = _flat_memory(b, self)
    offset_at = _strided_offset(b, flat, size, stride, storage_offset)
    return flat.view(tuple(map(as_expr, size)), lambda i: (offset_at(i),))


def resize(b: Builder, self: Tensor, memory_format: Any = None, **_: Any) -> Tensor:
    """The elements in memory order, as many as the new shape has, in its row-major order."""
    size = b.output_meta().size
    if memory_format is not None:
        raise Unsupported("resizing a tensor to another memory format is not supported")
    if size == self.size:
        return self
    return as_strided(b, self, size, layout.contiguous_strides(size))


def as_strided_scatter(
    b: Builder, self: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: Any = None
) -> Tensor:
    """A copy of ``self`` with ``src`` written through a strided view; if positions repeat, the last
    write wins."""
    flat = _flat_memory(b, self)
    offset_at = _strided_offset(b, flat, size, stride, storage_offset)
    result = overwrite(b, flat, (0,), src.size, lambda n: (offset_at(n),), lambda n, _: src.at(n))
    order = _memory_order(b, _meta(b))

    def flat_position(i: Index) -> Index:
        return (flatten_index([i[d] for d in order], [self.size[d] for d in order]),)

    return materialize(b, result.view(self.size, flat_position))


def _meta(b: Builder) -> TensorMeta:
    """The meta of the op's tensor. Raises ``Unsupported`` if it is a view of part of its memory,
    because a graph does not state the offset."""
    assert b.node is not None
    name = next(node_references(b.node))
    meta, memory = b.graph.tensors[name], b.graph.tensors[b.memory_of(name)]
    if not is_equal(product(meta.size), product(memory.size)):
        raise Unsupported("a strided view of a tensor that is part of its memory is not supported")
    if not b.knows_strides(name):
        raise Unsupported(
            "a strided view of memory whose order the file does not define is not supported"
        )
    return meta


def _memory_order(b: Builder, meta: TensorMeta) -> list[int]:
    """The dimensions in memory order, largest stride first. Raises ``Unsupported`` for gaps."""
    dims = [d for d in range(len(meta.size)) if meta.size[d] != 1]
    ordered = sorted(dims, key=lambda d: (-layout.size_hint(meta.stride[d], b.hints), d))
    strides = layout.permuted_strides(meta.size, ordered)
    if not layout.is_same_layout(meta.size, meta.stride, strides):
        raise Unsupported("a strided view of memory with gaps or shared elements is not supported")
    return ordered


def _flat_memory(b: Builder, tensor: Tensor) -> Tensor:
    """The tensor's memory as one dimension."""
    order = _memory_order(b, _meta(b))
    sizes = tuple(tensor.size[d] for d in order)

    def index(i: Index) -> Index:
        index_of_dim = dict(zip(order, unflatten_index(i[0], sizes), strict=True))
        return tuple(index_of_dim.get(d, sympy.Integer(0)) for d in range(tensor.rank))

    return tensor.view((product(tensor.size),), index)


def _strided_offset(
    b: Builder, flat: Tensor, size: Any, stride: Any, offset: Any
) -> Callable[[Index], Expr]:
    """A function from an index of the view to its position in memory. Raises ``Unsupported`` unless
    the view provably stays inside the memory."""
    sizes, strides = tuple(map(as_expr, size)), tuple(map(as_expr, stride))
    first = as_expr(offset or 0)

    def position(index: Index) -> Expr:
        return first + sympy.Add(*(i * step for i, step in zip(index, strides, strict=True)))

    distance_to_end = flat.size[0] - 1 - position(tuple(extent - 1 for extent in sizes))
    is_inside = all(is_nonnegative(expr, b.sizes) for expr in (first, *strides, distance_to_end))
    if not is_inside and not any(extent == 0 for extent in sizes):
        raise Unsupported("a strided view that may leave its memory is not supported")
    return position
