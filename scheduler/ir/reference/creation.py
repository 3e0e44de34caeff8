"""Reference of ops that make tensors, of conversions, and of sizes as values."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from scheduler.ir.dtypes import DType
from scheduler.ir.ops import UnsupportedOpError
from scheduler.ir.reference.rule import Args, Array, Rule, held, held_or, is_float


def converted(x: Array, dtype: DType | None) -> Array:
    """The array as the reference holds that type; itself where it is held so already.

    Floats become integers towards zero, and booleans by being other than zero. Floats keep all
    their digits: rounding is ``evaluate``'s option.
    """
    if dtype is None:
        return x
    if dtype is DType.BOOL:
        return x if x.dtype == np.bool_ else x != 0
    if is_float(x) and not dtype.is_float:
        # By way of int64, so that a type too narrow wraps around as torch's conversion does.
        return np.trunc(x).astype(np.int64).astype(held(dtype))
    return x.astype(held(dtype), copy=False)


def _to(a: Args) -> Array:
    result = converted(a["self"], a.get("dtype"))
    return result.copy() if a.get("copy") and result is a["self"] else result


def _natural(values: tuple[Any, ...]) -> type:
    """Torch's default type: float if any value is, else int64."""
    return np.float64 if any(isinstance(v, float) for v in values) else np.int64


def _arange(a: Args) -> Array:
    start, end, step = a.get("start", 0), a["end"], a.get("step", 1)
    dtype = held_or(a["dtype"], _natural((start, end, step)))
    count = max(0, math.ceil((end - start) / step))
    return np.asarray(start + np.arange(count) * step).astype(dtype)


def _linspace(a: Args) -> Array:
    return np.linspace(a["start"], a["end"], a["steps"]).astype(held_or(a["dtype"], np.float64))


def _full(a: Args) -> Array:
    value = a["fill_value"]
    default = np.bool_ if isinstance(value, bool) else _natural((value,))
    return np.full(a["size"], value, dtype=held_or(a["dtype"], default))


def _like(value: Any) -> Rule:
    """A tensor of one value in the size that is given, or in that of ``self``."""

    def rule(a: Args) -> Array:
        x = a["self"]
        fill = a.get("fill_value", value)
        return np.full(a.get("size", x.shape), fill, dtype=held_or(a["dtype"], x.dtype))

    return rule


def _sized(value: Any) -> Rule:
    return lambda a: np.full(a["size"], value, dtype=held_or(a["dtype"], np.float64))


def _eye(a: Args) -> Array:
    return np.eye(a["n"], a.get("m"), dtype=held_or(a["dtype"], np.float64))


def _scalar_tensor(a: Args) -> Array:
    default = np.bool_ if isinstance(a["s"], bool) else _natural((a["s"],))
    return np.asarray(a["s"], dtype=held_or(a["dtype"], default))


def _fill(a: Args) -> Array:
    return np.broadcast_to(np.asarray(a["value"]), a["self"].shape).astype(a["self"].dtype)


def _copy(a: Args) -> Array:
    return np.broadcast_to(a["src"], a["self"].shape).astype(a["self"].dtype)


def _to_other(a: Args) -> Array:
    return np.asarray(a["self"].astype(a["other"].dtype, copy=bool(a.get("copy"))))


def _dispatched(a: Args) -> Array:
    return _to_other(a) if "other" in a else _to(a)


def _nothing(_a: Args) -> None:
    """Assertions of the export: what they ask is checked by the shapes themselves."""


def _assert(a: Args) -> None:
    if not np.all(a["self"]):
        raise UnsupportedOpError("aten._assert", str(a.get("assert_msg", "assertion failed")))


def _stride(_a: Args) -> int:
    raise UnsupportedOpError("aten.sym_stride.int", "strides as values")


_LIMITS = {"sym_max": max, "sym_min": min}
_OPERATORS = (
    *("add", "sub", "mul", "floordiv", "truediv", "mod", "pow"),
    *("eq", "ne", "lt", "le", "gt", "ge", "and_", "or_"),
)


def _two(function: Callable[[Any, Any], Any]) -> Rule:
    return lambda a: function(a["a"], a["b"])


def _one(function: Callable[[Any], Any]) -> Rule:
    return lambda a: function(a["a"])


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "arange": _arange,
        "linspace": _linspace,
        "full": _full,
        "zeros": _sized(0),
        "ones": _sized(1),
        # Whoever reads an empty tensor reads anything: zeros are as good.
        "empty": _sized(0),
        "full_like": _like(None),
        "zeros_like": _like(0),
        "ones_like": _like(1),
        "empty_like": _like(0),
        "new_full": _like(None),
        "new_zeros": _like(0),
        "new_ones": _like(1),
        "new_empty": _like(0),
        "zero": lambda a: np.zeros_like(a["self"]),
        "fill": _fill,
        "copy": _copy,
        "scalar_tensor": _scalar_tensor,
        "eye": _eye,
        "to": _dispatched,
        "_to_copy": lambda a: _to({**a, "copy": True}),
        "type_as": _to_other,
        "_assert_tensor_metadata": _nothing,
        "_assert_scalar": _assert,
        "_assert_async": _assert,
        "sym_constrain_range": _nothing,
        "sym_constrain_range_for_size": _nothing,
        "sym_size": lambda a: int(a["self"].shape[a["dim"]]),
        "sym_numel": lambda a: int(a["self"].size),
        "sym_stride": _stride,
        **{f"_operator.{name}": _two(getattr(operator, name)) for name in _OPERATORS},
        "_operator.neg": _one(operator.neg),
        "_operator.pos": _one(operator.pos),
        **{f"torch.{name}": _two(function) for name, function in _LIMITS.items()},
        "torch.sym_float": _one(float),
        "torch.sym_int": _one(int),
        "torch.sym_not": _one(operator.not_),
        "torch.sym_sqrt": _one(math.sqrt),
        "torch._sym_sqrt": _one(math.sqrt),
        "math.trunc": _one(math.trunc),
        "math.floor": _one(math.floor),
        "math.ceil": _one(math.ceil),
        "builtins.round": _one(round),
    }
)
