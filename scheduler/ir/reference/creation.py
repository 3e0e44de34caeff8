"""Reference of creation ops and window functions, conversions, and sizes as values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from scheduler.ir import numerics
from scheduler.ir.dtypes import DType
from scheduler.ir.encoding import round_to_dtype
from scheduler.ir.reference.rule import (
    OWN_DTYPE,
    Args,
    Array,
    FailedAssertionError,
    Rule,
    UnsupportedUseError,
    compute_dtype,
    compute_dtype_or,
    is_float,
    wrap_like,
)
from scheduler.limits import MAX_RESULT_ELEMENTS
from scheduler.text import one_line


def convert(x: Array, dtype: DType | None) -> Array:
    """Convert an array to the reference's type for ``dtype``; unchanged if it has it already.

    Floats become integers towards zero, and booleans by comparison with zero. Floats are not
    rounded, which is an option of ``evaluate``, except to 8 bits, where rounding is intended.
    """
    if dtype is None:
        return x
    if dtype is DType.BOOL:
        return x if x.dtype == np.bool_ else x != 0
    if np.iscomplexobj(x) and not dtype.is_complex:
        x = x.real
    if is_float(x) and not dtype.is_inexact:
        return np.asarray(numerics.to_integer(x, compute_dtype(dtype)))
    if dtype.is_float8:
        return round_to_dtype(x, dtype)
    return x.astype(compute_dtype(dtype), copy=False)


def _to(a: Args) -> Array:
    result = convert(a["self"], a.get("dtype"))
    return result.copy() if a.get("copy") and result is a["self"] else result


def _default_type(values: tuple[Any, ...]) -> type:
    """Return torch's default type: complex or float if any value is, else int64."""
    if any(isinstance(v, complex) for v in values):
        return np.complex128
    return np.float64 if any(isinstance(v, float) for v in values) else np.int64


def arange(a: Args) -> Array:
    start, end, step = a.get("start", 0), a["end"], a.get("step", 1)
    dtype = compute_dtype_or(a["dtype"], _default_type((start, end, step)))
    if dtype == np.int64:
        end = int(end)
    span = (end - int(start)) / int(step) if dtype == np.int64 else (end - start) / step
    count = max(0, math.ceil(span))
    if not np.issubdtype(dtype, np.inexact):
        start, step = int(start), int(step)  # truncated: for int64 before the count, else after
    return np.asarray(start + np.arange(count) * step).astype(dtype)


_NARROW = (DType.F16, DType.BF16)


