"""Interpret operations in float64 with NumPy: the expected results of kernels for the same inputs.

Kernels are compared with this definition, one at a time; it shares no code with the printers.
Floats are float64 throughout and never rounded in between; integers and booleans keep their types.
Everything is vectorised over the operation's axes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, TypeAlias

import numpy as np

from scheduler.ir.bindings import Bindings
from scheduler.ir.dtypes import DType
from scheduler.ir.index.functions import evaluate
from scheduler.ir.operations import (
    Attention,
    Contraction,
    Lowered,
    OperandView,
    Operation,
    Pointwise,
    Reduction,
    ReductionKind,
    Scan,
    Scatter,
    Sort,
    Store,
)
from scheduler.ir.rounding_noise import RoundingNoise, overflow_to_inf, scan_spread, sum_spread
from scheduler.ir.values import Load
from scheduler.lowering.running_error import (
    averaged_error,
    operand_error,
    product_error,
    reduced_error,
    running_error,
    scattered_error,
    scored_error,
    stored_error,
    tree_error,
)
from scheduler.lowering.tree_values import (
    Array,
    Scope,
    check_on_axis,
    evaluate_full,
    evaluate_index,
    indirect_places,
    restrict_scope,
    transposed_view,
)

Values: TypeAlias = Mapping[str, Array]


def interpret(
    operation: Operation,
    values: Values,
    lowered: Lowered,
    bindings: Bindings,
    *,
    roundings: RoundingNoise | None = None,
    errors: dict[str, Array] | None = None,
) -> dict[str, Array]:
    """The buffers that an operation writes, by name, each in its logical shape.

    ``values`` holds the buffers it reads: floats of any width, integers or booleans. With
    ``roundings`` every step is perturbed by up to its rounding error. ``errors`` holds the errors
    of the buffers that are read, and receives the error bound of each written element in a correct
    kernel, before rounding to its buffer's type (``running_error.py``). Raises ``IndexError`` for a
    read outside a buffer and ``KeyError`` for a buffer or symbol without a value.
    """
    rule = _RULES.get(type(operation))
    if rule is None:
        raise TypeError(f"{operation.name} has no operations to interpret")
    return rule(
        operation, Scope(dict(values), lowered, bindings, roundings=roundings, errors=errors)
    )


def view_value(view: OperandView, values: Values, lowered: Lowered, bindings: Bindings) -> Array:
    """The value of an extern's argument over the view's axes (dimensions of one element have none),
    read from its buffers."""
    scope = Scope(dict(values), lowered, bindings).with_grid(*view.axes)
    return np.array(evaluate_full(view.value, scope))


def _store(stores: Sequence[Store], scope: Scope) -> dict[str, Array]:
    """The buffers that stores write over the scope's grid; later stores may read earlier ones."""
    written: dict[str, Array] = {}
    for store in stores:
        value = evaluate_full(store.value, scope)
        buffer = scope.lowered.buffers[store.buffer]
        if scope.roundings:
            value = overflow_to_inf(value, buffer.dtype)
        out = _lay_out(store, value, scope)
        if scope.errors is not None:
            error = np.broadcast_to(stored_error(store.value, buffer.dtype, scope), value.shape)
            scope.errors[store.buffer] = _lay_out(store, error, scope, "float64")
        written[store.buffer] = scope.values[store.buffer] = out
    return written


def _lay_out(store: Store, value: Array, scope: Scope, dtype: str = "") -> Array:
    """The value of a store in its buffer's layout; ``dtype`` defaults to the buffer's type."""
    buffer = scope.lowered.buffers[store.buffer]
    dtype = dtype or buffer.dtype.reference_numpy
    shape = tuple(evaluate(size, scope.bindings) for size in buffer.size)
    if store.index == tuple(axis.var for axis in scope.grid) and shape == value.shape:
        return np.array(value, dtype=dtype)
    out = np.zeros(shape, dtype=dtype)
    if value.size:
        indices = tuple(np.asarray(evaluate_index(expr, scope)) for expr in store.index)
        # Loops of one step may not appear in any index: a dot product's index has none.
        stored_shape = np.broadcast_shapes(*(positions.shape for positions in indices))
        out[indices] = value.reshape(stored_shape)
    return out


