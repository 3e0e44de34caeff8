"""Operations computed in float64 with NumPy: what a kernel must give for the same inputs.

This is the definition that kernels are compared with, one at a time; it shares no text with the
printers. Floats are float64 throughout and never rounded on the way; integers and booleans have
their own types. Everything is vectorised over the operation's axes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import sympy

from scheduler.ir import numerics
from scheduler.ir.bindings import Bindings
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import apply, evaluate
from scheduler.ir.narrow import quantized
from scheduler.ir.operations import (
    Attention,
    Axis,
    Contraction,
    Lowered,
    Operation,
    Pointwise,
    Reduction,
    ReductionKind,
    Scan,
    Scatter,
    Sort,
    Store,
    ViewOf,
)
from scheduler.ir.pointwise import FUNCTIONS, Result
from scheduler.ir.reference.rounding import rounded
from scheduler.ir.roundings import Roundings, in_range, spread_of_running, spread_of_sum
from scheduler.ir.storage import rounded_storage, widen
from scheduler.ir.values import Accumulator, Call, Cast, Const, IndexValue, Load, Masked, Value

Array: TypeAlias = npt.NDArray[Any]
Values: TypeAlias = Mapping[str, Array]


def interpret(
    operation: Operation,
    values: Values,
    lowered: Lowered,
    bindings: Bindings,
    *,
    turned: int = 0,
    roundings: Roundings | None = None,
) -> dict[str, Array]:
    """The buffers that an operation writes, by name, each in its logical shape.

    ``values`` holds the buffers it reads: floats of any width, integers or booleans. ``turned`` is
    for who asks how far rounding carries: the argument of a function that hangs on it is off by as
    much as its own operations may round it, upwards with 1 and downwards with -1; with
    ``roundings`` every step is off by as much as its rounding may be. Raises
    ``IndexError`` for a read outside a buffer and ``KeyError`` for a buffer or symbol without a
    value.
    """
    rule = _RULES.get(type(operation))
    if rule is None:
        raise TypeError(f"{operation.name} has no operations to interpret")
    return rule(
        operation, _Scope(dict(values), lowered, bindings, turned=turned, roundings=roundings)
    )


def view_value(view: ViewOf, values: Values, lowered: Lowered, bindings: Bindings) -> Array:
    """An extern's argument over the view's axes (dimensions of one element have none), from the
    buffers behind it."""
    scope = _Scope(dict(values), lowered, bindings).over(*view.axes)
    return np.array(_full(view.value, scope))


@dataclass(frozen=True)
class _Scope:
    """What a tree is evaluated in.

    ``grid`` are the axes of the result, in order; a variable counts along its own. ``used``
    says, under a mask, where the value is used: elsewhere an index may leave its buffer.
    """

    values: dict[str, Array]
    lowered: Lowered
    bindings: Bindings
    grid: tuple[Axis, ...] = ()
    accumulators: Mapping[str, Array] | None = None
    used: Array | None = None
    indirect: Mapping[str, Array] | None = None
    turned: int = 0
    roundings: Roundings | None = None

    def over(self, *axes: Axis, **accumulators: Array) -> _Scope:
        return replace(self, grid=axes, accumulators=accumulators)

    def size(self, axis: Axis) -> int:
        return evaluate(axis.size, self.bindings)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.size(axis) for axis in self.grid)

    def variable(self, name: str) -> Array | int:
        if self.indirect and name in self.indirect:
            return self.indirect[name]
        for place, axis in enumerate(self.grid):
            if axis.var.name == name:
                shape = [1] * len(self.grid)
                shape[place] = -1
                return np.arange(self.size(axis)).reshape(shape)
        return self.bindings[name]


def _full(value: Value, scope: _Scope) -> Array:
    """A tree over the scope's whole grid."""
    return np.broadcast_to(_value(value, scope), scope.shape)


