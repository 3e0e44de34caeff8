"""Evaluate trees of operations in float64 with NumPy, vectorised over the operation's axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import sympy

from scheduler.ir import numerics
from scheduler.ir.bindings import Bindings
from scheduler.ir.dtypes import DType
from scheduler.ir.encoding import encode_values, round_to_dtype, widen
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import apply, evaluate
from scheduler.ir.operations import Axis, Lowered
from scheduler.ir.pointwise import FUNCTIONS, Result
from scheduler.ir.rounding_noise import RoundingNoise
from scheduler.ir.values import Accumulator, Call, Cast, Const, IndexValue, Load, Masked, Value

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True)
class Scope:
    """The environment in which a tree is evaluated.

    ``grid`` are the axes of the result, in order; a variable counts along its own. Under a mask,
    ``used`` states where the value is used: elsewhere an index may leave its buffer. ``errors``
    holds the errors of buffer elements; None if errors are not computed.
    """

    values: dict[str, Array]
    lowered: Lowered
    bindings: Bindings
    grid: tuple[Axis, ...] = ()
    accumulators: Mapping[str, Array] | None = None
    used: Array | None = None
    indirect: Mapping[str, Array] | None = None
    roundings: RoundingNoise | None = None
    errors: dict[str, Array] | None = None
    accumulator_errors: Mapping[str, Array] = field(default_factory=dict)

    def with_grid(self, *axes: Axis, **accumulators: Array) -> Scope:
        return replace(self, grid=axes, accumulators=accumulators)

    def size(self, axis: Axis) -> int:
        return evaluate(axis.size, self.bindings)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.size(axis) for axis in self.grid)

    def variable(self, name: str) -> Array | int:
        if self.indirect and name in self.indirect:
            return self.indirect[name]
        for position, axis in enumerate(self.grid):
            if axis.var.name == name:
                shape = [1] * len(self.grid)
                shape[position] = -1
                return np.arange(self.size(axis)).reshape(shape)
        return self.bindings[name]


def evaluate_full(value: Value, scope: Scope) -> Array:
    """Evaluate a tree over the scope's whole grid."""
    return np.broadcast_to(evaluate_tree(value, scope), scope.shape)


def evaluate_tree(value: Value, scope: Scope) -> Array:
    """Evaluate a tree to an array that broadcasts to the grid."""
    if isinstance(value, Load):
        return _load(value, scope)
    if isinstance(value, Const):
        if value.dtype.is_integer:
            return np.asarray(
                numerics.wrap_integer(int(value.value.real), value.dtype.reference_numpy)
            )
        return np.asarray(value.value, dtype=value.dtype.reference_numpy)
    if isinstance(value, IndexValue):
        return np.asarray(evaluate_index(value.expr, scope)).astype(value.dtype.reference_numpy)
    if isinstance(value, Cast):
        cast = convert(evaluate_tree(value.value, scope), value.dtype)
        if value.decides:
            cast = round_to_dtype(cast, value.dtype)
        if scope.roundings and value.dtype in _ROUNDED_DTYPES:
            return scope.roundings.perturb(cast, value.dtype, value.dtype.eps)
        return cast
    if isinstance(value, Masked):
        condition = evaluate_tree(value.condition, scope)
        selected = evaluate_tree(value.value, restrict_scope(condition, scope))
        other = evaluate_tree(value.other, restrict_scope(~condition, scope))
        return np.where(condition, selected, other)
    if isinstance(value, Accumulator):
        assert scope.accumulators is not None
        return scope.accumulators[value.name]
    return _call(value, scope)


def _call(value: Call, scope: Scope) -> Array:
    arguments = [evaluate_tree(argument, scope) for argument in value.args]
    if FUNCTIONS[value.op].result is Result.BITS:
        bits = encode_values(arguments[0], value.args[0].dtype)
        return widen(np.asarray(bits).view(value.dtype.numpy), value.dtype)
    with np.errstate(all="ignore"):
        result = np.asarray(FUNCTIONS[value.op].numpy(*arguments))
    if scope.roundings and value.dtype in _ROUNDED_DTYPES and value.op not in EXACT:
        return scope.roundings.perturb(result, value.dtype)
    return result


