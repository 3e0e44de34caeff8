"""Reference of convolutions, transposed convolutions, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from scheduler.ir.reference.rule import Args, Array, pair


def _padding(a: Args, extents: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return the padding of each spatial axis; ``extents`` are those of the dilated kernel."""
    if a["padding"] == "valid":
        return [(0, 0)] * len(extents)
    if a["padding"] == "same":
        return [((extent - 1) // 2, extent - 1 - (extent - 1) // 2) for extent in extents]
    return [(p, p) for p in pair(a["padding"], len(extents))]


def convolution(a: Args) -> Array:
    """Convolution over any number of spatial axes: im2col, and one multiplication per group.

    ``input`` [N, C, *spatial] or without N; ``weight`` [O, C / groups, *kernel].
    """
    if a.get("transposed"):
        return conv_transpose(a)
    weight, groups = a["weight"], a["groups"]
    kernel = weight.shape[2:]
    x = a["input"] if a["input"].ndim == weight.ndim else a["input"][None]
    stride, dilation = pair(a["stride"], len(kernel)), pair(a["dilation"], len(kernel))
    extents = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True))
    x = np.pad(x, [(0, 0), (0, 0), *_padding(a, extents)])
    spatial = tuple(range(2, x.ndim))
    windows = np.lib.stride_tricks.sliding_window_view(x, extents, axis=spatial)
    steps = tuple(slice(None, None, s) for s in (*stride, *dilation))
    windows = windows[(slice(None), slice(None), *steps)]
    batch, channels, *rest = windows.shape
    out = rest[: len(kernel)]
    windows = windows.reshape(batch, groups, channels // groups, *rest)
    order = (1, 0, *range(3, 3 + len(kernel)), 2, *range(3 + len(kernel), windows.ndim))
    rows = windows.transpose(order).reshape(groups, batch * math.prod(out), -1)
    columns = weight.reshape(groups, weight.shape[0] // groups, -1).transpose(0, 2, 1)
    product = (rows @ columns).reshape(groups, batch, math.prod(out), -1)
    result = product.transpose(1, 0, 3, 2).reshape(batch, weight.shape[0], *out)
    if a["bias"] is not None:
        result = result + a["bias"].reshape(-1, *(1,) * len(kernel))
    return np.asarray(result if a["input"].ndim == weight.ndim else result[0])


def _taps(
    kernel: tuple[int, ...], count: tuple[int, ...], a: Args
) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Yield each kernel position with its slices of the padded input for ``count`` windows."""
    rank = len(kernel)
    stride, dilation = pair(a["stride"], rank), pair(a["dilation"], rank)
    for tap in np.ndindex(*kernel):
        starts = [t * d for t, d in zip(tap, dilation, strict=True)]
        yield (
            tap,
            tuple(
                slice(first, first + (n - 1) * step + 1, step)
                for first, n, step in zip(starts, count, stride, strict=True)
            ),
        )


def _scatter_windows(x: Array, weight: Array, a: Args, size: tuple[int, ...]) -> Array:
    """Multiply each element of ``x`` [N, C, ...] by the kernel and add it to the result.

    ``weight`` is [C, O / groups, *kernel]; ``size`` are the result's spatial sizes.
    """
    groups, kernel = a["groups"], weight.shape[2:]
    padding = pair(a["padding"], len(kernel))
    batch, channels, *count = x.shape
    group_channels = weight.shape[1]
    parts = x.reshape(batch, groups, channels // groups, -1)
    weights = weight.reshape(groups, channels // groups, group_channels, *kernel)
    stride, dilation = pair(a["stride"], len(kernel)), pair(a["dilation"], len(kernel))
    padded_size = tuple(
        max((n - 1) * s + (k - 1) * d + 1, size_ + p)
        for n, s, k, d, size_, p in zip(count, stride, kernel, dilation, size, padding, strict=True)
    )
    result = np.zeros(
        (batch, groups * group_channels, *padded_size), dtype=np.result_type(x, weight)
    )
    if min(x.shape) > 0:
        for tap, position in _taps(kernel, tuple(count), a):
            tap_index: Any = (..., *tap)
            product = np.einsum("bgcp,gco->bgop", parts, weights[tap_index])
            result[(slice(None), slice(None), *position)] += product.reshape(
                batch, groups * group_channels, *count
            )
    inside = tuple(slice(p, p + n) for p, n in zip(padding, size, strict=True))
    return np.asarray(result[(slice(None), slice(None), *inside)])


def conv_transpose(a: Args) -> Array:
    """``input`` [N, C, ...] or without N; ``weight`` [C, O / groups, *kernel]."""
    weight = a["weight"]
    kernel = weight.shape[2:]
    rank = len(kernel)
    x = a["input"] if a["input"].ndim == weight.ndim else a["input"][None]
    output_padding = pair(a["output_padding"], rank)
    steps = (pair(a[name], rank) for name in ("stride", "padding", "dilation"))
    size = tuple(
        (n - 1) * s - 2 * p + (k - 1) * d + 1 + end_padding
        for n, k, end_padding, s, p, d in zip(
            x.shape[2:], kernel, output_padding, *steps, strict=True
        )
    )
    result = _scatter_windows(x, weight, a, size)
    if a["bias"] is not None:
        result = result + a["bias"].reshape(-1, *(1,) * rank)
    return np.asarray(result if a["input"].ndim == weight.ndim else result[0])


def convolution_backward(a: Args) -> tuple[Array | None, ...]:
    """Return the gradients of input, weight and bias that ``output_mask`` requests."""
    grad, x, weight = a["grad_output"], a["input"], a["weight"]
    by_input, by_weight, by_bias = a["output_mask"]
    result: list[Any] = [None, None, None]
    if by_input:
        if a["transposed"]:
            result[0] = convolution({**a, "input": grad, "bias": None, "transposed": False})
            result[0] = result[0][(..., *(slice(0, n) for n in x.shape[2:]))]
        else:
            result[0] = _scatter_windows(grad, weight, a, x.shape[2:])
    if by_weight:
        moving, fixed = (grad, x) if a["transposed"] else (x, grad)
        result[1] = _weight_gradient(moving, fixed, weight, a)
    if by_bias:
        result[2] = grad.sum(axis=(0, *range(2, grad.ndim)))
    return tuple(result)


def _weight_gradient(moving: Array, fixed: Array, weight: Array, a: Args) -> Array:
    groups, kernel = a["groups"], weight.shape[2:]
    padding = pair(a["padding"], len(kernel))
    padded = np.pad(moving, [(0, 0), (0, 0), *((p, p) for p in padding)])
    batch, rows, *count = fixed.shape
    outer = fixed.reshape(batch, groups, rows // groups, -1)
    result = np.zeros((groups, rows // groups, weight.shape[1], *kernel))
    if min(fixed.shape) > 0:
        for tap, position in _taps(kernel, tuple(count), a):
            inner = padded[(slice(None), slice(None), *position)]
            inner = inner.reshape(batch, groups, weight.shape[1], -1)
            tap_index: Any = (..., *tap)
            result[tap_index] = np.einsum("bgop,bgcp->goc", outer, inner)
    return result.reshape(weight.shape)