def _value(value: Value, scope: _Scope) -> Array:
    """A tree as an array that broadcasts to the grid."""
    if isinstance(value, Load):
        return _load(value, scope)
    if isinstance(value, Const):
        if value.dtype.is_integer:
            return np.asarray(numerics.wrapped(int(value.value.real), value.dtype.wide))
        return np.asarray(value.value, dtype=value.dtype.wide)
    if isinstance(value, IndexValue):
        return np.asarray(_index(value.expr, scope)).astype(value.dtype.wide)
    if isinstance(value, Cast):
        cast = _cast(_value(value.value, scope), value.dtype)
        if value.decides:
            cast = rounded(cast, value.dtype)
        if scope.roundings and value.dtype in _RANGED:
            return scope.roundings.of(cast, value.dtype, value.dtype.eps)
        return cast
    if isinstance(value, Masked):
        return _masked(value, scope)
    if isinstance(value, Accumulator):
        assert scope.accumulators is not None
        return scope.accumulators[value.name]
    return _call(value, scope)


def _call(value: Call, scope: _Scope) -> Array:
    arguments = [_value(argument, scope) for argument in value.args]
    if FUNCTIONS[value.op].result is Result.BITS:
        bits = rounded_storage(arguments[0], value.args[0].dtype)
        return widen(np.asarray(bits).view(value.dtype.numpy), value.dtype)
    if scope.turned and FUNCTIONS[value.op].hangs_on_rounding:
        off = scope.turned * _rounding(value.args[0])
        arguments = [argument * (1 + off) for argument in arguments]
    with np.errstate(all="ignore"):
        result = np.asarray(FUNCTIONS[value.op].numpy(*arguments))
    if scope.roundings and value.dtype in _RANGED and value.op not in _EXACT:
        return scope.roundings.of(result, value.dtype)
    return result


_RANGED = (DType.F16, DType.BF16, DType.F32, DType.F64)
_EXACT = frozenset(
    ("neg", "abs", "sign", "maximum", "minimum", "where", "copysign", "floor", "ceil", "trunc")
)


def _rounding(value: Value) -> float:
    """How far a kernel's value may be off, relative to it: the roundings on the way to it, one of
    them for a value that is read, which another operation of the kernel may have made."""
    return _steps(value) * value.dtype.compute.eps


def _steps(value: Value) -> int:
    if isinstance(value, Masked):
        return max(_steps(value.value), _steps(value.other))
    if isinstance(value, Cast):
        return 1 + _steps(value.value)
    if isinstance(value, Call):
        return 1 + sum(_steps(argument) for argument in value.args)
    return int(isinstance(value, Load) and value.dtype.is_float)


def _masked(value: Masked, scope: _Scope) -> Array:
    condition = _value(value.condition, scope)
    inside = _value(value.value, _only_where(condition, scope))
    return np.where(condition, inside, _value(value.other, _only_where(~condition, scope)))


def _only_where(condition: Array, scope: _Scope) -> _Scope:
    return replace(scope, used=condition if scope.used is None else scope.used & condition)


def _cast(array: Array, dtype: DType) -> Array:
    host = np.dtype(dtype.wide)
    if dtype is DType.BOOL:
        return np.asarray(array != 0)
    if np.iscomplexobj(array) and not dtype.is_complex:
        array = array.real
    if np.issubdtype(array.dtype, np.floating) and np.issubdtype(host, np.integer):
        return np.asarray(numerics.to_integer(array, host))
    if dtype.is_float8:
        return quantized(array, dtype)
    return array.astype(host)


def _load(load: Load, scope: _Scope) -> Array:
    """The elements read, floats as float64."""
    array = scope.values[load.buffer]
    plain = _transposed(load, array, scope)
    if plain is not None:
        return _wide(plain)
    if load.indirect:
        found = {i.symbol.name: _indirect(i.value, i.size, i.wrap, scope) for i in load.indirect}
        scope = replace(scope, indirect={**(scope.indirect or {}), **found})
    if not load.index:
        return _wide(array)
    found_at = [np.asarray(_index(expr, scope)) for expr in load.index]
    places = [_on_axis(load, p, n, scope) for p, n in zip(found_at, array.shape, strict=True)]
    if not array.size:  # nothing of it is used: there is nothing to read in its place
        shape = np.broadcast_shapes(*(place.shape for place in places))
        return _wide(np.zeros(shape, dtype=array.dtype))
    return _wide(array[tuple(places)])


def _wide(array: Array) -> Array:
    return (
        array.astype(np.result_type(array, np.float64), copy=False)
        if np.issubdtype(array.dtype, np.inexact)
        else array
    )


