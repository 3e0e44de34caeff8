"""Reference of quantized tensors: products, quantization and dequantization."""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.ir.dtypes import DType
from scheduler.ir.encoding import round_to_dtype
from scheduler.ir.numerics import to_integer
from scheduler.ir.reference.creation import convert
from scheduler.ir.reference.rule import OWN_DTYPE, Args, Array, Rule, UnsupportedUseError


def scaled_mm(a: Args) -> Any:
    x, y, rows, columns = a["self"], a["mat2"], a["scale_a"], a["scale_b"]
    out = a["out_dtype"] or a[OWN_DTYPE]
    if out is None or (a["scale_result"] is not None and out.is_float8):
        raise UnsupportedUseError("scale_result is not supported: torch applies it only on GPUs")
    if (np.size(rows) != 1 and np.shape(rows) != (x.shape[0], 1)) or (
        np.size(columns) != 1 and np.shape(columns) != (1, y.shape[1])
    ):
        raise UnsupportedUseError("block scales are not supported")
    rows, columns = (s.reshape(()) if np.size(s) == 1 else s for s in (rows, columns))
    result = (x * rows) @ (y * columns)
    if a["bias"] is not None:
        result = result + a["bias"]
    return round_to_dtype(result, out) if out.is_float8 else result


_BY_TENSOR, _BY_LINE = [0], [1]  # torch's ScalingType


def scaled_mm_v2(a: Args) -> Any:
    """As ``scaled_mm``, with lists of scales and their kinds."""
    kinds = [list(a[name]) for name in ("recipe_a", "recipe_b")]
    if any(kind not in (_BY_TENSOR, _BY_LINE) for kind in kinds) or a["contraction_dim"]:
        raise UnsupportedUseError("block scales are not supported")
    if any((*a["swizzle_a"], *a["swizzle_b"])):
        raise UnsupportedUseError("swizzled scales are not supported")
    first, second = (a[name][0] for name in ("scale_a", "scale_b"))
    return scaled_mm({**a, "scale_a": first, "scale_b": second, "scale_result": None})


# Rounding to whole numbers is what these ops are for: they compute in float32, as torch does, so
# that ties fall on the same side.


