"""The result of lowering a graph: operations over buffers, in order.

An operation has loop axes and value trees over them (``ir/values.py``), and provides the
information that the passes need (``base.Operation``). Every operation writes whole buffers; nothing
aliases, because views are index expressions and in-place forms were made functional. Each has the
names of the graph nodes that it computes.
"""

from scheduler.ir.operations.attention import Attention
from scheduler.ir.operations.base import (
    Axes,
    Axis,
    GroupKind,
    OperandView,
    Operation,
    Products,
    Store,
    buffer_size_symbol,
    live_operations,
    numel,
    size_buffer_name,
)
from scheduler.ir.operations.contraction import Contraction
from scheduler.ir.operations.extern import Extern
from scheduler.ir.operations.loop_markers import (
    END_SUFFIX,
    LoopBegin,
    LoopEnd,
    borrowed_buffers,
    loop_spans,
    unshared_buffers,
)
from scheduler.ir.operations.loops import Pointwise, Reduction, ReductionKind, Scan
from scheduler.ir.operations.lowered import Assertion, Buffer, BufferKind, Lowered
from scheduler.ir.operations.scatter import ATOMIC, COMBINES, Scatter
from scheduler.ir.operations.sort import Sort

__all__ = [
    "ATOMIC",
    "COMBINES",
    "END_SUFFIX",
    "Assertion",
    "Attention",
    "Axes",
    "Axis",
    "Buffer",
    "BufferKind",
    "Contraction",
    "Extern",
    "GroupKind",
    "LoopBegin",
    "LoopEnd",
    "Lowered",
    "OperandView",
    "Operation",
    "Pointwise",
    "Products",
    "Reduction",
    "ReductionKind",
    "Scan",
    "Scatter",
    "Sort",
    "Store",
    "borrowed_buffers",
    "buffer_size_symbol",
    "live_operations",
    "loop_spans",
    "numel",
    "size_buffer_name",
    "unshared_buffers",
]