def _on_axis(load: Load, places: Array, size: int, scope: _Scope) -> Array:
    """Check that places lie on an axis where they are used; move the others onto it."""
    outside = (places < 0) | (places >= size)
    used = outside if scope.used is None else outside & scope.used
    if used.any():
        raise IndexError(f"{load.buffer} is read outside an axis of {size} elements: {load}")
    return np.clip(places, 0, max(size - 1, 0)) if outside.any() else places


def _indirect(value: Value, size: Expr, wrap: bool, scope: _Scope) -> Array:
    """Places read from a tensor: wrapped once if negative, then held on the axis."""
    extent = evaluate(size, scope.bindings)
    places = _value(value, scope).astype(np.int64)
    if wrap:
        places = np.where(places < 0, places + extent, places)
    return np.clip(places, 0, max(extent - 1, 0))


def _transposed(load: Load, array: Array, scope: _Scope) -> Array | None:
    """The array itself with its axes in the grid's order, where that is all an index asks for:
    no gather, no copy."""
    order = {axis.var: place for place, axis in enumerate(scope.grid)}
    if load.indirect or len(set(load.index)) != len(load.index):
        return None
    places = []
    for expr, size in zip(load.index, array.shape, strict=True):
        place = order.get(expr)
        if place is None or scope.size(scope.grid[place]) != size:
            return None
        places.append(place)
    turned = array.transpose(np.argsort(places)) if places else array
    shape = [1] * len(scope.grid)
    for place, size in zip(places, array.shape, strict=True):
        shape[place] = size
    return turned.reshape(shape)


def _index(expr: Expr, scope: _Scope) -> Any:
    """An integer expression as an int or an int64 array that broadcasts to the grid."""
    if expr.is_Integer:
        return int(expr)
    if expr.is_Symbol:
        return scope.variable(expr.name)
    parts = [_index(argument, scope) for argument in expr.args]
    if isinstance(expr, sympy.Max):
        return reduce(np.maximum, parts)
    if isinstance(expr, sympy.Min):
        return reduce(np.minimum, parts)
    return apply(expr, parts)


def _store(stores: Sequence[Store], scope: _Scope) -> dict[str, Array]:
    """The buffers that stores write over the scope's grid; later ones may read earlier ones."""
    written: dict[str, Array] = {}
    for store in stores:
        value = _full(store.value, scope)
        buffer = scope.lowered.buffers[store.buffer]
        if scope.roundings:
            value = in_range(value, buffer.dtype)
        shape = tuple(evaluate(size, scope.bindings) for size in buffer.size)
        if store.index == tuple(axis.var for axis in scope.grid) and shape == value.shape:
            out = np.array(value, dtype=buffer.dtype.wide)
        else:
            out = np.zeros(shape, dtype=buffer.dtype.wide)
            if value.size:
                places = tuple(np.asarray(_index(expr, scope)) for expr in store.index)
                # Loops of one step may be in no index: a dot product's has none at all.
                at = np.broadcast_shapes(*(place.shape for place in places))
                out[places] = value.reshape(at)
        written[store.buffer] = scope.values[store.buffer] = out
    return written


def _pointwise(operation: Pointwise, scope: _Scope) -> dict[str, Array]:
    return _store(operation.results, scope.over(*operation.points))


def _reduction(operation: Reduction, scope: _Scope) -> dict[str, Array]:
    inner = scope.over(*operation.loops)
    outer = inner.shape[: len(operation.axes)]
    flat = _full(operation.value, inner).reshape(*outer, prod(inner.shape[len(outer) :]))
    with np.errstate(all="ignore"):
        result = _REDUCERS[operation.kind](flat)
    if scope.roundings and operation.kind is ReductionKind.SUM:
        result = scope.roundings.added(np.asarray(result), spread_of_sum(flat, -1))
    host = np.int64 if operation.kind in _ARG_KINDS else operation.accumulate.wide
    points = scope.over(*operation.points, acc=np.asarray(result, dtype=host))
    return _store(operation.results, points)


