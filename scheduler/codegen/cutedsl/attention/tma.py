"""The accesses that the tensor memory accelerator (TMA) can make: tiles of rows in a buffer.

A TMA tensor has a contiguous dimension and strides that are multiples of 16 bytes (CUDA driver API,
cuTensorMapEncodeTiled). Here it is (row, depth, place): the third dimension counts 16 bytes from
the buffer's beginning, so that a batch entry may begin at any index expression.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy

from scheduler.codegen.attention import without_widening
from scheduler.codegen.loops.nest import Access, LoopNest
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.bounds import bounds
from scheduler.ir.index.facts import is_multiple
from scheduler.ir.operations import Axis, Buffer
from scheduler.ir.values import Accumulator, Cast, Load

_BYTES = 16


@dataclass(frozen=True)
class Tiles:
    """Rows of a buffer, ``step`` elements from one to the next; a batch entry's first element has
    the index ``first``, an expression of the batch's variables. Both are multiples of 16 bytes."""

    buffer: Buffer
    step: Expr
    first: Expr

    @property
    def offset_16_bytes(self) -> Expr:
        """Return the offset of a batch entry's first element, in units of 16 bytes."""
        return self.first / sympy.Integer(elements_per_16_bytes(self.buffer.dtype))

    @property
    def extent(self) -> Expr:
        """Return the number of elements that the buffer's memory spans."""
        buffer = self.buffer
        steps = zip(buffer.size, buffer.stride, strict=True)
        return sympy.Add(*((size - 1) * step for size, step in steps), 1)


def elements_per_16_bytes(dtype: DType) -> int:
    """Return the number of elements in 16 bytes."""
    return _BYTES // dtype.itemsize


def read_tiles(nest: LoopNest, row: Axis, depth: Axis, dtype: DType) -> Tiles | str:
    """Return the reads of one operand's nest as tiles; otherwise the reason, in words that may
    appear in the source: they contain no name of the model's."""
    (statement,) = nest.statements
    value = without_widening(statement.value)
    if not isinstance(value, Load):
        return "it is computed"
    if value.indirect:
        return "its place is read from memory"
    if value.dtype is not dtype:
        return f"it is {value.dtype.label} in memory"
    return _tiles(nest, nest.access(value.buffer, value.index), row, depth)


def written_tiles(nest: LoopNest, row: Axis, depth: Axis, dtype: DType) -> Tiles | str:
    """Return the writes of the stores' nest as tiles; otherwise the reason why they are not."""
    if len(nest.statements) != 1:
        return "several results are stored"
    (statement,) = nest.statements
    value = statement.value
    while isinstance(value, Cast) and value.dtype in (dtype, dtype.compute_dtype):
        value = value.value
    if not isinstance(value, Accumulator):
        return "more than the result is computed"
    store = statement.store
    if nest.buffer(store.buffer).dtype is not dtype:
        return f"it is {nest.buffer(store.buffer).dtype.label} in memory"
    return _tiles(nest, nest.access(store.buffer, store.index), row, depth)


def _tiles(nest: LoopNest, access: Access, row: Axis, depth: Axis) -> Tiles | str:
    offset, buffer = access.offset, nest.buffer(access.buffer)
    row_step, depth_step = offset.step(row.var), offset.step(depth.var)
    if row_step is None or depth_step is None:
        return "an index divides its rows or its depth"
    if depth.size != 1 and depth_step != 1:
        return "its depth does not run on in memory"
    unit = elements_per_16_bytes(buffer.dtype)
    if row.size == 1:
        row_step = sympy.Integer(unit)
    elif not is_multiple(row_step, unit) or bounds(row_step, nest.ranges)[0] < unit:
        return "its rows do not begin at multiples of 16 bytes"
    inner_vars = {row.var, depth.var}
    batch_terms = [
        *(var * step for var, step in offset.coefficients.items() if var not in inner_vars),
        *sympy.Add.make_args(offset.rest),
    ]
    if not all(is_multiple(term, unit) for term in batch_terms):
        return "its batch entries do not begin at multiples of 16 bytes"
    return Tiles(buffer, row_step, sympy.Add(*batch_terms))
