"""Build a loop over operations while the graph is lowered: its carried values and its slices.

Creating a ``Loop`` starts it; everything lowered afterwards is its body, until ``end``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.facts import is_multiple
from scheduler.ir.index.functions import FloorDiv, as_expr
from scheduler.ir.index.simplify import product, simplify
from scheduler.ir.operations import END_SUFFIX, BufferKind, LoopBegin, LoopEnd
from scheduler.lowering import layout, trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.tensor import Tensor

#: Alignment of slices: kernels read this many bytes at once.
ALIGNED_BYTES = 16
_ZERO, _ONE = sympy.Integer(0), sympy.Integer(1)


@dataclass(frozen=True)
class LoopResult:
    """The results of a loop: the final carried values, and the slices stacked to tensors."""

    carried: tuple[Tensor, ...]
    stacked: tuple[Tensor, ...]


class Loop:
    """A loop under construction. ``carried`` are the carried values inside a step, ``sliced`` the
    step's slices."""

    carried: tuple[Tensor, ...]
    sliced: tuple[Tensor, ...]

    def __init__(
        self,
        b: Builder,
        init: Sequence[Tensor],
        xs: Sequence[Tensor] = (),
        *,
        steps: Expr | None = None,
        first: int = 0,
        condition: Tensor | None = None,
    ) -> None:
        """``init`` must be in memory owned by the loop (``row_major_copy``). Either ``steps`` or
        ``condition``, one boolean, determines the number of steps; ``first`` is the slice of the
        first step."""
        assert (steps is None) is not (condition is None)
        assert b.node is not None
        self._b = b
        self._steps = steps
        self.carried = tuple(_buffer(b, x.size, x.dtype) for x in init)
        sliceable_inputs = [_sliceable(b, x) for x in xs]
        self.sliced = tuple(
            _buffer(b, x.size[1:], x.dtype, b.buffers[x.buffer].stride[1:])
            for x in sliceable_inputs
        )
        self._begin = LoopBegin(
            name=b.operation_name(),
            op=b.node.target,
            node=(b.outer or b.node).name,
            steps=steps,
            condition="" if condition is None else condition.buffer,
            carried=tuple((x.buffer, y.buffer) for x, y in zip(init, self.carried, strict=True)),
            slices=tuple(
                (x.buffer, y.buffer) for x, y in zip(sliceable_inputs, self.sliced, strict=True)
            ),
            first=first,
            nodes=b.nodes,
        )
        b.add(self._begin)
        self._start = len(b.operations)
        self._used: set[str] = set()

    def copy_unshared(self, tensor: Tensor) -> Tensor:
        """A result of the body in memory that nothing else in the loop uses."""
        result = {
            store.buffer for op in self._b.operations[self._start :] for store in op.results
        } - self._used
        rows = layout.contiguous_strides(tensor.size)
        if tensor.buffer not in result or self._b.buffers[tensor.buffer].stride != rows:
            tensor = row_major_copy(self._b, tensor)
        self._used.add(tensor.buffer)
        return tensor

    def end(
        self,
        carried: Sequence[Tensor],
        slices: Sequence[Tensor] = (),
        condition: Tensor | None = None,
    ) -> LoopResult:
        """End the body: the values carried to the next step, the step's slices, and whether
        to continue.

        ``carried`` and ``slices`` are results of ``row_major_copy``.
        """
        b = self._b
        carried_buffers = tuple(_buffer(b, x.size, x.dtype) for x in carried)
        steps = self._steps
        stacked = []
        for x in slices if steps is not None else ():
            stride = (_stride(x.size, x.dtype), *layout.contiguous_strides(x.size))
            stacked.append(_buffer(b, (steps, *x.size), x.dtype, stride))
        b.add(
            LoopEnd(
                name=self._begin.name + END_SUFFIX,
                begin=self._begin,
                condition="" if condition is None else condition.buffer,
                carried=tuple(
                    (x.buffer, y.buffer) for x, y in zip(carried, carried_buffers, strict=True)
                ),
                slices=tuple((x.buffer, y.buffer) for x, y in zip(slices, stacked, strict=True)),
                nodes=self._begin.nodes,
            )
        )
        return LoopResult(carried_buffers, tuple(stacked))


def row_major_copy(b: Builder, tensor: Tensor) -> Tensor:
    """A row-major copy."""
    return b.pointwise(tensor.size, tensor.dtype, tensor.at, layout.contiguous_strides(tensor.size))


def condition_buffer(b: Builder, results: Sequence[Tensor]) -> Tensor:
    """The result of a condition's graph as a buffer of one boolean, which the host reads."""
    if len(results) != 1 or any(size != 1 for size in results[0].size):
        raise Unsupported("its condition is not a tensor of one element")
    (test,) = results
    if test.buffer and test.dtype is DType.BOOL:
        return test
    value = trees.cast(test.at((_ZERO,) * test.rank), DType.BOOL)
    return b.pointwise((), DType.BOOL, lambda _: value)


def _buffer(
    b: Builder, size: tuple[Expr, ...], dtype: DType, stride: tuple[Expr, ...] | None = None
) -> Tensor:
    rows = layout.contiguous_strides(size) if stride is None else stride
    return b.tensor(b.buffer(dtype, size, rows))


def _sliceable(b: Builder, x: Tensor) -> Tensor:
    """The tensor in memory where every slice is contiguous and aligned for kernels."""
    buffer = b.buffers.get(x.buffer)
    if buffer is not None and buffer.size == x.size:
        slice_strides = layout.dense_strides(x.size[1:], buffer.stride[1:], b.hints)
        is_aligned = is_multiple(buffer.stride[0] * x.dtype.itemsize, ALIGNED_BYTES)
        is_aligned_intermediate = buffer.kind is BufferKind.INTERMEDIATE and is_aligned
        is_packed = buffer.stride[0] == product(x.size[1:])
        if (
            slice_strides == buffer.stride[1:]
            and is_aligned
            and (is_packed or is_aligned_intermediate)
        ):
            return x
    stride = (_stride(x.size[1:], x.dtype), *layout.contiguous_strides(x.size[1:]))
    return b.pointwise(x.size, x.dtype, x.at, stride)


def _stride(size: tuple[Expr, ...], dtype: DType) -> Expr:
    """Elements between slices: the size of a slice, rounded up to the alignment."""
    count = product(size)
    unit = ALIGNED_BYTES // gcd(ALIGNED_BYTES, dtype.itemsize)
    if unit == 1 or is_multiple(count, unit):
        return count
    return simplify(FloorDiv(count + (unit - 1), as_expr(unit)) * unit)
