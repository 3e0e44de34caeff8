"""Numeric functions that NumPy lacks, or computes differently from torch.

SciPy is imported on use: lowering and compiling do not need it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def erf(x: Any) -> Any:
    """The error function, in float64; the result has x's own type."""
    from scipy import special  # noqa: PLC0415

    return _in_float64(special.erf, x)


def erfc(x: Any) -> Any:
    """1 - erf(x), in float64, without the difference's cancellation."""
    from scipy import special  # noqa: PLC0415

    return _in_float64(special.erfc, x)


def erfinv(x: Any) -> Any:
    """The inverse of erf, in float64: infinite at -1 and 1, NaN beyond."""
    from scipy import special  # noqa: PLC0415

    return _in_float64(special.erfinv, x)


def scipy_function(name: str) -> Callable[[Any], Any]:
    """SciPy's special function of that name, in float64."""

    def function(x: Any) -> Any:
        from scipy import special  # noqa: PLC0415

        return _in_float64(getattr(special, name), x)

    return function


def _in_float64(function: Any, x: Any) -> Any:
    x = np.asarray(x)
    return np.asarray(function(x.astype(np.float64))).astype(x.dtype)


def make_complex(re: Any, im: Any) -> Any:
    """Return complex numbers with these parts. (``re + 1j * im`` turns infinities into NaN.)"""
    re, im = np.broadcast_arrays(re, im)
    result = np.empty(re.shape, dtype=np.result_type(re, im, np.complex64))
    result.real, result.imag = re, im
    return result


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)) without overflow."""
    if np.iscomplexobj(x):
        return 1 / (1 + np.exp(-np.asarray(x)))
    small = np.exp(-np.abs(x))
    return np.where(np.asarray(x) >= 0, 1 / (1 + small), small / (1 + small))


def rsqrt(x: Any) -> Any:
    """1 / sqrt(x)."""
    return 1 / np.sqrt(x)


def truncdiv(a: Any, b: Any) -> Any:
    """Division rounded towards zero: C's for integers, the truncated quotient for floats. Integer
    division by 0 is as in ``floordiv``."""
    if _any_float(a, b):
        return np.trunc(np.true_divide(a, b))
    # Floats would lose digits.
    quotient, rest = np.floor_divide(a, b), np.remainder(a, b)
    upwards = (rest != 0) & ((np.asarray(a) < 0) != (np.asarray(b) < 0))
    return _where_zero(b, ~np.zeros_like(quotient), quotient + upwards.astype(quotient.dtype))


def floordiv(a: Any, b: Any) -> Any:
    """Division rounded towards minus infinity. For integer division by 0 torch raises an error or
    returns the device's result; here all bits of the quotient are set, as in kernels."""
    quotient = np.floor_divide(a, b)
    if _any_float(a, b):
        return quotient
    return _where_zero(b, ~np.zeros_like(quotient), quotient)


def power(a: Any, b: Any) -> Any:
    """Power. With negative integer exponents, as in torch, integers but 1 and -1 give 0."""
    if not np.issubdtype(np.result_type(a, b), np.integer):
        return np.power(a, b)
    result = np.power(a, np.maximum(b, 0))
    inverse = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0))
    return np.where(np.less(b, 0), inverse.astype(result.dtype), result)


def remainder(a: Any, b: Any) -> Any:
    """The remainder of ``floordiv``, with the divisor's sign; the dividend for integers by 0."""
    rest = np.remainder(a, b)
    return rest if _any_float(a, b) else _where_zero(b, a, rest)


def fmod(a: Any, b: Any) -> Any:
    """The remainder of ``truncdiv``, with the dividend's sign; the dividend for integers by 0."""
    rest = np.fmod(a, b)
    return rest if _any_float(a, b) else _where_zero(b, a, rest)


def _any_float(*values: Any) -> bool:
    return any(np.issubdtype(np.asarray(x).dtype, np.inexact) for x in values)


def _where_zero(divisor: Any, value: Any, other: Any) -> Any:
    return np.where(np.asarray(divisor) == 0, value, other).astype(np.asarray(other).dtype)


