"""Bound the error of a correct kernel against exact arithmetic by running error analysis (Higham,
Accuracy and Stability of Numerical Algorithms, section 3.3), alongside interpretation.

The error is propagated through a tree: the rounding of each step, plus the effect of its arguments'
errors, by differences. A sum's terms are added in any order. With unit roundoff u its partial sums
s_1 … s_n have errors of at most u * |s_i| each, independent of each other, so the total error is
about sqrt(n) * u * max |s_i| (Higham & Mary, A New Approach to Probabilistic Rounding Error
Analysis, SIAM J. Sci. Comput. 41, 2019). For terms in arbitrary order the partial sums lie within
the terms' 2-norm of the line from 0 to the sum.

This also holds, up to n = 16384, for f32 sums whose additions truncate instead of rounding to
nearest, as NVIDIA's matrix instructions do once per 16 terms (Fasi et al., Numerical behavior of
NVIDIA tensor cores, PeerJ Comput. Sci. 7, 2021). AMD's instructions sum products of 8 bits in f32
(CDNA 3 ISA, "Matrix Arithmetic"). NVIDIA's sum products of 8-bit floats in fewer bits; no kernel
here uses these instructions (``scheduler/matrix_instructions.py``), so no allowance is made for
them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from scheduler.ir.dtypes import DType
from scheduler.ir.encoding import round_to_dtype
from scheduler.ir.operations import Attention, ReductionKind, Scatter
from scheduler.ir.pointwise import FUNCTIONS, Result
from scheduler.ir.values import Accumulator, Call, Cast, Const, IndexValue, Load, Masked, Value
from scheduler.lowering.tree_values import (
    EXACT,
    Array,
    Scope,
    convert,
    evaluate_tree,
    restrict_scope,
)

#: Ratio of the allowed error of a sum to its average error.
_ERROR_RATIO = 4.0
# Rounding errors of functions in units of roundoff: the maxima that kiln/math.h and libdevice
# state.
_ARITHMETIC = frozenset(("add", "sub", "mul"))
_DIVISIONS = frozenset(("truediv", "reciprocal", "sqrt", "rsqrt"))
_DIVISION_ERROR, _FUNCTION_ERROR = 4.0, 16.0
# Functions whose result is stored as f16, bf16 or 8-bit float (docs/math.md, the table's worst).
_FAST_ERROR, _MIN_FAST_ERROR = 2.0**-15, 2.0**-21


def tree_error(value: Value, scope: Scope, *, fast: bool = False) -> Array:
    """The error of a tree in a kernel, broadcastable to the grid. ``fast``: the result becomes a
    float of less than 32 bits."""
    return _Analysis(fast).analyze(value, scope)[1]


def stored_error(value: Value, dtype: DType, scope: Scope) -> Array:
    """The error of a stored tree, without the rounding to the stored type."""
    fast = dtype.is_float and dtype.itemsize < DType.F32.itemsize
    while isinstance(value, Cast) and value.dtype is dtype and not dtype.is_float8:
        if not (dtype.is_float and value.value.dtype.is_float):
            break
        value = value.value
    return tree_error(value, scope, fast=fast)


_ZERO: Array = np.zeros(())


class _Analysis:
    def __init__(self, fast: bool) -> None:
        self._fast = fast

    def analyze(self, value: Value, scope: Scope) -> tuple[Array, Array]:
        """A tree's value and its error."""
        if isinstance(value, Cast):
            return self._cast(value, scope)
        if isinstance(value, Masked):
            condition = evaluate_tree(value.condition, scope)
            selected = self.analyze(value.value, restrict_scope(condition, scope))
            other = self.analyze(value.other, restrict_scope(~condition, scope))
            exact, error = (np.where(condition, a, b) for a, b in zip(selected, other, strict=True))
            return exact, error
        if isinstance(value, Call):
            return self._call(value, scope)
        exact = evaluate_tree(value, scope)
        if isinstance(value, Load):
            load_error = scope.errors.get(value.buffer) if scope.errors else None
            if load_error is None:
                return exact, _ZERO
            errors = {**scope.values, value.buffer: load_error}
            return exact, evaluate_tree(value, replace(scope, values=errors))
        if isinstance(value, Accumulator):
            return exact, scope.accumulator_errors.get(value.name, _ZERO)
        assert isinstance(value, Const | IndexValue)
        return exact, _rounding_error(exact, value.dtype)

    def _cast(self, value: Cast, scope: Scope) -> tuple[Array, Array]:
        source, target = value.value.dtype, value.dtype
        argument, error = self.analyze(value.value, scope)
        exact = convert(argument, target)
        if value.decides:
            exact = round_to_dtype(exact, target)
        if target.is_float8 or not (source.is_float and target.is_float):
            propagated = _propagated_error(
                lambda x: convert(x, target), (argument,), 0, error, exact
            )
            return exact, propagated + (
                _rounding_error(exact, target) if source.is_integer else _ZERO
            )
        narrower = target.eps > source.compute_dtype.eps or target.eps > source.eps
        return exact, error + (target.eps * _finite_magnitude(exact) if narrower else _ZERO)

    def _call(self, value: Call, scope: Scope) -> tuple[Array, Array]:
        function = FUNCTIONS[value.op]
        analyzed = [self.analyze(argument, scope) for argument in value.args]
        if function.result is Result.BITS:
            return evaluate_tree(value, scope), _ZERO
        arguments = tuple(exact for exact, _ in analyzed)
        with np.errstate(all="ignore"):
            exact = np.asarray(function.numpy(*arguments))
        if value.dtype is DType.BOOL:
            return exact, _ZERO
        propagated = (
            _propagated_error(function.numpy, arguments, position, error, exact)
            for position, (_, error) in enumerate(analyzed)
        )
        return exact, reduce(np.add, propagated, self._function_error(value, exact))

    def _function_error(self, call: Call, exact: Array) -> Array:
        """The rounding error of the function itself."""
        if not call.dtype.is_float or call.op in EXACT:
            return _ZERO
        eps, size = call.dtype.compute_dtype.eps, _finite_magnitude(exact)
        if call.op in _ARITHMETIC:
            return eps * size
        if self._fast and call.dtype.compute_dtype is DType.F32:
            return np.maximum(_FAST_ERROR * size, _MIN_FAST_ERROR)
        return eps * size * (_DIVISION_ERROR if call.op in _DIVISIONS else _FUNCTION_ERROR)


