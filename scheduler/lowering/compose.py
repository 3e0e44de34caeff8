"""Building blocks for composite ops: values that are computed where they are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.values import Value
from scheduler.lowering.layout import broadcast_size
from scheduler.lowering.pointwise import Argument, element
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.views import broadcast


def lazy_elementwise(
    args: Sequence[Argument],
    function: Callable[..., Value],
    dtype: DType,
    size: tuple[Expr, ...] | None = None,
) -> Tensor:
    """``function`` of the arguments' elements, each converted to ``dtype``, without memory: readers
    compute it. ``size`` defaults to the broadcast of the arguments."""
    if size is None:
        size = broadcast_size([arg.size for arg in args if isinstance(arg, Tensor)])
    result_size = size
    operands = [broadcast(arg, result_size) if isinstance(arg, Tensor) else arg for arg in args]

    def read(index: Index) -> Value:
        return function(*(element(arg, index, dtype) for arg in operands))

    return Tensor(result_size, dtype, read)