def _blocks(shape: tuple[int, ...], extent: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """Split dimensions into blocks: the tensor's shape, and that of one value per block."""
    if len(extent) != len(shape):
        raise UnsupportedUseError(
            f"blocks of {len(extent)} dimensions do not fit a tensor of {len(shape)} dimensions"
        )
    split: list[int] = []
    block_counts: list[int] = []
    for size, requested in zip(shape, extent, strict=True):
        part = size if requested == -1 else requested
        if part < 1 or size % part:
            raise UnsupportedUseError(f"blocks of {part} do not divide a dimension of {size}")
        split += [size // part, part]
        block_counts += [size // part, 1]
    return split, block_counts


def _single(parameter: Any, block_counts: list[int]) -> Any:
    array = np.asarray(parameter, np.float32)
    return array.reshape(()) if array.size == 1 else array.reshape(block_counts)


def _limits(dtype: DType, low: Any, high: Any) -> tuple[Any, Any]:
    if dtype.is_float:
        limits = -dtype.largest, dtype.largest
    else:
        info = np.iinfo(dtype.numpy)
        limits = int(info.min), int(info.max)
    return limits[0] if low is None else low, limits[1] if high is None else high


def _quantized(
    x: Array, extent: tuple[int, ...], scale: Any, zero: Any, dtype: DType, low: Any, high: Any
) -> Array:
    split, block_counts = _blocks(x.shape, extent)
    steps = np.asarray(x, np.float32).reshape(split) * (
        np.float32(1) / _single(scale, block_counts)
    )
    result = np.round(steps)
    if zero is not None:
        result = result + _single(zero, block_counts)
    result = np.clip(result, *_limits(dtype, low, high)).reshape(x.shape)
    return round_to_dtype(result, dtype) if dtype.is_float else to_integer(result, dtype.numpy)


def _dequantized(x: Array, extent: tuple[int, ...], scale: Any, zero: Any) -> Array:
    split, block_counts = _blocks(x.shape, extent)
    result = x.astype(np.float64).reshape(split)
    if zero is not None:
        result = result - _single(zero, block_counts)
    factor = np.asarray(scale, np.float64)
    return np.asarray(
        result * (factor if factor.size == 1 else factor.reshape(block_counts))
    ).reshape(x.shape)


def quantize_affine(a: Args) -> Array:
    return _quantized(
        a["input"],
        a["block_size"],
        a["scale"],
        a["zero_point"],
        a["output_dtype"],
        a["quant_min"],
        a["quant_max"],
    )


def dequantize_affine(a: Args) -> Array:
    return _dequantized(a["input"], a["block_size"], a["scale"], a["zero_point"])


def _convert(a: Args, extent: tuple[int, ...], *, quantize: bool) -> Array:
    scale = a["scale"] if "scale" in a else a["scales"]
    zero = a["zero_point"] if "zero_point" in a else a["zero_points"]
    if not quantize:
        return _dequantized(a["input"], extent, scale, zero)
    return _quantized(a["input"], extent, scale, zero, a["dtype"], a["quant_min"], a["quant_max"])


def per_tensor(*, quantize: bool) -> Rule:
    return lambda a: _convert(a, (-1,) * np.ndim(a["input"]), quantize=quantize)


def per_channel(*, quantize: bool) -> Rule:
    def rule(a: Args) -> Array:
        rank = np.ndim(a["input"])
        axis = a["axis"] % max(1, rank)
        return _convert(a, tuple(1 if d == axis else -1 for d in range(rank)), quantize=quantize)

    return rule


def per_token(*, quantize: bool) -> Rule:
    return lambda a: _convert(a, (*(1,) * (np.ndim(a["input"]) - 1), -1), quantize=quantize)


def per_channel_group(*, quantize: bool) -> Rule:
    return lambda a: _convert(a, (1, a["group_size"]), quantize=quantize)


def choose_qparams_affine(a: Args) -> tuple[Array, Array]:
    x, extent, dtype = np.asarray(a["input"], np.float32), a["block_size"], a["target_dtype"]
    split, _ = _blocks(x.shape, extent)
    low, high = _limits(dtype, a["quant_min"], a["quant_max"])
    block_axes = tuple(range(1, len(split), 2))
    below = np.minimum(x.reshape(split).min(axis=block_axes), np.float32(0))
    above = np.maximum(x.reshape(split).max(axis=block_axes), np.float32(0))
    scale, zero = _scale_and_zero_point(a["mapping_type"], below, above, float(low), float(high))
    least_scale = a["eps"]
    if least_scale is None:
        least_scale = 2.0**-14 if a[OWN_DTYPE] is DType.F16 else 2.0**-126
    scale = np.maximum(scale, np.float32(least_scale))
    if a["mapping_type"] == "ASYMMETRIC":
        zero = np.clip(np.float32(low) - np.round(below / scale), low, high)
        dtype = a["zero_point_dtype"]
        zero = zero.astype(np.int32) if dtype is None else np.asarray(convert(zero, dtype))
    elif a["zero_point_dtype"] is not None:
        zero = np.asarray(convert(zero, a["zero_point_dtype"]))
    # A dimension of one block is omitted unless ``keepdim``.
    pairs = zip(split[::2], split[1::2], strict=True)
    shape = [count for count, part in pairs if a["keepdim"] or part == 1 or count != 1]
    return scale.astype(np.float64).reshape(shape), zero.reshape(shape)


def _scale_and_zero_point(
    mapping: str, below: Array, above: Array, low: float, high: float
) -> tuple[Array, Array]:
    middle = np.full_like(below, int((high + low + 1) / 2))
    if mapping == "ASYMMETRIC":
        return (above - below) / np.float32(high - low), middle
    if mapping == "SYMMETRIC":
        return np.maximum(-below, above) / np.float32((high - low) / 2), middle
    if mapping == "SYMMETRIC_NO_CLIPPING_ERR":
        return np.maximum(below / np.float32(low), above / np.float32(high)), middle
    raise UnsupportedUseError(f"a mapping of kind {mapping!r} is not supported")


def int_mm(a: Args) -> Any:
    return (a["self"].astype(np.int64) @ a["mat2"].astype(np.int64)).astype(np.int32)


def packed_weights(_: Args) -> Any:
    raise UnsupportedUseError(
        "weights packed in the order of the machine that packed them are not supported"
    )


def weight_int8pack_mm(a: Args) -> Any:
    return (a["self"] @ a["mat2"].astype(np.float64).T) * a["scales"]
