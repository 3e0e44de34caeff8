"""Reference of the pointwise family."""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.ir import numerics
from scheduler.ir.encoding import round_to_dtype
from scheduler.ir.pointwise import FUNCTIONS
from scheduler.ir.reference.rule import (
    OWN_DTYPE,
    Args,
    Rule,
    UnsupportedUseError,
    as_float,
    is_float,
    is_inexact,
    wrap_like,
)


def unary(name: str) -> Rule:
    """Return the pointwise function of that name, applied to ``self``."""
    function = FUNCTIONS[name].numpy
    return lambda a: function(a["self"])


def sign(a: Args) -> Any:
    """sign; booleans are unchanged."""
    x = np.asarray(a["self"])
    return x if x.dtype == np.bool_ else FUNCTIONS["sign"].numpy(x)


def float_unary(name: str) -> Rule:
    """As ``unary``, for a function whose result is a float for integers too."""
    function = FUNCTIONS[name].numpy
    return lambda a: function(as_float(a["self"]))


def identity_on_integers(name: str) -> Rule:
    """As ``unary``, for a function that does not change integers."""
    function = FUNCTIONS[name].numpy
    return lambda a: function(a["self"]) if is_float(a["self"]) else np.array(a["self"])


def _pair(a: Args) -> tuple[Any, Any]:
    """Return ``self`` and ``other``; a number is converted to the other's integer type."""
    x, y = a["self"], a["other"]
    return wrap_like(x, y), wrap_like(y, x)


def binary(name: str) -> Rule:
    """Return the pointwise function of that name, applied to ``self`` and ``other``."""
    function = FUNCTIONS[name].numpy
    return lambda a: function(*_pair(a))


def float_binary(name: str) -> Rule:
    """As ``binary``, for a function whose result is a float for integers too."""
    function = FUNCTIONS[name].numpy
    return lambda a: function(as_float(a["self"]), as_float(a["other"]))


def logical(name: str) -> Rule:
    """As ``binary``, applied to whether the operands are nonzero."""
    function = FUNCTIONS[name].numpy
    return lambda a: function(np.asarray(a["self"]) != 0, np.asarray(a["other"]) != 0)


def _scaled(value: Any, alpha: Any) -> Any:
    return value if alpha == 1 else value * wrap_like(alpha, value)


def div(a: Args) -> Any:
    x, y, mode = a["self"], a["other"], a.get("rounding_mode")
    if mode is None:
        return np.true_divide(x, y)
    if mode == "floor":
        return numerics.floordiv(x, y)
    if is_float(x) or is_float(y):
        quotient = np.true_divide(x, y)
        dtype = a[OWN_DTYPE]
        return np.trunc(
            quotient if dtype is None else round_to_dtype(quotient, dtype.compute_dtype)
        )
    return numerics.truncdiv(x, y)


def power(a: Args) -> Any:
    base, exponent = a["self"], a["exponent"]
    if is_inexact(base) or is_inexact(exponent):
        return np.power(as_float(base), exponent)
    return numerics.power(base, exponent)


def clamp(a: Args) -> Any:
    result = a["self"]
    if a.get("min") is not None:
        result = np.maximum(result, wrap_like(a["min"], result))
    if a.get("max") is not None:
        result = np.minimum(result, wrap_like(a["max"], result))
    return result


def where(a: Args) -> Any:
    if "self" not in a:
        return np.nonzero(np.atleast_1d(a["condition"]))
    return np.where(np.asarray(a["condition"]) != 0, a["self"], a["other"])


def masked_fill(a: Args) -> Any:
    filled = np.asarray(np.where(a["mask"], a["value"], a["self"]))
    return filled.astype(a["self"].dtype, copy=False)


def round_op(a: Args) -> Any:
    if not is_float(a["self"]):
        return np.array(a["self"])
    return np.round(a["self"], a.get("decimals", 0))


def nan_to_num(a: Args) -> Any:
    x, high, low = a["self"], a["posinf"], a["neginf"]
    if not is_float(x):
        return x.copy()
    if high is None or low is None:
        # The default is the largest value of the tensor's own type.
        if a[OWN_DTYPE] is None:
            raise UnsupportedUseError("the default limits of an unknown type are not supported")
        largest = a[OWN_DTYPE].largest
        high, low = (largest if high is None else high), (-largest if low is None else low)
    return np.nan_to_num(x, nan=a["nan"] or 0.0, posinf=high, neginf=low)


def add(a: Args) -> Any:
    x, y = _pair(a)
    return np.add(x, _scaled(y, a["alpha"]))


def sub(a: Args) -> Any:
    x, y = _pair(a)
    return np.subtract(x, _scaled(y, a["alpha"]))


def rsub(a: Args) -> Any:
    x, y = _pair(a)
    return np.subtract(y, _scaled(x, a["alpha"]))


def lerp(a: Args) -> Any:
    """Linear interpolation, computed from the nearer end."""
    x, y, weight = a["self"], a["end"], np.asarray(a["weight"])
    difference = y - x
    return np.where(np.abs(weight) < 0.5, x + weight * difference, y - difference * (1 - weight))


def addcmul(a: Args) -> Any:
    return a["self"] + a["value"] * (a["tensor1"] * a["tensor2"])


def addcdiv(a: Args) -> Any:
    return a["self"] + a["value"] * (a["tensor1"] / a["tensor2"])


def square(a: Args) -> Any:
    return np.square(a["self"])


def frac(a: Args) -> Any:
    return a["self"] - np.trunc(a["self"])


def logical_not(a: Args) -> Any:
    return np.asarray(a["self"]) == 0
