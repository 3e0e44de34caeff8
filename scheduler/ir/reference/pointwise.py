"""Reference of the pointwise family."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from scheduler.ir.dtypes import DType
from scheduler.ir.ops import UnsupportedOpError
from scheduler.ir.reference.rule import OWN_DTYPE, Args, Array, Rule, as_float, is_float

_LARGEST = MappingProxyType(
    {
        DType.F16: 65504.0,
        DType.BF16: (2 - 2.0**-7) * 2.0**127,
        DType.F32: (2 - 2.0**-23) * 2.0**127,
        DType.F64: (2 - 2.0**-52) * 2.0**1023,
    }
)
_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


def erf(x: Array) -> Array:
    """The error function, as exact as the C library's; NumPy has none."""
    flat = as_float(x).ravel()
    values = np.fromiter(map(math.erf, flat.tolist()), dtype=np.float64, count=flat.size)
    return values.reshape(np.shape(x))


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)) without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(np.asarray(x) >= 0, 1 / (1 + small), small / (1 + small))


def softplus(x: Array, beta: float, threshold: float) -> Array:
    """log(1 + exp(beta x)) / beta; x itself above the threshold."""
    scaled = as_float(x) * beta
    soft = (np.maximum(scaled, 0) + np.log1p(np.exp(-np.abs(scaled)))) / beta
    return np.where(scaled > threshold, x, soft)


def gelu(x: Array, approximate: str) -> Array:
    """Both forms: x Φ(x), and Hendrycks' tanh approximation of it."""
    if approximate == "tanh":
        return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))
    return np.asarray(0.5 * x * (1 + erf(x * math.sqrt(0.5))))


def _elu(x: Array, alpha: float, scale: float = 1.0, input_scale: float = 1.0) -> Array:
    negative = scale * alpha * np.expm1(np.minimum(x * input_scale, 0))
    return np.where(x > 0, scale * x, negative)


def _unary(function: Callable[[Any], Any]) -> Rule:
    return lambda a: function(a["self"])


def _floats(function: Callable[[Any], Any]) -> Rule:
    """A function whose result is a float for integers too."""
    return lambda a: function(as_float(a["self"]))


def _rounding(function: Callable[[Any], Any]) -> Rule:
    """A function that leaves integers as they are."""
    return lambda a: function(a["self"]) if is_float(a["self"]) else np.array(a["self"])


def _binary(function: Callable[[Any, Any], Any]) -> Rule:
    return lambda a: function(a["self"], a["other"])


def _logical(function: Callable[[Any, Any], Any]) -> Rule:
    return lambda a: function(np.asarray(a["self"]) != 0, np.asarray(a["other"]) != 0)


def _scaled(value: Any, alpha: Any) -> Any:
    return value if alpha == 1 else value * alpha


def _div(a: Args) -> Any:
    x, y, mode = a["self"], a["other"], a.get("rounding_mode")
    if mode is None:
        return np.true_divide(x, y)
    if mode == "floor":
        return np.floor_divide(x, y)
    if is_float(x) or is_float(y):
        return np.trunc(np.true_divide(x, y))
    # Integers towards zero, without the detour through floats that would lose digits.
    return np.sign(x) * np.sign(y) * np.floor_divide(np.abs(x), np.abs(y))


def _pow(a: Args) -> Any:
    base, exponent = a["self"], a["exponent"]
    if is_float(base) or is_float(exponent):
        return np.power(as_float(base), exponent)
    return np.power(base, exponent)


def _clamp(a: Args) -> Any:
    result = a["self"]
    if a.get("min") is not None:
        result = np.maximum(result, a["min"])
    if a.get("max") is not None:
        result = np.minimum(result, a["max"])
    return result


def _where(a: Args) -> Any:
    return np.where(np.asarray(a["condition"]) != 0, a["self"], a["other"])


def _masked_fill(a: Args) -> Any:
    filled = np.asarray(np.where(a["mask"], a["value"], a["self"]))
    return filled.astype(a["self"].dtype, copy=False)


def _round(a: Args) -> Any:
    if not is_float(a["self"]):
        return np.array(a["self"])
    return np.round(a["self"], a.get("decimals", 0))


def _nan_to_num(a: Args) -> Any:
    x, high, low = a["self"], a["posinf"], a["neginf"]
    if not is_float(x):
        return x.copy()
    if high is None or low is None:
        # The default is the largest value of the tensor's own type.
        if a[OWN_DTYPE] not in _LARGEST:
            raise UnsupportedOpError("aten.nan_to_num.default", "limits by default, type not known")
        largest = _LARGEST[a[OWN_DTYPE]]
        high, low = (largest if high is None else high), (-largest if low is None else low)
    return np.nan_to_num(x, nan=a["nan"] or 0.0, posinf=high, neginf=low)


