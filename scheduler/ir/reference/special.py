"""Reference of special functions and of tests on numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from scheduler.ir.dtypes import DType
from scheduler.ir.reference.rule import (
    OWN_DTYPE,
    Args,
    Array,
    Rule,
    UnsupportedUseError,
    as_float,
    is_float,
)

_MAX_ORDER = 10_000  # terms of a multivariate gamma function


def scipy_unary(name: str) -> Rule:
    """Return SciPy's function of that name, applied to ``self`` (or ``x``)."""

    def rule(a: Args) -> Any:
        from scipy import special  # noqa: PLC0415

        return getattr(special, name)(as_float(a["self"] if "self" in a else a["x"]))

    return rule


def scipy_binary(name: str) -> Rule:
    """Return SciPy's function of that name, applied to ``self`` and ``other``."""

    def rule(a: Args) -> Any:
        from scipy import special  # noqa: PLC0415

        return getattr(special, name)(as_float(a["self"]), as_float(a["other"]))

    return rule


def orthogonal_polynomial(name: str, shifted: bool = False) -> Rule:
    """SciPy's polynomial of ``x`` of integer degree ``n``; 0 if negative, as in torch."""

    def rule(a: Args) -> Any:
        from scipy import special  # noqa: PLC0415

        x, n = as_float(a["x"]), np.trunc(as_float(a["n"])).astype(np.int64)
        x = 2 * x - 1 if shifted else x
        return np.where(n < 0, 0.0, getattr(special, name)(np.maximum(n, 0), x))

    return rule


def chebyshev_difference(sign: int, shifted: bool = False) -> Rule:
    """Chebyshev polynomials of the third and fourth kind: U_n minus, or plus, U_(n - 1)."""

    def rule(a: Args) -> Any:
        from scipy import special  # noqa: PLC0415

        x, n = as_float(a["x"]), np.trunc(as_float(a["n"])).astype(np.int64)
        x = 2 * x - 1 if shifted else x
        high = special.eval_chebyu(np.maximum(n, 0), x)
        low = np.where(n > 0, special.eval_chebyu(np.maximum(n - 1, 0), x), 0.0)
        return np.where(n < 0, 0.0, high + sign * low)

    return rule


def polygamma(a: Args) -> Any:
    from scipy import special  # noqa: PLC0415

    return special.polygamma(a["n"], as_float(a["self"]))


def multigammaln(a: Args) -> Any:
    from scipy import special  # noqa: PLC0415

    x, p = as_float(a["self"]), a["p"]
    if not 1 <= p <= _MAX_ORDER:
        raise UnsupportedUseError(f"a multivariate gamma function of order {p} is not supported")
    total = np.full(x.shape, p * (p - 1) / 4 * math.log(math.pi))
    for j in range(p):
        total = total + special.gammaln(x - j / 2)
    return total


def logit(a: Args) -> Any:
    x, eps = as_float(a["self"]), a["eps"]
    x = x if eps is None else np.minimum(np.maximum(x, eps), 1 - eps)
    return np.log(x / (1 - x))


xlogy, xlog1py = scipy_binary("xlogy"), scipy_binary("xlog1py")


def sinc(a: Args) -> Any:
    return np.sinc(as_float(a["self"]))


def spherical_bessel_j0(a: Args) -> Any:
    x = as_float(a["x"])
    return np.where(np.isinf(x), 0.0, np.sinc(x / np.pi))


def scaled_by(factor: float) -> Rule:
    return lambda a: as_float(a["self"]) * factor


def logaddexp2(a: Args) -> Any:
    return np.logaddexp2(a["self"], a["other"])


def ldexp(a: Args) -> Any:
    return as_float(a["self"]) * np.exp2(as_float(a["other"]))


def float_power(a: Args) -> Any:
    return np.power(as_float(a["self"]), as_float(a["exponent"]))