def _finite_magnitude(exact: Array) -> Array:
    return np.nan_to_num(np.abs(exact), nan=0.0, posinf=0.0)


def _rounding_error(exact: Array, dtype: DType) -> Array:
    """The rounding error of a number in the compute type of ``dtype``."""
    if not dtype.is_float:
        return _ZERO
    with np.errstate(all="ignore"):
        rounded = np.asarray(exact).astype(dtype.compute_dtype.numpy).astype(np.float64)
        return np.nan_to_num(np.abs(rounded - exact), nan=0.0, posinf=0.0)


def _propagated_error(
    function: Callable[..., Any],
    arguments: tuple[Array, ...],
    position: int,
    error: Array,
    exact: Array,
) -> Array:
    """The largest change of a result when one argument is off by its error in either direction."""
    if not np.any(error):
        return _ZERO
    largest: Array = _ZERO
    for sign in (-1, 1):
        changed_arguments = list(arguments)
        changed_arguments[position] = arguments[position] + sign * error
        with np.errstate(all="ignore"):
            difference = np.asarray(function(*changed_arguments)).astype(np.float64) - exact
        largest = np.maximum(largest, np.nan_to_num(np.abs(difference), nan=0.0, posinf=0.0))
    return largest


# ---- sums ----------------------------------------------------------------------------------------


def sum_error(count: Any, norm: Array, total: Array, eps: float) -> Array:
    """The error of a sum of ``count`` terms, from the terms' 2-norm."""
    return np.asarray(_ERROR_RATIO * eps * np.sqrt(count) * (norm + _finite_magnitude(total)))