def _reduction(operation: Reduction, scope: Scope) -> dict[str, Array]:
    inner = scope.with_grid(*operation.loops)
    outer = inner.shape[: len(operation.axes)]
    terms = evaluate_full(operation.value, inner).reshape(*outer, prod(inner.shape[len(outer) :]))
    with np.errstate(all="ignore"):
        result = _REDUCERS[operation.kind](terms)
    if scope.roundings and operation.kind is ReductionKind.SUM:
        result = scope.roundings.perturb_sum(np.asarray(result), sum_spread(terms, -1))
    host_dtype = np.int64 if operation.kind in _ARG_KINDS else operation.accumulate.reference_numpy
    points = scope.with_grid(*operation.points, acc=np.asarray(result, dtype=host_dtype))
    if scope.errors is not None:
        term_error = np.broadcast_to(tree_error(operation.value, inner), inner.shape).reshape(
            terms.shape
        )
        eps = operation.accumulate.eps
        points = _with_error(
            points, reduced_error(operation.kind, terms, term_error, np.asarray(result), eps)
        )
    return _store(operation.results, points)


def _with_error(scope: Scope, error: Array) -> Scope:
    """The scope with the error of its accumulator."""
    return replace(scope, accumulator_errors={"acc": error})


_ARG_KINDS = (ReductionKind.ARGMAX, ReductionKind.ARGMIN)
_REDUCERS: dict[ReductionKind, Callable[[Array], Array]] = {
    ReductionKind.SUM: lambda x: x.sum(axis=-1),
    ReductionKind.PROD: lambda x: x.prod(axis=-1),
    ReductionKind.MAX: lambda x: x.max(axis=-1, initial=_limits(x)[0]),
    ReductionKind.MIN: lambda x: x.min(axis=-1, initial=_limits(x)[1]),
    ReductionKind.ANY: lambda x: np.asarray(x.any(axis=-1)),
    ReductionKind.ALL: lambda x: np.asarray(x.all(axis=-1)),
    ReductionKind.ARGMAX: lambda x: x.argmax(axis=-1),
    ReductionKind.ARGMIN: lambda x: x.argmin(axis=-1),
}


def _limits(x: Array) -> tuple[Any, Any]:
    """The maximum and the minimum of no elements."""
    if x.dtype == bool:
        return False, True
    if np.issubdtype(x.dtype, np.floating):
        return -np.inf, np.inf
    return np.iinfo(x.dtype).min, np.iinfo(x.dtype).max


def _scan(operation: Scan, scope: Scope) -> dict[str, Array]:
    terms = evaluate_full(operation.value, scope.with_grid(*operation.loops))
    terms = terms.astype(operation.accumulate.reference_numpy)
    with np.errstate(all="ignore"):
        result = _SCAN_FUNCTIONS[operation.kind].accumulate(terms, axis=-1) if terms.size else terms
    if scope.roundings and operation.kind not in (ReductionKind.MAX, ReductionKind.MIN):
        result = scope.roundings.perturb_sum(result, scan_spread(result, -1))
    points = scope.with_grid(*operation.points, acc=result)
    if scope.errors is not None:
        term_error = tree_error(operation.value, scope.with_grid(*operation.loops))
        eps = operation.accumulate.eps
        points = _with_error(points, running_error(operation.kind, terms, term_error, result, eps))
    return _store(operation.results, points)


_SCAN_FUNCTIONS: dict[ReductionKind, np.ufunc] = {
    ReductionKind.SUM: np.add,
    ReductionKind.PROD: np.multiply,
    ReductionKind.MAX: np.maximum,
    ReductionKind.MIN: np.minimum,
    ReductionKind.LOGSUMEXP: np.logaddexp,
}


