"""Decide when an op that may return a view does so, from sizes and strides, as torch does.

Each answer is None if it may differ between allowed sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, product

from scheduler.ir.graph import Expr, SymbolInfo, TensorMeta
from scheduler.ir.index.facts import is_equal
from scheduler.ir.index.functions import evaluate, is_unbacked
from scheduler.lowering import layout

Sizes = tuple[int, ...]

# Dimensions that form a channels-last format, innermost first.
_CHANNELS_LAST_ORDERS = {"channels_last": (1, 3, 2, 0), "channels_last_3d": (1, 4, 3, 2, 0)}
_MAX_SIZES = 64  # combinations of sizes that are tested


def can_be_viewed(
    tensor: TensorMeta, size: tuple[Expr, ...], symbols: Mapping[str, SymbolInfo]
) -> bool | None:
    """Whether ``reshape`` to ``size`` is a view (ATen's ``computeStride``)."""
    if layout.is_same_layout(tensor.size, tensor.stride, layout.contiguous_strides(tensor.size)):
        return True
    new_extents = [extent for extent in size if extent != 1]
    old_dims = [(n, step) for n, step in zip(tensor.size, tensor.stride, strict=True) if n != 1]
    if len(new_extents) == len(old_dims) and all(
        is_equal(new, old) for new, (old, _) in zip(new_extents, old_dims, strict=True)
    ):
        return True  # dimensions of one element can be added and removed
    return _at_all_sizes(
        lambda old, steps, new: _view_strides(old, steps, new) is not None,
        (tensor.size, tensor.stride, size),
        symbols,
    )


def is_contiguous(
    tensor: TensorMeta, memory_format: object, symbols: Mapping[str, SymbolInfo]
) -> bool | None:
    """Whether ``contiguous`` returns the tensor itself."""
    rank = len(tensor.size)
    order = _CHANNELS_LAST_ORDERS.get(str(memory_format), ())
    if memory_format in (None, "contiguous_format"):
        order = tuple(reversed(range(rank)))
    if len(order) != rank:
        return None
    return _at_all_sizes(
        lambda size, stride: _is_in_order(size, stride, order),
        (tensor.size, tensor.stride),
        symbols,
    )


def is_converted_in_place(
    tensor: TensorMeta, memory_format: object, symbols: Mapping[str, SymbolInfo]
) -> bool | None:
    """Whether ``to`` with the same type, without ``copy``, returns the tensor itself."""
    if memory_format in (None, "preserve_format"):
        return True
    return _at_all_sizes(
        lambda size, stride: _suggested_format(size, stride) == memory_format,
        (tensor.size, tensor.stride),
        symbols,
    )


def _at_all_sizes(
    function: Callable[..., bool],
    shapes: Sequence[tuple[Expr, ...]],
    symbols: Mapping[str, SymbolInfo],
) -> bool | None:
    """The result of ``function`` for these shapes at the minimum sizes, the example's and the
    next; None if the results differ."""
    names = sorted(
        {str(symbol) for shape in shapes for expr in shape for symbol in expr.free_symbols}
    )
    if any(is_unbacked(name) for name in names):
        return None
    results = {
        function(*(tuple(evaluate(expr, binding) for expr in shape) for shape in shapes))
        for binding in _bindings([symbols[name] for name in names])
    }
    return results.pop() if len(results) == 1 else None


def _bindings(symbols: Sequence[SymbolInfo]) -> Iterator[dict[str, int]]:
    choices = []
    for symbol in symbols:
        next_size = (
            symbol.hint + 1 if symbol.maximum is None else min(symbol.maximum, symbol.hint + 1)
        )
        choices.append(sorted({symbol.hint, symbol.minimum, max(symbol.minimum, next_size)}))
    names = [symbol.name for symbol in symbols]
    for values in islice(product(*choices), _MAX_SIZES):
        yield dict(zip(names, values, strict=True))


def _view_strides(old: Sizes, stride: Sizes, new: Sizes) -> Sizes | None:
    """The strides of ``new`` as a view of memory with ``old`` and ``stride``; None if only a copy
    can have that shape."""
    if 0 in old or not old:
        return tuple(0 for _ in new)
    new_strides = [0] * len(new)
    new_dim = len(new) - 1
    base_stride, old_elements, new_elements = stride[-1], 1, 1
    for d in reversed(range(len(old))):
        old_elements *= old[d]
        if d and (old[d - 1] == 1 or stride[d - 1] == old_elements * base_stride):
            continue  # the next dimension continues where this one ends
        while new_dim >= 0 and (new_elements < old_elements or new[new_dim] == 1):
            new_strides[new_dim] = new_elements * base_stride
            new_elements *= new[new_dim]
            new_dim -= 1
        if new_elements != old_elements:
            return None
        if d:
            base_stride, old_elements, new_elements = stride[d - 1], 1, 1
    return tuple(new_strides) if new_dim == -1 else None


def _is_in_order(size: Sizes, stride: Sizes, order: Sizes) -> bool:
    """Whether elements are contiguous with the dimensions in ``order``, innermost first."""
    step = 1
    for d in order:
        if size[d] != 1:
            if stride[d] != step and 0 not in size:
                return False
            step *= size[d]
    return True


def _suggested_format(size: Sizes, stride: Sizes) -> str:
    """ATen's ``suggest_memory_format``."""
    for name, order in _CHANNELS_LAST_ORDERS.items():
        if len(order) == len(size) and _is_channels_last(size, stride, order):
            return name
    return "contiguous_format"


def _is_channels_last(size: Sizes, stride: Sizes, order: Sizes) -> bool:
    """ATen's ``is_channels_last_strides``: strides increase along ``order``; gaps are allowed."""
    min_stride = 0
    if stride[1] == 0:
        return False
    for d in order:
        if size[d] == 0 or stride[d] < min_stride:
            return False
        if d == 0 and min_stride == stride[1]:
            return False  # one element everywhere except along the batch: either format
        min_stride = stride[d] * max(size[d], 1)
    return True