_ARG_KINDS = (ReductionKind.ARGMAX, ReductionKind.ARGMIN)
_REDUCERS: dict[ReductionKind, Callable[[Array], Array]] = {
    ReductionKind.SUM: lambda x: x.sum(axis=-1),
    ReductionKind.PROD: lambda x: x.prod(axis=-1),
    ReductionKind.MAX: lambda x: x.max(axis=-1, initial=_lowest(x)),
    ReductionKind.MIN: lambda x: x.min(axis=-1, initial=_highest(x)),
    ReductionKind.ANY: lambda x: np.asarray(x.any(axis=-1)),
    ReductionKind.ALL: lambda x: np.asarray(x.all(axis=-1)),
    ReductionKind.ARGMAX: lambda x: x.argmax(axis=-1),
    ReductionKind.ARGMIN: lambda x: x.argmin(axis=-1),
}


def _lowest(x: Array) -> Any:
    """What the maximum of nothing is."""
    if x.dtype == bool:
        return False
    return -np.inf if np.issubdtype(x.dtype, np.floating) else np.iinfo(x.dtype).min


def _highest(x: Array) -> Any:
    if x.dtype == bool:
        return True
    return np.inf if np.issubdtype(x.dtype, np.floating) else np.iinfo(x.dtype).max


def _scan(operation: Scan, scope: _Scope) -> dict[str, Array]:
    along = _full(operation.value, scope.over(*operation.loops))
    along = along.astype(operation.accumulate.wide)
    with np.errstate(all="ignore"):
        result = _RUNNING[operation.kind].accumulate(along, axis=-1) if along.size else along
    if scope.roundings and operation.kind not in (ReductionKind.MAX, ReductionKind.MIN):
        result = scope.roundings.added(result, spread_of_running(result, -1))
    return _store(operation.results, scope.over(*operation.points, acc=result))


_RUNNING: dict[ReductionKind, np.ufunc] = {
    ReductionKind.SUM: np.add,
    ReductionKind.PROD: np.multiply,
    ReductionKind.MAX: np.maximum,
    ReductionKind.MIN: np.minimum,
    ReductionKind.LOGSUMEXP: np.logaddexp,
}


def _scatter(operation: Scatter, scope: _Scope) -> dict[str, Array]:
    """What the result begins with, then the sources one after the other."""
    written = _store(operation.results, scope.over(*operation.points))
    ((name, started),) = written.items()
    made = written[name] = np.array(started, order="C")
    sources = scope.over(*operation.sources)
    used = np.array(_full(operation.condition, sources))
    if not made.size or not used.any():
        return written
    inside = _only_where(used, sources)
    found = {i.symbol.name: _indirect(i.value, i.size, i.wrap, inside) for i in operation.indirect}
    inside = replace(inside, indirect=found)
    place = np.zeros(used.shape, dtype=np.int64)
    for expr, size in zip(operation.index, made.shape, strict=True):
        at = np.asarray(_index(expr, inside))
        place = place * size + _on_axis(operation.target, at, size, inside)
    with np.errstate(all="ignore"):
        value = _full(operation.value, inside)[used]
        _COMBINES[operation.kind].at(made.reshape(-1), place[used], value.astype(made.dtype))
    return written


_COMBINES: dict[ReductionKind, np.ufunc] = {
    ReductionKind.SUM: np.add,
    ReductionKind.PROD: np.multiply,
    ReductionKind.MAX: np.maximum,
    ReductionKind.MIN: np.minimum,
}


def _sort(operation: Sort, scope: _Scope) -> dict[str, Array]:
    (keys,) = operation.scopes
    rows = np.asarray(_full(keys.value, scope.over(*keys.axes)))
    order = order_of(rows, descending=operation.descending)[..., : scope.size(operation.place)]
    found = {"acc": np.take_along_axis(rows, order, -1), Sort.INDEX: order}
    return _store(operation.results, scope.over(*operation.points, **found))


def sorted_keys(
    operation: Sort, store: Store, values: Values, lowered: Lowered, bindings: Bindings
) -> Array:
    """What a store's rows are in order of: the keys over the dimensions of its buffer, the rows'
    own one with all of its elements and last."""
    (keys,) = operation.scopes
    scope = _Scope(dict(values), lowered, bindings).over(*keys.axes)
    order = {axis.var: place for place, axis in enumerate(keys.axes)}
    others = [order.get(expr) for expr in store.index if expr != operation.place.var]
    rows = _full(keys.value, scope)
    turned = rows.transpose([*(place for place in others if place is not None), rows.ndim - 1])
    kept = iter(turned.shape[:-1])
    shape = [1 if place is None else next(kept) for place in others]
    return turned.reshape(*shape, turned.shape[-1])


