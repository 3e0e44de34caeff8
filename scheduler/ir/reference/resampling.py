"""Reference of resampling to another size and its gradients, one dimension at a time.

Along a dimension each output pixel is a weighted sum of some input pixels, given by positions and
weights, both [output pixels, taps]. Positions are float32 where torch's are (its CPU kernels:
ATen/native/cpu/UpSampleKernel.cpp).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from scheduler.ir.dtypes import DType
from scheduler.ir.reference.rule import OWN_DTYPE, Args, Array, Rule, UnsupportedUseError, is_float

#: Maps input size, output size, scale and the arguments to positions and weights.
_Along: TypeAlias = Callable[[int, int, float | None, Args], tuple[Array, Array]]
_SCALES = ("scales_d", "scales_h", "scales_w")


def _scales(a: Args, rank: int) -> tuple[float | None, ...]:
    if "scales" in a:
        return (a["scales"],)
    if "scales_w" in a:
        return tuple(a[name] for name in _SCALES[-rank:])
    return tuple(a["scale_factors"] or (None,) * rank)


def _step(size: int, output_size: int, scale: float | None, a: Args) -> float:
    """Return the number of input pixels per output pixel."""
    if a.get("align_corners"):
        return (size - 1) / (output_size - 1) if output_size > 1 else 0.0
    return 1 / scale if scale else size / output_size


def _sources(size: int, output_size: int, scale: float | None, a: Args) -> Array:
    step, pixels = _step(size, output_size, scale, a), np.arange(output_size)
    return np.asarray(pixels * step if a.get("align_corners") else (pixels + 0.5) * step - 0.5)


def nearest(exact: bool) -> _Along:
    def along(size: int, output_size: int, scale: float | None, a: Args) -> tuple[Array, Array]:
        double = a[OWN_DTYPE] in (DType.F64, None)
        kind: Any = np.float64 if double else np.float32
        step = kind(1 / scale) if scale else kind(size) / kind(output_size)
        pixels = np.arange(output_size).astype(np.float64)
        if exact:
            position = kind(0.5) + ((pixels + 0.5) * float(step) - 0.5).astype(kind)
        else:
            position = (pixels * float(step)).astype(kind)
        sources = np.floor(position.astype(np.float32)).astype(np.int64)
        return np.minimum(sources, size - 1)[:, None], np.ones((output_size, 1))

    return along


def linear(size: int, output_size: int, scale: float | None, a: Args) -> tuple[Array, Array]:
    source = np.maximum(_sources(size, output_size, scale, a), 0)
    low = np.minimum(np.floor(source).astype(np.int64), size - 1)
    share = np.clip(source - low, 0, 1)
    positions = np.stack([low, np.minimum(low + 1, size - 1)], axis=-1)
    return positions, np.stack([1 - share, share], axis=-1)


def _keys(distance: Array, a: float) -> Array:
    """The cubic convolution kernel."""
    x = np.abs(distance)
    near = (a + 2) * x**3 - (a + 3) * x**2 + 1
    far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
    return np.where(x < 1, near, np.where(x < 2, far, 0.0))


def cubic(size: int, output_size: int, scale: float | None, a: Args) -> tuple[Array, Array]:
    source = _sources(size, output_size, scale, a)
    low = np.floor(source)
    taps = low[:, None] + np.arange(-1, 3)
    weights = _keys(taps - source[:, None], -0.75)
    return np.clip(taps, 0, size - 1).astype(np.int64), weights


def antialiased(reach: int) -> _Along:
    def along(size: int, output_size: int, scale: float | None, a: Args) -> tuple[Array, Array]:
        step = _step(size, output_size, scale, a)
        width = max(step, 1.0)
        center = step * (np.arange(output_size) + 0.5)
        first = np.floor(center - reach * width + 0.5).astype(np.int64)
        taps = first[:, None] + np.arange(min(math.floor(2 * reach * width) + 2, size + 4))
        # For each leading tap before the input, one more tap follows.
        taps = taps + np.maximum(0, -first)[:, None]
        distance = (taps + 0.5 - center[:, None]) / width
        shape = np.maximum(1 - np.abs(distance), 0) if reach == 1 else _keys(distance, -0.5)
        weights = np.where((taps >= 0) & (taps < size), shape, 0.0)
        total = weights.sum(axis=-1, keepdims=True)
        return np.clip(taps, 0, size - 1), weights / np.where(total == 0, 1, total)

    return along


def _axes(x_size: tuple[int, ...], output_shape: tuple[int, ...], a: Args, along: _Along) -> Any:
    rank = len(x_size) - 2
    scales = _scales(a, rank)
    for axis in reversed(range(2, rank + 2)):
        yield axis, *along(x_size[axis], output_shape[axis], scales[axis - 2], a)


def upsample(along: _Along) -> Rule:
    def rule(a: Args) -> Array:
        x = a["self"] if "self" in a else a["input"]
        rank = x.ndim - 2
        if a["output_size"]:
            sizes = a["output_size"]
        else:
            sizes = [math.floor(n * s) for n, s in zip(x.shape[2:], _scales(a, rank), strict=True)]
        if not is_float(x) and "align_corners" in a:
            raise UnsupportedUseError("interpolation of integers is not supported")
        output_shape = (*x.shape[:2], *(int(n) for n in sizes))
        for axis, positions, weights in _axes(x.shape, output_shape, a, along):
            moved = np.moveaxis(x, axis, -1)
            if positions.shape[1] == 1 and (weights == 1).all():
                result = moved[..., positions[:, 0]]
            else:
                result = sum(
                    moved[..., positions[:, k]] * weights[:, k] for k in range(positions.shape[1])
                )
            x = np.moveaxis(np.asarray(result), -1, axis)
        return np.asarray(x)

    return rule


def upsample_backward(along: _Along) -> Rule:
    def rule(a: Args) -> Array:
        result = a["grad_output"]
        size = tuple(int(n) for n in a["input_size"])
        for axis, positions, weights in _axes(size, result.shape, a, along):
            moved = np.moveaxis(result, axis, 0)
            spread = np.zeros((size[axis], *moved.shape[1:]))
            shape = (-1, *(1,) * (moved.ndim - 1))
            for k in range(positions.shape[1]):
                np.add.at(spread, positions[:, k], moved * weights[:, k].reshape(shape))
            result = np.moveaxis(spread, 0, axis)
        return np.asarray(result)

    return rule
