"""Building blocks for composite ops: values that are computed where they are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.values import Value
from scheduler.lowering.pointwise import Argument, element
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.views import broadcast

Size: TypeAlias = tuple[Expr, ...]


def broadcast_size(sizes: Sequence[Size]) -> Size:
    """The broadcast of the shapes; of two extents other than 1, the first one's."""
    rank = max(map(len, sizes), default=0)
    wide: list[Expr] = []
    for place in range(-rank, 0):
        extents = [size[place] for size in sizes if len(size) >= -place]
        wide.append(next((extent for extent in extents if extent != 1), extents[0]))
    return tuple(wide)


def lazy_elementwise(
    args: Sequence[Argument], function: Callable[..., Value], dtype: DType, size: Size | None = None
) -> Tensor:
    """``function`` of the arguments' elements, each converted to ``dtype``, without memory: readers
    compute it. ``size`` defaults to the broadcast of the arguments."""
    if size is None:
        size = broadcast_size([arg.size for arg in args if isinstance(arg, Tensor)])
    shape = size
    wide = [broadcast(arg, shape) if isinstance(arg, Tensor) else arg for arg in args]

    def read(index: Index) -> Value:
        return function(*(element(arg, index, dtype) for arg in wide))

    return Tensor(shape, dtype, read)