def order_of(rows: Array, *, descending: bool) -> Array:
    """Where along the last axis the elements of each row are, in order: equal ones as they come,
    NaN the greatest."""
    if not descending:
        return rows.argsort(axis=-1, kind="stable")
    backward = rows[..., ::-1].argsort(axis=-1, kind="stable")
    return np.asarray(rows.shape[-1] - 1 - backward[..., ::-1])


def _contraction(operation: Contraction, scope: _Scope) -> dict[str, Array]:
    axes = (operation.batch, operation.m, operation.n, operation.k)
    batch, m, n, k = (tuple(scope.size(axis) for axis in group) for group in axes)
    a, b = operation.scopes
    left = np.asarray(_full(a.value, scope.over(*a.axes)), np.float64)
    left = left.reshape(prod(batch), prod(m), prod(k))
    right = _narrow(b.value, scope.over(*b.axes)).reshape(prod(batch), prod(k), prod(n))
    if scope.roundings and operation.products.operand_eps:
        eps = operation.products.operand_eps
        left, right = (scope.roundings.of(each, DType.F32, eps) for each in (left, right))
    result = np.empty((prod(batch), prod(m), prod(n)))
    columns = max(1, _PIECE // max(1, prod(batch) * prod(k)))
    for first in range(0, prod(n), columns):
        part = slice(first, first + columns)
        result[..., part] = left @ right[..., part].astype(np.float64)
    if scope.roundings and operation.a.dtype.is_inexact:
        rows = np.linalg.norm(left, axis=-1)[..., :, None]
        spread = DType.F32.eps * rows * np.linalg.norm(right, axis=-2)[..., None, :]
        result = scope.roundings.added(result, spread)
    if operation.a.dtype.is_integer:  # exact: below 2**53
        result = result.astype(np.int64).astype(operation.a.dtype.product_sum.numpy)
    shaped = result.reshape(batch + m + n)
    return _store(operation.results, scope.over(*operation.points, acc=shaped))


_PIECE = 2**24  # elements of an operand in float64 at a time: weights may be very large


def _narrow(value: Value, scope: _Scope) -> Array:
    """A tree over the scope's whole grid; a plain read stays in the type that it is held in."""
    if isinstance(value, Load):
        plain = _transposed(value, scope.values[value.buffer], scope)
        if plain is not None:
            return np.broadcast_to(plain, scope.shape)
    return _full(value, scope)


def _attention(operation: Attention, scope: _Scope) -> dict[str, Array]:
    q, k, v, *masks = (_full(one.value, scope.over(*one.axes)) for one in operation.scopes)
    scores = (q @ np.swapaxes(k, -1, -2)) * operation.scale
    if scope.roundings:
        lengths = np.linalg.norm(q, axis=-1)[..., None] * np.linalg.norm(k, axis=-1)[..., None, :]
        scores = scope.roundings.added(scores, DType.F32.eps * lengths * abs(operation.scale))
    if operation.cap is not None:
        scores = operation.cap * np.tanh(scores / operation.cap)
    if operation.causal:
        rows, columns = np.arange(q.shape[-2])[:, None], np.arange(k.shape[-2])
        scores = np.where(columns <= rows, scores, -np.inf)
    for mask in masks:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    result = _softmax(scores, safe=operation.safe) @ v
    return _store(operation.results, scope.over(*operation.points, acc=result))


def _softmax(scores: Array, *, safe: bool) -> Array:
    """Over the last axis. A row with nothing but -inf gives 0 (``safe``) or NaN."""
    highest = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - np.where(np.isneginf(highest), 0.0, highest))
        total = weights.sum(axis=-1, keepdims=True)
        return np.asarray(weights / np.where(safe & (total == 0), 1.0, total))


_RULES: dict[type, Callable[[Any, _Scope], dict[str, Array]]] = {
    Pointwise: _pointwise,
    Reduction: _reduction,
    Scan: _scan,
    Scatter: _scatter,
    Sort: _sort,
    Contraction: _contraction,
    Attention: _attention,
}