def reduced_error(
    kind: ReductionKind, terms: Array, errors: Array, result: Array, eps: float
) -> Array:
    """The error of a reduction along the last axis, including the terms' own errors."""
    errors = np.broadcast_to(errors, terms.shape)
    if kind is ReductionKind.SUM:
        norm = np.linalg.norm(_finite_magnitude(terms), axis=-1)
        return np.asarray(sum_error(terms.shape[-1], norm, result, eps) + errors.sum(axis=-1))
    if kind is ReductionKind.PROD:
        return np.asarray(
            _finite_magnitude(result)
            * (_product_error_factor(terms.shape[-1], eps) + _relative_error(errors, terms).sum(-1))
        )
    if kind in (ReductionKind.MAX, ReductionKind.MIN):
        return np.asarray(errors.max(axis=-1, initial=0.0))
    return _ZERO


def running_error(
    kind: ReductionKind, terms: Array, errors: Array, result: Array, eps: float
) -> Array:
    """The error of a scan along the last axis."""
    errors = np.broadcast_to(errors, terms.shape)
    count = np.arange(1, terms.shape[-1] + 1)
    if kind is ReductionKind.SUM:
        norm = np.sqrt(np.cumsum(np.square(_finite_magnitude(terms)), axis=-1))
        return np.asarray(
            sum_error(count, norm, _running_peak(result), eps) + np.cumsum(errors, axis=-1)
        )
    if kind is ReductionKind.PROD:
        carried = np.cumsum(_relative_error(errors, terms), axis=-1)
        return np.asarray(_finite_magnitude(result) * (_product_error_factor(count, eps) + carried))
    if kind is ReductionKind.LOGSUMEXP:
        step_error = _FUNCTION_ERROR * eps * (_running_peak(result) + 1)
        return step_error * np.sqrt(count) + np.maximum.accumulate(errors, axis=-1)
    return np.maximum.accumulate(errors, axis=-1)


def product_error(
    left: Array, right: Array, total: Array, eps: float, *, coarse: bool = False
) -> Array:
    """The error of ``left @ right``, with products added in a type of unit roundoff ``eps``.

    ``coarse``: the operands have so few bits that most additions are exact (products of 8-bit
    floats in f32); exact additions are not counted.
    """
    norm, count = norm_of_products(left, right), float(left.shape[-1])
    if coarse:
        peak = float((_ERROR_RATIO * norm + _finite_magnitude(total)).max(initial=0.0))
        count = _rounded_terms(left, right, 2 * eps * peak)
    return sum_error(count, norm, total, eps) + eps * _finite_magnitude(total)


def _rounded_terms(left: Array, right: Array, spacing: float) -> float:
    """The maximum number of terms of a sum of products that have bits below ``spacing``, and so are
    rounded when added to a sum whose last bit is at most ``spacing``."""
    (left_bits, left_shares), (right_bits, right_shares) = _last_bits(left), _last_bits(right)
    with np.errstate(divide="ignore"):
        has_low_bits = np.add.outer(left_bits, right_bits) < np.log2(spacing)
    mean = left.shape[-1] * float(
        (np.multiply.outer(left_shares, right_shares) * has_low_bits).sum()
    )
    # An upper bound for independent terms (the deviation of a Poisson distribution).
    return min(
        float(left.shape[-1]), mean + _ERROR_RATIO * np.sqrt(mean) + _ERROR_RATIO if mean else 0.0
    )


def _last_bits(operand: Array) -> tuple[Array, Array]:
    """Exponents of the elements' last bits, and the share of elements with each."""
    fraction, exponent = np.frexp(_finite_magnitude(operand))
    mantissa = np.ldexp(fraction, 53).astype(np.int64)
    trailing_zeros = np.log2(np.where(mantissa == 0, 1, mantissa & -mantissa)).astype(int)
    exponents, counts = np.unique(
        (exponent - 53 + trailing_zeros)[mantissa != 0], return_counts=True
    )
    return exponents, counts / max(operand.size, 1)