_ROUNDED_DTYPES = (DType.F16, DType.BF16, DType.F32, DType.F64)
EXACT = frozenset(
    ("neg", "abs", "sign", "maximum", "minimum", "where", "copysign", "floor", "ceil", "trunc")
)


def restrict_scope(condition: Array, scope: Scope) -> Scope:
    return replace(scope, used=condition if scope.used is None else scope.used & condition)


def convert(array: Array, dtype: DType) -> Array:
    host_dtype = np.dtype(dtype.reference_numpy)
    if dtype is DType.BOOL:
        return np.asarray(array != 0)
    if np.iscomplexobj(array) and not dtype.is_complex:
        array = array.real
    if np.issubdtype(array.dtype, np.floating) and np.issubdtype(host_dtype, np.integer):
        return np.asarray(numerics.to_integer(array, host_dtype))
    if dtype.is_float8:
        return round_to_dtype(array, dtype)
    return array.astype(host_dtype)


def _load(load: Load, scope: Scope) -> Array:
    """The elements read, floats as float64."""
    array = scope.values[load.buffer]
    view = transposed_view(load, array, scope)
    if view is not None:
        return _as_float64(view)
    if load.indirect:
        indirect_values = {
            i.symbol.name: indirect_places(i.value, i.size, i.wrap, scope) for i in load.indirect
        }
        scope = replace(scope, indirect={**(scope.indirect or {}), **indirect_values})
    if not load.index:
        return _as_float64(array)
    positions = [np.asarray(evaluate_index(expr, scope)) for expr in load.index]
    clamped = [
        check_on_axis(load, p, n, scope) for p, n in zip(positions, array.shape, strict=True)
    ]
    if not array.size:  # no element is used: there is nothing to read
        shape = np.broadcast_shapes(*(dim_positions.shape for dim_positions in clamped))
        return _as_float64(np.zeros(shape, dtype=array.dtype))
    return _as_float64(array[tuple(clamped)])


def _as_float64(array: Array) -> Array:
    return (
        array.astype(np.result_type(array, np.float64), copy=False)
        if np.issubdtype(array.dtype, np.inexact)
        else array
    )


def check_on_axis(load: Load, positions: Array, size: int, scope: Scope) -> Array:
    """Check that positions lie on an axis where they are used, and clamp the others onto it."""
    outside = (positions < 0) | (positions >= size)
    used = outside if scope.used is None else outside & scope.used
    if used.any():
        raise IndexError(f"{load.buffer} is read outside an axis of {size} elements: {load}")
    return np.clip(positions, 0, max(size - 1, 0)) if outside.any() else positions


def indirect_places(value: Value, size: Expr, wrap: bool, scope: Scope) -> Array:
    """Positions read from a tensor: negative ones wrapped once, then clamped to the axis."""
    extent = evaluate(size, scope.bindings)
    positions = evaluate_tree(value, scope).astype(np.int64)
    if wrap:
        positions = np.where(positions < 0, positions + extent, positions)
    return np.clip(positions, 0, max(extent - 1, 0))


def transposed_view(load: Load, array: Array, scope: Scope) -> Array | None:
    """The array with its axes permuted to the grid's order, if the index needs no more: no gather,
    no copy."""
    grid_positions = {axis.var: position for position, axis in enumerate(scope.grid)}
    if load.indirect or len(set(load.index)) != len(load.index):
        return None
    dim_positions = []
    for expr, size in zip(load.index, array.shape, strict=True):
        position = grid_positions.get(expr)
        if position is None or scope.size(scope.grid[position]) != size:
            return None
        dim_positions.append(position)
    permuted = array.transpose(np.argsort(dim_positions)) if dim_positions else array
    shape = [1] * len(scope.grid)
    for position, size in zip(dim_positions, array.shape, strict=True):
        shape[position] = size
    return permuted.reshape(shape)


def evaluate_index(expr: Expr, scope: Scope) -> Any:
    """Evaluate an integer expression to an int or an int64 array that broadcasts to the grid."""
    if expr.is_Integer:
        return int(expr)
    if expr.is_Symbol:
        return scope.variable(expr.name)
    arguments = [evaluate_index(argument, scope) for argument in expr.args]
    if isinstance(expr, sympy.Max):
        return reduce(np.maximum, arguments)
    if isinstance(expr, sympy.Min):
        return reduce(np.minimum, arguments)
    return apply(expr, arguments)
