"""What lowering makes of a graph: operations over buffers, in order.

An operation has loop axes and value trees over them (``ir/values.py``), and says of itself what
the passes need to know (``base.Operation``). Every operation writes whole buffers; nothing
aliases, because views are index expressions and in-place forms were made functional. Each keeps
the names of the graph nodes it computes.
"""

from scheduler.ir.operations.attention import Attention
from scheduler.ir.operations.base import (
    Axes,
    Axis,
    GroupKind,
    Operation,
    Products,
    Store,
    ViewOf,
    live,
    numel,
    size_buffer,
    size_of_buffer,
)
from scheduler.ir.operations.contraction import Contraction
from scheduler.ir.operations.extern import Extern
from scheduler.ir.operations.loop import (
    END_SUFFIX,
    LoopBegin,
    LoopEnd,
    borrowed,
    in_own_memory,
    spans,
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
    "Operation",
    "Pointwise",
    "Products",
    "Reduction",
    "ReductionKind",
    "Scan",
    "Scatter",
    "Sort",
    "Store",
    "ViewOf",
    "borrowed",
    "in_own_memory",
    "live",
    "numel",
    "size_buffer",
    "size_of_buffer",
    "spans",
]