def operand_error(left: Array, right: Array, left_error: Array, right_error: Array) -> Array:
    """The error of ``left @ right`` from independent errors of the operands' elements."""
    error: Array = _ZERO
    if np.any(left_error):
        error = error + norm_of_products(left_error, right)
    if np.any(right_error):
        error = error + norm_of_products(left, right_error)
    return _ERROR_RATIO * error


def scattered_error(
    operation: Scatter, result: Array, positions: Array, value: Array, errors: Array
) -> Array:
    """The error of values combined into elements of a buffer, in any order."""
    count, squares, propagated = (np.zeros(result.size) for _ in range(3))
    np.add.at(count, positions, 1)
    np.add.at(squares, positions, np.square(_finite_magnitude(value)))
    np.add.at(propagated, positions, errors)
    total = result.reshape(-1)
    eps = operation.value.dtype.compute_dtype.eps
    if operation.kind not in (ReductionKind.SUM, ReductionKind.PROD):
        return propagated.reshape(result.shape)
    # The initial value of the element is one more term.
    norm = (
        np.sqrt(squares) + _finite_magnitude(total)
        if operation.kind is ReductionKind.SUM
        else _finite_magnitude(total)
    )
    return (sum_error(count, norm, total, eps) + propagated).reshape(result.shape)


def scored_error(
    operation: Attention, q: Array, k: Array, products: Array, scores: Array, errors: list[Array]
) -> Array:
    """The error of attention's scores: ``products`` after scaling, capping and masking."""
    eps, transposed_keys = operation.q.dtype.compute_dtype.eps, np.swapaxes(k, -1, -2)
    scale = abs(operation.scale)
    error = scale * product_error(q, transposed_keys, products / (operation.scale or 1.0), eps)
    error = error + scale * operand_error(
        q, transposed_keys, errors[0], np.swapaxes(errors[1], -1, -2)
    )
    error = error + _FUNCTION_ERROR * eps * _finite_magnitude(scores)
    if operation.cap is not None:
        error = error + _FAST_ERROR * operation.cap
    is_additive = operation.mask is not None and operation.mask.dtype is not DType.BOOL
    return error + errors[3] if is_additive else error


def averaged_error(
    operation: Attention,
    weights: Array,
    v: Array,
    result: Array,
    score_error: Array,
    value_error: Array,
) -> Array:
    """The error of the average of values, from the errors of the weights' scores and the rounding
    of weights to the values' type for the products."""
    dtype = operation.v.dtype
    weights = np.nan_to_num(weights)
    eps = dtype.compute_dtype.eps
    relative_score_error = np.maximum(score_error, 0) + (
        _FUNCTION_ERROR * eps if dtype.eps == eps else _FAST_ERROR
    )
    relative = np.nan_to_num(weights * relative_score_error)
    error = relative @ _finite_magnitude(v) + relative.sum(-1, keepdims=True) * _finite_magnitude(
        result
    )
    rounded_weights = dtype.eps * weights
    error = error + operand_error(weights, v, rounded_weights, value_error)
    total = np.linalg.norm(rounded_weights, axis=-1)[..., None]
    error = error + _ERROR_RATIO * total * _finite_magnitude(result)
    return np.asarray(error + product_error(weights, v, result, eps))


def norm_of_products(left: Array, right: Array) -> Array:
    """The 2-norm of the products that ``left @ right`` adds up for each element."""
    first, first_scale = _squares(left)
    second, second_scale = _squares(right)
    return np.sqrt((first @ second).astype(np.float64)) * (first_scale * second_scale)


def _squares(operand: Array) -> tuple[Array, float]:
    """The squares of the elements divided by the largest, which fit float32, and the largest."""
    size = _finite_magnitude(operand)
    greatest = float(size.max(initial=0.0)) or 1.0
    return np.square((size / greatest).astype(np.float32)), greatest


def _product_error_factor(count: Any, eps: float) -> Any:
    return _ERROR_RATIO * eps * np.sqrt(count)


def _running_peak(result: Array) -> Array:
    return np.maximum.accumulate(_finite_magnitude(result), axis=-1)


def _relative_error(errors: Array, terms: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.nan_to_num(errors / np.abs(terms), nan=0.0, posinf=0.0)
