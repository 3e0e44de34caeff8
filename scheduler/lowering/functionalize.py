"""Make in-place ops functional by updating every value that shares the written memory.

torch's views share memory; lowered values never do. After an in-place op the written tensor's
memory is a new buffer that holds the new elements where the written view lies, and every value that
shared the old memory reads the new buffer.
"""

from __future__ import annotations

from collections.abc import Mapping

import sympy

from scheduler.ir.graph import Expr
from scheduler.ir.index.affine import affine
from scheduler.ir.index.facts import is_equal
from scheduler.ir.index.functions import FloorDiv, Mod, as_expr
from scheduler.ir.index.simplify import simplify
from scheduler.ir.operations import Axis
from scheduler.ir.values import Load, Value, call, index_value, upcast
from scheduler.lowering import layout, trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.tensor import Index, Tensor

_ZERO = sympy.Integer(0)


def propagate_write(
    b: Builder, sharing: Mapping[str, Tensor], view: Tensor, result: Tensor
) -> dict[str, Tensor]:
    """The values of ``sharing`` after ``result`` was written to ``view``, which is one of them.

    Raises ``Unsupported`` if the elements of the view cannot be distinguished from the others.
    """
    axes, index = b.loops(view.size, "i")
    element = view.at(index)
    if not isinstance(element, Load) or element.indirect:
        raise Unsupported("its target is not a view of memory")
    base = b.tensor(b.buffers[element.buffer])
    view_index = tuple(simplify(i, b.sizes.over(axes)) for i in element.index)
    unsupported_names = [
        name for name, tensor in sharing.items() if not _is_view_of(b, tensor, base)
    ]
    if unsupported_names:
        raise Unsupported(f"how {unsupported_names[0]!r} shares its memory is not supported")

    if view.buffer:  # the whole memory: the result is the new memory
        new = b.realize(result)
        return {name: _rebase(tensor, base, new) for name, tensor in sharing.items()}

    def read(memory_index: Index) -> Value:
        try:
            is_in_view, view_positions = _position(memory_index, view_index, axes, base.size)
        except Unsupported:
            is_in_view, view_positions = _flat_position(
                b, memory_index, view_index, axes, base.size
            )
        position_of_var = {axis.var: i for axis, i in view_positions.items()}
        return trees.masked_value(
            is_in_view,
            upcast(result.at(tuple(position_of_var.get(i, i) for i in index)), base.dtype),
            base.at(memory_index),
        )

    new = b.pointwise(base.size, base.dtype, read)
    return {name: _rebase(tensor, base, new) for name, tensor in sharing.items()}


def _is_view_of(b: Builder, tensor: Tensor, base: Tensor) -> bool:
    _, index = b.loops(tensor.size, "i")
    value = tensor.at(index)
    return isinstance(value, Load) and value.buffer == base.buffer and not value.indirect


def _rebase(tensor: Tensor, base: Tensor, new: Tensor) -> Tensor:
    """The tensor with the same elements of another base."""
    if tensor.buffer == base.buffer:
        return Tensor(tensor.size, tensor.dtype, new.at, new.buffer)

    def at(index: Index) -> Value:
        value = tensor.at(index)
        assert isinstance(value, Load)
        return new.at(value.index)

    return Tensor(tensor.size, tensor.dtype, at, "", tensor.nodes)


def _position(
    memory_index: Index, view_index: Index, axes: tuple[Axis, ...], size: tuple[Expr, ...]
) -> tuple[Value, dict[Axis, Expr]]:
    """Whether an element of the memory is in a view, and the view's loop value at each axis.

    ``view_index`` is the position of the view's element; each component must be a number, or steps
    along one axis.
    """
    conditions: list[Value] = []
    positions: dict[Axis, Expr] = {}
    for i, expr, extent in zip(memory_index, view_index, size, strict=True):
        form = affine(expr, {axis.var for axis in axes})
        if form is None:
            raise Unsupported(f"it writes to a view at {expr}, which cannot be inverted")
        moving_axes = [(axis, form.at(axis.var)) for axis in axes if form.at(axis.var) != 0]
        offset = i - form.rest
        if not moving_axes:
            conditions.append(trees.equal(offset, 0))
            continue
        if len(moving_axes) > 1 or not moving_axes[0][1].is_Integer:
            raise Unsupported(f"it writes to a view at {expr}, which cannot be inverted")
        axis, step = moving_axes[0]
        if step < 0:
            offset, step = -offset, -step
        position = FloorDiv(offset, step) if step != 1 else offset
        if axis in positions:  # a diagonal: on it if both dimensions name the same element
            zero = index_value(0)
            conditions.append(call("eq", index_value(position - positions[axis]), zero))
        positions[axis] = position
        if step != 1:
            zero = index_value(0)
            conditions.append(call("eq", index_value(Mod(offset, as_expr(step))), zero))
        if offset != i or step != 1 or not is_equal(axis.size, extent):
            conditions.append(index_value(offset) >= index_value(0))
            conditions.append(trees.less_than(positions[axis], axis.size))
    for axis in axes:
        if axis not in positions and axis.size != 1:
            raise Unsupported("it writes to an expanded view")
        positions.setdefault(axis, _ZERO)
    return trees.all_of(*conditions), positions


def _flat_position(
    b: Builder,
    memory_index: Index,
    view_index: Index,
    axes: tuple[Axis, ...],
    size: tuple[Expr, ...],
) -> tuple[Value, dict[Axis, Expr]]:
    """``_position`` for a view whose shape differs from its memory's, by row-major position.
    The position must be a sum of steps along the axes, each longer than the total of the inner
    ones."""
    strides = layout.contiguous_strides(size)
    flat_position = simplify(_dot(view_index, strides), b.sizes.over(axes))
    form = affine(flat_position, {axis.var for axis in axes})
    steps = [(axis, form.at(axis.var)) for axis in axes] if form is not None else []
    if form is None or not all(step.is_Integer and axis.size.is_Integer for axis, step in steps):
        raise Unsupported(f"it writes to a view at {flat_position}, which cannot be inverted")
    steps.sort(key=lambda pair: -abs(int(pair[1])))
    inner_extent = 0
    for axis, step in reversed(steps):
        if step <= inner_extent:
            raise Unsupported("it writes to an expanded, transposed or overlapping view")
        inner_extent += int(step) * (int(axis.size) - 1)
    remainder: Expr = _dot(memory_index, strides) - form.rest
    conditions = [index_value(remainder) >= index_value(0)]
    positions: dict[Axis, Expr] = {}
    for axis, step in steps:
        positions[axis] = FloorDiv(remainder, step) if step != 1 else remainder
        remainder = Mod(remainder, as_expr(step)) if step != 1 else _ZERO
        conditions.append(trees.less_than(positions[axis], axis.size))
    conditions.append(trees.equal(remainder, 0))
    return trees.all_of(*conditions), positions


def _dot(index: Index, strides: Index) -> Expr:
    return sympy.Add(*(i * step for i, step in zip(index, strides, strict=True)))
