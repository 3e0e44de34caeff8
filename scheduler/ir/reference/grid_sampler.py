"""Reference of grid sampling, affine grids, im2col and col2im."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from scheduler.ir.reference.rule import Args, Array, UnsupportedUseError, pair

_NEAREST, _CUBIC = 1, 2
_ZEROS, _BORDER, _REFLECTION = 0, 1, 2


def _clip(x: Array, size: int) -> Array:
    return np.where(x > 0, np.minimum(x, size - 1), 0.0)


def _pad(x: Array, size: int, padding: int, aligned: bool) -> Array:
    if padding == _ZEROS:
        return x
    if padding == _BORDER:
        return _clip(x, size)
    low, span = (0.0, size - 1.0) if aligned else (-0.5, float(size))
    if span == 0:
        return np.zeros_like(x)
    away = np.abs(x - low)
    over, turns = np.fmod(away, span), np.floor(away / span)
    return _clip(np.where(turns % 2 == 0, over + low, span - over + low), size)


def _keys(x: Array) -> Array:
    x, a = np.abs(x), -0.75
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    return np.where(x <= 1, near, np.where(x < 2, ((a * x - 5 * a) * x + 8 * a) * x - 4 * a, 0))


def _read_at(x: Array, positions: list[Array]) -> Array:
    """Read x [N, C, ...] at integer positions [N, ...]; 0 outside."""
    inside = np.ones(positions[0].shape, bool)
    clipped = []
    for position, size in zip(positions, x.shape[2:], strict=True):
        inside &= (position >= 0) & (position < size)
        clipped.append(_clip(position, size).astype(np.int64))
    batch = np.arange(x.shape[0]).reshape(-1, *(1,) * (positions[0].ndim - 1))
    elements = np.moveaxis(x, 1, -1)[(batch, *clipped)]
    return np.moveaxis(np.where(inside[..., None], elements, 0), -1, 1)


def grid_sampler(a: Args) -> Array:
    x, grid, padding = a["input"], a["grid"], a["padding_mode"]
    aligned, mode = a["align_corners"], a["interpolation_mode"]
    rank = x.ndim - 2
    if mode == _CUBIC and rank != 2:
        raise UnsupportedUseError("bicubic grid_sampler of volumes is not supported")
    taps: list[list[tuple[Array, Array]]] = []
    for d, size in enumerate(x.shape[2:]):
        coordinate = grid[..., rank - 1 - d]
        coordinate = (
            (coordinate + 1) / 2 * (size - 1) if aligned else ((coordinate + 1) * size - 1) / 2
        )
        if mode == _CUBIC:
            low = np.floor(coordinate)
            positions = [low + k for k in (-1, 0, 1, 2)]
            taps.append(
                [(_pad(p, size, padding, aligned), _keys(p - coordinate)) for p in positions]
            )
            continue
        coordinate = _pad(coordinate, size, padding, aligned)
        if mode == _NEAREST:
            taps.append([(np.round(coordinate), np.ones_like(coordinate))])
        else:
            low = np.floor(coordinate)
            taps.append([(low, 1 - (coordinate - low)), (low + 1, coordinate - low)])
    total: Any = 0.0
    for chosen in product(*taps):
        weight: Any = 1.0
        for _, share in chosen:
            weight = weight * share
        total = total + _read_at(x, [position for position, _ in chosen]) * weight[:, None]
    return np.asarray(total)


def affine_grid(a: Args) -> Array:
    theta, size = a["theta"], [int(n) for n in a["size"]]
    axes = []
    for n in size[2:]:
        line = np.linspace(-1, 1, n) if n > 1 else np.zeros(n)
        axes.append(line if a["align_corners"] else line * (n - 1) / n)
    lines = np.meshgrid(*axes, indexing="ij")
    base = np.stack([*lines[::-1], np.ones(size[2:])], axis=-1)
    return np.asarray(np.einsum("...k,ndk->n...d", base, theta))


def _windows(a: Args, size: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...], Any]:
    """Return kernel, counts of windows, and each tap's slices of the padded image."""
    kernel, padding = pair(a["kernel_size"], 2), pair(a["padding"], 2)
    stride, dilation = pair(a["stride"], 2), pair(a["dilation"], 2)
    counts = tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, p, d, k, s in zip(size, padding, dilation, kernel, stride, strict=True)
    )
    positions = [
        (..., *(
            slice(t * d, t * d + (n - 1) * s + 1, s)
            for t, d, n, s in zip(tap, dilation, counts, stride, strict=True)
        ))
        for tap in np.ndindex(*kernel)
    ]  # fmt: skip
    return kernel, counts, positions


def im2col(a: Args) -> Array:
    x = a["self"]
    _, counts, positions = _windows(a, x.shape[-2:])
    pads = [(0, 0)] * (x.ndim - 2) + [(p, p) for p in pair(a["padding"], 2)]
    padded = np.pad(x, pads)
    columns = np.stack([padded[position] for position in positions], axis=-3)
    lead = x.shape[:-3]
    return np.asarray(columns.reshape(*lead, x.shape[-3] * len(positions), counts[0] * counts[1]))


def col2im(a: Args) -> Array:
    columns = a["self"]
    size = tuple(int(n) for n in a["output_size"])
    padding = pair(a["padding"], 2)
    _, counts, positions = _windows(a, size)
    lead = columns.shape[:-2]
    parts = columns.reshape(*lead, columns.shape[-2] // len(positions), len(positions), *counts)
    image = np.zeros((*parts.shape[:-3], *(n + 2 * p for n, p in zip(size, padding, strict=True))))
    for number, position in enumerate(positions):
        image[position] += parts[..., number, :, :]
    (top, left), (height, width) = padding, size
    return np.asarray(image[..., top : top + height, left : left + width])