def _spaced_values(a: Args, *, in_type: bool) -> tuple[Array, Any]:
    """Return evenly spaced values in float64, and the requested type.

    Ends are truncated for integers and rounded for 16-bit floats; torch's linspace (``in_type``)
    then computes in that type, and its logspace with one step uses the start unchanged.
    """
    dtype = compute_dtype_or(a["dtype"], np.float64)
    steps = a["steps"]
    if steps > MAX_RESULT_ELEMENTS:
        raise UnsupportedUseError(f"a result of {steps} steps is too large")
    start, end = (np.asarray(a[name]).item() for name in ("start", "end"))
    if steps == 1 and not in_type:
        return np.array([start]), dtype
    if not np.issubdtype(dtype, np.inexact):
        start, end = int(start), int(end)
    narrow = a["dtype"] if a["dtype"] in _NARROW else None

    def own(value: Any) -> Any:
        return value if narrow is None else round_to_dtype(np.asarray(value, np.float64), narrow)

    def each(value: Any) -> Any:
        return own(value) if in_type else value

    start, end = own(start), own(end)
    with np.errstate(over="ignore", invalid="ignore"):
        step = each(own(end - start) / each(max(steps - 1, 1)))
        number = np.arange(steps)
        low = each(start + each(step * each(number)))
        high = each(end - each(step * each(steps - 1 - number)))
    return np.where(number < steps // 2 + (steps == 1), low, high), dtype


def linspace(a: Args) -> Array:
    values, dtype = _spaced_values(a, in_type=True)
    return values.astype(dtype)


def logspace(a: Args) -> Array:
    values, dtype = _spaced_values(a, in_type=False)
    return np.asarray(np.power(a["base"] * 1.0, values)).astype(dtype)


def triangle_indices(lower: bool) -> Rule:
    function = np.tril_indices if lower else np.triu_indices

    def rule(a: Args) -> Array:
        row, col = a["row"], a["col"]
        if row * col > MAX_RESULT_ELEMENTS:
            raise UnsupportedUseError(f"a triangle of {row} by {col} elements is too large")
        return np.stack(function(row, a["offset"], col)).astype(
            compute_dtype_or(a["dtype"], np.int64)
        )

    return rule


def full(a: Args) -> Array:
    value = a["fill_value"]
    default = np.bool_ if isinstance(value, bool) else _default_type((value,))
    dtype = compute_dtype_or(a["dtype"], default)
    number = wrap_like(value, np.empty(0, dtype))
    return _filled(np.full(a["size"], number, dtype=dtype), a["dtype"])


def _filled(array: Array, dtype: DType | None) -> Array:
    return round_to_dtype(array, dtype) if dtype is not None and dtype.is_float8 else array


def constant_like(value: Any) -> Rule:
    """A tensor of one value, with the given size or that of ``self``."""

    def rule(a: Args) -> Array:
        x = a["self"]
        fill = a.get("fill_value", value)
        dtype = compute_dtype_or(a["dtype"], x.dtype)
        full = np.full(a.get("size", x.shape), wrap_like(fill, np.empty(0, dtype)), dtype=dtype)
        return _filled(full, a["dtype"] or a[OWN_DTYPE])

    return rule


def constant(value: Any) -> Rule:
    return lambda a: np.full(a["size"], value, dtype=compute_dtype_or(a["dtype"], np.float64))


def eye(a: Args) -> Array:
    return np.eye(a["n"], a.get("m"), dtype=compute_dtype_or(a["dtype"], np.float64))


def scalar_tensor(a: Args) -> Array:
    default = np.bool_ if isinstance(a["s"], bool) else _default_type((a["s"],))
    dtype = compute_dtype_or(a["dtype"], default)
    return np.asarray(wrap_like(a["s"], np.empty(0, dtype)), dtype=dtype)


def fill(a: Args) -> Array:
    return np.broadcast_to(np.asarray(a["value"]), a["self"].shape).astype(a["self"].dtype)


def copy(a: Args) -> Array:
    return np.broadcast_to(a["src"], a["self"].shape).astype(a["self"].dtype)


def to_like(a: Args) -> Array:
    return np.asarray(a["self"].astype(a["other"].dtype, copy=bool(a.get("copy"))))


def to_dispatch(a: Args) -> Array:
    return to_like(a) if "other" in a else _to(a)


def no_op(_a: Args) -> None:
    """Assertions of the export: the check of the shapes covers them."""


def assert_true(a: Args) -> None:
    if not np.all(a["self"]):
        message = one_line(str(a.get("assert_msg") or "no message"))
        raise FailedAssertionError(f"an assertion of the model failed: {message}")


def stride(_a: Args) -> int:
    raise UnsupportedUseError("strides as values are not supported")


def storage_offset(_a: Args) -> int:
    raise UnsupportedUseError("memory offsets as values are not supported")


def is_contiguous(a: Args) -> bool:
    if a["memory_format"] not in (None, "contiguous_format"):
        raise UnsupportedUseError(
            f"a contiguity test for memory format {a['memory_format']} is not supported"
        )
    return bool(a["self"].flags.c_contiguous)


def item(a: Args) -> Any:
    return a["self"].item()


def sym_ite(a: Args) -> Any:
    return a["t"] if a["b"] else a["f"]


def binary_function(function: Callable[[Any, Any], Any]) -> Rule:
    return lambda a: function(a["a"], a["b"])


def unary_function(function: Callable[[Any], Any]) -> Rule:
    """A function of the only argument, whatever its name."""
    return lambda a: function(next(iter(a.values())))


def round_number(a: Args) -> Any:
    return round(a["number"], a["ndigits"])


def zero(a: Args) -> Any:
    return np.zeros_like(a["self"])


def to_copy(a: Args) -> Any:
    return _to({**a, "copy": True})


def sym_size(a: Args) -> Any:
    return int(a["self"].shape[a["dim"]])


def sym_numel(a: Args) -> Any:
    return int(a["self"].size)


def _positions(a: Args) -> Any:
    """Return positions from 0 to 1, or to below 1 for a periodic window."""
    length = a["window_length"]
    if not 0 <= length <= MAX_RESULT_ELEMENTS:
        raise UnsupportedUseError(f"a window of {length} elements is too large")
    parts = length if a.get("periodic", True) else length - 1
    return np.arange(length) / max(parts, 1)


def _whole(a: Args, values: Any) -> Any:
    return np.ones(1) if a["window_length"] == 1 else values


def cosines(alpha: float, beta: float, third: float = 0.0) -> Rule:
    def rule(a: Args) -> Any:
        turn = 2 * np.pi * _positions(a)
        first, second = a.get("alpha", alpha), a.get("beta", beta)
        return _whole(a, first - second * np.cos(turn) + third * np.cos(2 * turn))

    return rule


def bartlett(a: Args) -> Any:
    return _whole(a, 1 - np.abs(2 * _positions(a) - 1))


def kaiser(a: Args) -> Any:
    beta = a.get("beta", 12.0)
    inside = np.maximum(1 - (2 * _positions(a) - 1) ** 2, 0)
    return _whole(a, np.i0(beta * np.sqrt(inside)) / np.i0(beta))