def heaviside(a: Args) -> Any:
    x = a["self"]
    return np.where(x == 0, a["values"], (x > 0).astype(x.dtype))


def fmax(a: Args) -> Any:
    return np.fmax(a["self"], a["other"])


def fmin(a: Args) -> Any:
    return np.fmin(a["self"], a["other"])


def signbit(a: Args) -> Any:
    x = a["self"]
    return np.signbit(x) if is_float(x) else np.asarray(x) < 0


def isposinf(a: Args) -> Any:
    return as_float(a["self"]) == np.inf


def isneginf(a: Args) -> Any:
    return as_float(a["self"]) == -np.inf


def isreal(a: Args) -> Any:
    return np.isreal(a["self"])


def angle(a: Args) -> Any:
    x = as_float(a["self"])
    if np.iscomplexobj(x):
        return np.angle(x)
    return np.where(np.isnan(x), x, np.where(x < 0, np.pi, 0.0))


def isclose(a: Args) -> Any:
    x, y = a["self"], a["other"]
    return np.isclose(x, y, a["rtol"], a["atol"], a["equal_nan"])


def _shifted(a: Args) -> tuple[Array, Array, Any]:
    """Return both operands in their common type, and the type."""
    common = np.result_type(a["self"], a["other"])
    x, y = (np.asarray(a[name]).astype(common) for name in ("self", "other"))
    return x, y, common


def left_shift(a: Args) -> Any:
    x, y, common = _shifted(a)
    if common.kind == "f":
        return x * np.exp2(y)
    bits = common.itemsize * 8
    inside = (y >= 0) & (y < bits)
    return np.where(inside, np.left_shift(x, np.where(inside, y, 0)), 0).astype(common)


def right_shift(a: Args) -> Any:
    x, y, common = _shifted(a)
    if common.kind == "f":
        return x / np.exp2(y)
    bits = common.itemsize * 8
    inside = (y >= 0) & (y < bits)
    gone = np.where(x < 0, -1, 0)
    return np.where(inside, np.right_shift(x, np.where(inside, y, 0)), gone).astype(common)


def log_sigmoid_forward(a: Args) -> Any:
    x = as_float(a["self"])
    small = np.exp(-np.abs(x))
    return np.minimum(x, 0) - np.log1p(small), small


def gcd(a: Args) -> Any:
    return np.gcd(a["self"], a["other"])


def lcm(a: Args) -> Any:
    return np.lcm(a["self"], a["other"])


def nextafter(a: Args) -> Any:
    """Return the next value in the tensor's own type, though values are float64 here."""
    dtype = a[OWN_DTYPE]
    if dtype is None or dtype.is_float8:
        raise UnsupportedUseError("nextafter in an unknown or 8-bit type is not supported")
    x, y = np.broadcast_arrays(as_float(a["self"]), as_float(a["other"]))
    if dtype is DType.BF16:
        return _next_bfloat16(x.astype(np.float32), y)
    return np.nextafter(x.astype(dtype.numpy), y.astype(dtype.numpy))


def _next_bfloat16(x: Array, y: Array) -> Array:
    """bfloat16 is the upper half of a float32: its neighbours' bits differ by 1 there."""
    bits = x.view(np.int32)
    away = (y > x) == (x > 0)
    stepped = np.where(away, bits + 2**16, bits - 2**16).astype(np.int32).view(np.float32)
    least = np.copysign(np.float32(2.0**-133), y)
    result = np.where(x == y, y, np.where(x == 0, least, stepped))
    return np.where(np.isnan(x) | np.isnan(y), np.nan, result)


def airy(a: Args) -> Any:
    from scipy import special  # noqa: PLC0415

    return special.airy(as_float(a["x"]))[0]


def frexp(a: Args) -> Any:
    mantissa, exponent = np.frexp(as_float(a["self"]))
    return mantissa, exponent.astype(np.int32)


def positive(a: Args) -> Any:
    return a["self"]