def _scatter(operation: Scatter, scope: Scope) -> dict[str, Array]:
    """Initialize the result, then combine the sources in order."""
    written = _store(operation.results, scope.with_grid(*operation.points))
    ((name, initial),) = written.items()
    result = written[name] = np.array(initial, order="C")
    sources = scope.with_grid(*operation.sources)
    used = np.array(evaluate_full(operation.condition, sources))
    if not result.size or not used.any():
        return written
    used_scope = restrict_scope(used, sources)
    indirect_values = {
        i.symbol.name: indirect_places(i.value, i.size, i.wrap, used_scope)
        for i in operation.indirect
    }
    used_scope = replace(used_scope, indirect=indirect_values)
    flat_positions = np.zeros(used.shape, dtype=np.int64)
    for expr, size in zip(operation.index, result.shape, strict=True):
        positions = np.asarray(evaluate_index(expr, used_scope))
        flat_positions = flat_positions * size + check_on_axis(
            operation.target, positions, size, used_scope
        )
    with np.errstate(all="ignore"):
        value = evaluate_full(operation.value, used_scope)[used]
        _COMBINE_FUNCTIONS[operation.kind].at(
            result.reshape(-1), flat_positions[used], value.astype(result.dtype)
        )
    if scope.errors is not None:
        value_error = np.broadcast_to(tree_error(operation.value, used_scope), used.shape)[used]
        initial_error = scope.errors[name]
        scope.errors[name] = initial_error + scattered_error(
            operation, result, flat_positions[used], value, value_error
        )
    return written


_COMBINE_FUNCTIONS: dict[ReductionKind, np.ufunc] = {
    ReductionKind.SUM: np.add,
    ReductionKind.PROD: np.multiply,
    ReductionKind.MAX: np.maximum,
    ReductionKind.MIN: np.minimum,
}


def _sort(operation: Sort, scope: Scope) -> dict[str, Array]:
    (keys,) = operation.operands
    rows = np.asarray(evaluate_full(keys.value, scope.with_grid(*keys.axes)))
    order = sort_order(rows, descending=operation.descending)[..., : scope.size(operation.place)]
    accumulators = {"acc": np.take_along_axis(rows, order, -1), Sort.INDEX: order}
    points = scope.with_grid(*operation.points, **accumulators)
    if scope.errors is not None:
        # Sorted values move by at most the largest error in the row.
        key_error = np.broadcast_to(tree_error(keys.value, scope.with_grid(*keys.axes)), rows.shape)
        points = _with_error(
            points, np.broadcast_to(key_error.max(axis=-1, keepdims=True), order.shape)
        )
    return _store(operation.results, points)


def sorted_keys(
    operation: Sort, store: Store, values: Values, lowered: Lowered, bindings: Bindings
) -> Array:
    """The sort keys of a store's rows, with the dimensions of its buffer; the sorted dimension is
    last and complete."""
    (keys,) = operation.operands
    scope = Scope(dict(values), lowered, bindings).with_grid(*keys.axes)
    grid_positions = {axis.var: position for position, axis in enumerate(keys.axes)}
    positions = [grid_positions.get(expr) for expr in store.index if expr != operation.place.var]
    rows = evaluate_full(keys.value, scope)
    permuted = rows.transpose(
        [*(position for position in positions if position is not None), rows.ndim - 1]
    )
    extents = iter(permuted.shape[:-1])
    shape = [1 if position is None else next(extents) for position in positions]
    return permuted.reshape(*shape, permuted.shape[-1])


def sort_order(rows: Array, *, descending: bool) -> Array:
    """Indices that sort each row along the last axis: stable, NaN greatest."""
    if not descending:
        return rows.argsort(axis=-1, kind="stable")
    backward = rows[..., ::-1].argsort(axis=-1, kind="stable")
    return np.asarray(rows.shape[-1] - 1 - backward[..., ::-1])


def _contraction(operation: Contraction, scope: Scope) -> dict[str, Array]:
    axes = (operation.batch, operation.m, operation.n, operation.k)
    batch, m, n, k = (tuple(scope.size(axis) for axis in group) for group in axes)
    a, b = operation.operands
    left = np.asarray(evaluate_full(a.value, scope.with_grid(*a.axes)), np.float64)
    left = left.reshape(prod(batch), prod(m), prod(k))
    right_scope, right = scope.with_grid(*b.axes), None
    if isinstance(b.value, Load):  # a plain load keeps its stored type
        right = transposed_view(b.value, scope.values[b.value.buffer], right_scope)
    if right is None:
        right = evaluate_full(b.value, right_scope)
    right = np.broadcast_to(right, right_scope.shape).reshape(prod(batch), prod(k), prod(n))
    if scope.roundings and operation.products.operand_eps:
        eps = operation.products.operand_eps
        left, right = (
            scope.roundings.perturb(operand, DType.F32, eps) for operand in (left, right)
        )
    result = np.empty((prod(batch), prod(m), prod(n)))
    columns = _columns_at_once(left)
    for first in range(0, prod(n), columns):
        chunk = slice(first, first + columns)
        result[..., chunk] = left @ right[..., chunk].astype(np.float64)
    if scope.roundings and operation.a.dtype.is_inexact:
        rows = np.linalg.norm(left, axis=-1)[..., :, None]
        spread = DType.F32.eps * rows * np.linalg.norm(right, axis=-2)[..., None, :]
        result = scope.roundings.perturb_sum(result, spread)
    if operation.a.dtype.is_integer:  # exact: below 2**53
        result = result.astype(np.int64).astype(operation.a.dtype.product_sum.numpy)
    accumulated = result.reshape(batch + m + n)
    points = scope.with_grid(*operation.points, acc=accumulated)
    if scope.errors is not None and operation.a.dtype.is_inexact:
        error = _contraction_error(operation, scope, left, right, result)
        points = _with_error(points, error.reshape(accumulated.shape))
    return _store(operation.results, points)


