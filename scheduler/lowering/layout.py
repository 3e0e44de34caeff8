"""Strides: choose them for the engine's buffers, and analyse them along loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import sympy

from scheduler.ir.graph import Expr
from scheduler.ir.index.affine import affine
from scheduler.ir.index.facts import is_equal
from scheduler.ir.index.functions import FloorDiv, Mod, evaluate, variable
from scheduler.ir.index.simplify import product
from scheduler.ir.operations import Axis

_ONE, _ZERO = sympy.Integer(1), sympy.Integer(0)
_MAX_SIZE_CHARS = 40  # characters of a size in a message


@lru_cache(maxsize=4096)
def contiguous_strides(size: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Row-major strides in elements."""
    return tuple(product(size[d + 1 :]) for d in range(len(size)))


def size_hint(expr: Expr, hints: Mapping[str, int]) -> int:
    """The value of an expression at the example's sizes."""
    return evaluate(expr, dict(hints))


def format_shape(size: Sequence[Expr]) -> str:
    """A shape formatted for messages."""
    texts = [str(extent) for extent in size]
    shortened = [
        text if len(text) <= _MAX_SIZE_CHARS else f"{text[: _MAX_SIZE_CHARS - 3]}..."
        for text in texts
    ]
    return f"[{', '.join(shortened)}]"


def dense_strides(
    size: tuple[Expr, ...], stride: tuple[Expr, ...], hints: Mapping[str, int]
) -> tuple[Expr, ...]:
    """``stride`` if it is a permutation without gaps; otherwise row-major strides."""
    if stride == contiguous_strides(size):
        return stride
    dims = [d for d in range(len(size)) if size[d] != 1]
    ordered = sorted(dims, key=lambda d: (-size_hint(stride[d], hints), d))
    strides = permuted_strides(size, ordered)
    return strides if is_same_layout(size, stride, strides) else contiguous_strides(size)


def is_same_layout(
    size: Sequence[Expr], left_strides: Sequence[Expr], right_strides: Sequence[Expr]
) -> bool:
    """Whether two strides give the same layout; the stride of a dimension of one element is
    ignored."""
    return all(
        is_equal(left, right)
        for extent, left, right in zip(size, left_strides, right_strides, strict=True)
        if extent != 1
    )


def permuted_strides(size: tuple[Expr, ...], order: Sequence[int]) -> tuple[Expr, ...]:
    """Strides without gaps for dimensions in memory ``order``, slowest first.

    Dimensions of one element are not in ``order``; their stride is arbitrary and set to that of the
    whole tensor.
    """
    strides = [product(size)] * len(size)
    step: Expr = _ONE
    for d in reversed(order):
        strides[d] = step
        step = product((step, size[d]))
    return tuple(strides)


def merge_axes(
    axes: Sequence[Axis], offsets: Sequence[Expr], name: str
) -> tuple[tuple[Axis, ...], dict[sympy.Symbol, Expr]]:
    """Merge neighbouring axes where every one of ``offsets`` is contiguous across them.

    Returns the new axes (``name`` with a number) and, for each old variable, its expression. Axes
    of one step are removed (one is kept if there is no other).
    """
    exprs: dict[sympy.Symbol, Expr] = {a.var: _ZERO for a in axes if a.size == 1}
    long_axes = [a for a in axes if a.size != 1]
    forms = [affine(expr, {axis.var for axis in long_axes}) for expr in offsets]
    groups: list[list[int]] = []
    for j, axis in enumerate(long_axes):
        can_merge = groups and all(
            form is not None and form.can_merge(long_axes[j - 1].var, axis.var, axis.size)
            for form in forms
        )
        if can_merge:
            groups[-1].append(j)
        else:
            groups.append([j])
    merged = []
    for number, group in enumerate(groups):
        sizes = tuple(long_axes[j].size for j in group)
        var = variable(name, number)
        merged.append(Axis(var, product(sizes)))
        for position, j in enumerate(group):
            inner = product(sizes[position + 1 :])
            var_of_axis = FloorDiv(var, inner)
            exprs[long_axes[j].var] = (
                var_of_axis if position == 0 else Mod(var_of_axis, long_axes[j].size)
            )
    if not merged:
        merged.append(Axis(variable(name, 0), _ONE))
    return tuple(merged), exprs


def broadcast_size(sizes: Sequence[Sequence[Expr]]) -> tuple[Expr, ...]:
    """The broadcast of the shapes; of two extents other than 1, the first one's."""
    rank = max(map(len, sizes), default=0)
    extents_of_result: list[Expr] = []
    for dim in range(-rank, 0):
        extents = [size[dim] for size in sizes if len(size) >= -dim]
        extents_of_result.append(next((extent for extent in extents if extent != 1), extents[0]))
    return tuple(extents_of_result)