def _prelu(a: Args) -> Any:
    x, weight = a["self"], a["weight"]
    if weight.size > 1:
        weight = weight.reshape(1, -1, *(1,) * (x.ndim - 2))
    return np.where(x > 0, x, weight * x)


def _glu(a: Args) -> Any:
    first, second = np.split(a["self"], 2, axis=a["dim"])
    return first * sigmoid(second)


def _dropout(a: Args) -> Any:
    if a["train"] and a["p"] > 0:
        raise UnsupportedOpError("aten.dropout.default", "dropout in training is random")
    return a["input"]


def _relu(x: Array) -> Array:
    return np.maximum(x, 0)


def _silu(x: Array) -> Array:
    return x * sigmoid(x)


def _hard(x: Array) -> Array:
    return np.clip(x + 3.0, 0.0, 6.0) / 6.0


_UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": np.negative,
    "abs": np.abs,
    "square": np.square,
    "sign": np.sign,
    "relu": _relu,
    "relu6": lambda x: np.clip(x, 0, 6),
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "bitwise_not": np.invert,
    "logical_not": lambda x: np.asarray(x) == 0,
}
_FLOATS: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "erf": erf,
    "erfc": np.vectorize(math.erfc, otypes=[np.float64]),
    "sigmoid": sigmoid,
    "silu": _silu,
    "hardswish": lambda x: x * _hard(x),
    "hardsigmoid": _hard,
    "mish": lambda x: x * np.tanh(softplus(x, 1.0, np.inf)),
    "log_sigmoid": lambda x: -softplus(-x, 1.0, np.inf),
    "selu": lambda x: _elu(x, _SELU_ALPHA, _SELU_SCALE),
}
_ROUNDING: dict[str, Callable[[Any], Any]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "frac": lambda x: x - np.trunc(x),
}
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "mul": np.multiply,
    "true_divide": np.true_divide,
    "floor_divide": np.floor_divide,
    "remainder": np.remainder,
    "fmod": np.fmod,
    "atan2": np.arctan2,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "logaddexp": np.logaddexp,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "__and__": np.bitwise_and,
    "__or__": np.bitwise_or,
    "__xor__": np.bitwise_xor,
    "__lshift__": np.left_shift,
    "__rshift__": np.right_shift,
}
_LOGICAL: dict[str, Callable[[Any, Any], Any]] = {
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        **{name: _unary(function) for name, function in _UNARY.items()},
        **{name: _floats(function) for name, function in _FLOATS.items()},
        **{name: _rounding(function) for name, function in _ROUNDING.items()},
        **{name: _binary(function) for name, function in _BINARY.items()},
        **{name: _logical(function) for name, function in _LOGICAL.items()},
        "add": lambda a: np.add(a["self"], _scaled(a["other"], a["alpha"])),
        "sub": lambda a: np.subtract(a["self"], _scaled(a["other"], a["alpha"])),
        "rsub": lambda a: np.subtract(a["other"], _scaled(a["self"], a["alpha"])),
        "div": _div,
        "pow": _pow,
        "round": _round,
        "clamp": _clamp,
        "clip": _clamp,
        "clamp_min": _clamp,
        "clamp_max": _clamp,
        "hardtanh": lambda a: np.clip(a["self"], a["min_val"], a["max_val"]),
        "where": _where,
        "masked_fill": _masked_fill,
        "nan_to_num": _nan_to_num,
        "gelu": lambda a: gelu(a["self"], a["approximate"]),
        "elu": lambda a: _elu(a["self"], a["alpha"], a["scale"], a["input_scale"]),
        "celu": lambda a: np.where(
            a["self"] > 0, a["self"], a["alpha"] * np.expm1(np.minimum(a["self"] / a["alpha"], 0))
        ),
        "leaky_relu": lambda a: np.where(a["self"] > 0, a["self"], a["self"] * a["negative_slope"]),
        "softplus": lambda a: softplus(a["self"], a["beta"], a["threshold"]),
        "threshold": lambda a: np.where(a["self"] > a["threshold"], a["self"], a["value"]),
        "hardshrink": lambda a: np.where(np.abs(a["self"]) > a["lambd"], a["self"], 0.0),
        "softshrink": lambda a: np.sign(a["self"]) * np.maximum(np.abs(a["self"]) - a["lambd"], 0),
        "prelu": _prelu,
        "glu": _glu,
        "lerp": lambda a: a["self"] + a["weight"] * (a["end"] - a["self"]),
        "addcmul": lambda a: a["self"] + a["value"] * (a["tensor1"] * a["tensor2"]),
        "addcdiv": lambda a: a["self"] + a["value"] * (a["tensor1"] / a["tensor2"]),
        "dropout": _dropout,
        "feature_dropout": _dropout,
        "alpha_dropout": _dropout,
    }
)