def to_integer(x: Any, host: Any) -> Any:
    """Convert floats to integers of the NumPy type ``host``, towards zero. Values out of range wrap
    around through int64, as in torch; results for NaN and infinities are unspecified."""
    whole = np.trunc(np.asarray(x))
    with np.errstate(invalid="ignore"):
        low = whole.astype(np.int64)
        if np.dtype(host) != np.uint64:
            return low.astype(host)
        return np.where(whole >= 2.0**63, whole.astype(np.uint64), low.astype(np.uint64))


def wrap_integer(value: int, host: Any) -> Any:
    """Convert an integer of any size to a 0-dim array of an integer type, wrapping as in C."""
    bits = 8 * np.dtype(host).itemsize
    return np.asarray(int(value) % (1 << bits), dtype=f"u{bits // 8}").astype(host)


def sign(x: Any) -> Any:
    """Return -1, 0 or 1; 0 for NaN, as in torch."""
    return np.where(np.isnan(x), 0, np.sign(x)).astype(np.asarray(x).dtype)


def digamma(x: Any) -> Any:
    """The derivative of log(gamma(x)): minus and plus infinity at 0 and -0, as in torch."""
    x = np.asarray(x)
    values = scipy_function("psi")(x)
    return np.where(x == 0, np.copysign(np.inf, -x), values).astype(x.dtype)


def lgamma(x: Any) -> Any:
    """log |gamma(x)|, infinite at both infinities, as in C."""
    return np.where(np.isinf(x), np.inf, scipy_function("gammaln")(x)).astype(np.asarray(x).dtype)


def i0(x: Any) -> Any:
    """The modified Bessel function of order 0, also where exp(x) alone would overflow; NaN at
    infinity, as in torch."""
    return _unscaled(scipy_function("i0e")(x), x)


def i1(x: Any) -> Any:
    """The modified Bessel function of order 1."""
    return _unscaled(i1e(x), x)


def i1e(x: Any) -> Any:
    """exp(-|x|) I1(x), with the sign of x also at 0."""
    return np.copysign(scipy_function("i1e")(x), x)


def _unscaled(scaled: Any, x: Any) -> Any:
    half = np.exp(np.abs(np.asarray(x, np.float64)) / 2)
    whole = np.where(np.isinf(half), np.copysign(np.inf, scaled), scaled * half * half)
    return np.where(np.isfinite(x), whole, np.nan).astype(np.asarray(x).dtype)


def round_to_float32(x: Any) -> Any:
    """Round to float32; the result has the type of ``x``."""
    x = np.asarray(x)
    with np.errstate(over="ignore"):
        return x.astype(np.float32).astype(x.dtype)


def philox(word: int) -> Callable[[Any, Any], Any]:
    """Return a function for a 32-bit word of Philox 4x32-10, from 64-bit counter and key."""

    def function(counter: Any, key: Any) -> Any:
        return _philox(counter, np.int64(0), key)[word].astype(np.asarray(counter).dtype)

    return function


def philox_word(counter: Any, upper: Any, key: Any, word: Any) -> Any:
    """Return word number ``word`` of Philox 4x32-10, for a counter in two 64-bit halves."""
    words = np.broadcast_arrays(*_philox(counter, upper, key))
    return np.choose(np.asarray(word) & 3, words).astype(np.asarray(counter).dtype)


def _philox(*parts: Any) -> tuple[Any, Any, Any, Any]:
    low, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    wide = [np.asarray(value).astype(np.int64).astype(np.uint64) for value in parts]
    (x0, x1), (x2, x3), (k0, k1) = ((value & mask, value >> low) for value in wide)
    for turn in range(10):
        p0, p1 = x0 * np.uint64(0xD2511F53), x2 * np.uint64(0xCD9E8D57)
        r0, r1 = np.uint64(turn * 0x9E3779B9), np.uint64(turn * 0xBB67AE85)
        x0, x2 = (
            (p1 >> low) ^ x1 ^ ((k0 + r0) & mask),
            (p0 >> low) ^ x3 ^ ((k1 + r1) & mask),
        )
        x1, x3 = p1 & mask, p0 & mask
    return x0, x1, x2, x3