def _contraction_error(
    operation: Contraction, scope: Scope, left: Array, right: Array, result: Array
) -> Array:
    eps = operation.a.dtype.product_sum.eps
    coarse = operation.a.dtype.is_float8 and operation.b.dtype.is_float8
    rounding = operation.products.operand_eps  # operands may be rounded to tf32
    errors: list[Array] = []
    for view in operation.operands:
        view_scope = scope.with_grid(*view.axes)
        error = tree_error(view.value, view_scope)
        if rounding:
            error = error + rounding * np.abs(evaluate_full(view.value, view_scope))
        errors.append(np.broadcast_to(error, view_scope.shape))
    left_error, right_error = errors[0].reshape(left.shape), errors[1].reshape(right.shape)
    result_error = np.empty(result.shape)
    for first in range(0, result.shape[-1], columns := _columns_at_once(left)):
        chunk = (..., slice(first, first + columns))
        right_chunk = right[chunk].astype(np.float64)
        result_error[chunk] = product_error(left, right_chunk, result[chunk], eps, coarse=coarse)
        result_error[chunk] += operand_error(left, right_chunk, left_error, right_error[chunk])
    return result_error


def _columns_at_once(left: Array) -> int:
    return max(1, _CHUNK_ELEMENTS // max(1, int(left.shape[0]) * int(left.shape[-1])))


_CHUNK_ELEMENTS = (
    2**24
)  # elements of an operand converted to float64 at a time: weights may be very large


def _attention(operation: Attention, scope: Scope) -> dict[str, Array]:
    q, k, v, *masks = (
        evaluate_full(view.value, scope.with_grid(*view.axes)) for view in operation.operands
    )
    scores = products = (q @ np.swapaxes(k, -1, -2)) * operation.scale
    if scope.roundings:
        lengths = np.linalg.norm(q, axis=-1)[..., None] * np.linalg.norm(k, axis=-1)[..., None, :]
        scores = scope.roundings.perturb_sum(scores, DType.F32.eps * lengths * abs(operation.scale))
    if operation.cap is not None:
        scores = operation.cap * np.tanh(scores / operation.cap)
    if operation.causal:
        rows, columns = np.arange(q.shape[-2])[:, None], np.arange(k.shape[-2])
        scores = np.where(columns <= rows, scores, -np.inf)
    for mask in masks:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    highest = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - np.where(np.isneginf(highest), 0.0, highest))
        total = weights.sum(axis=-1, keepdims=True)
        weights = weights / np.where(operation.safe & (total == 0), 1.0, total)
    result = weights @ v
    points = scope.with_grid(*operation.points, acc=result)
    if scope.errors is not None:
        operands = zip(operation.operands, (q, k, v, *masks), strict=True)
        errors = [
            np.broadcast_to(tree_error(view.value, scope.with_grid(*view.axes)), operand.shape)
            for view, operand in operands
        ]
        score_error = scored_error(operation, q, k, products, scores, errors)
        points = _with_error(
            points, averaged_error(operation, weights, v, result, score_error, errors[2])
        )
    return _store(operation.results, points)


_RULES: dict[type, Callable[[Any, Scope], dict[str, Array]]] = {
    Pointwise: lambda op, scope: _store(op.results, scope.with_grid(*op.points)),
    Reduction: _reduction,
    Scan: _scan,
    Scatter: _scatter,
    Sort: _sort,
    Contraction: _contraction,
    Attention: _attention,
}
