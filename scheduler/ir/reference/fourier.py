"""Reference of torch's fast Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from scheduler.ir.reference.rule import Args, Array, Rule, UnsupportedUseError, as_float
from scheduler.limits import MAX_RESULT_ELEMENTS

_NORMALIZATIONS = ("backward", "ortho", "forward")


def _scale(code: int, points: int) -> float:
    """Return the factor of ``fft_norm_mode``: 0 none, 1 by root of points, 2 by points."""
    if code not in (0, 1, 2):
        raise UnsupportedUseError(f"normalization {code} is not supported")
    return (1.0, 1 / math.sqrt(points), 1 / points)[code]


def _points(x: Array, dims: tuple[int, ...]) -> int:
    return math.prod(x.shape[d] for d in dims)


def _fft_dims(a: Args) -> tuple[int, ...]:
    return tuple(d % np.ndim(a["self"]) for d in a["dim"])


def _transform(x: Array, dims: tuple[int, ...], *, forward: bool) -> Array:
    """Return the transform over several dimensions, not normalized."""
    for dim in dims:
        x = np.fft.fft(x, axis=dim) if forward else np.fft.ifft(x, axis=dim, norm="forward")
    return x


def complex_to_complex(a: Args) -> Array:
    x, dims = a["self"], _fft_dims(a)
    result = _transform(x, dims, forward=a["forward"])
    return np.asarray(result * _scale(a["normalization"], _points(x, dims)))


def real_to_complex(a: Args) -> Array:
    """The last of ``dim`` is the one that ``onesided`` halves."""
    x, dims = as_float(a["self"]), _fft_dims(a)
    scale = _scale(a["normalization"], _points(x, dims))
    if not a["onesided"]:
        return np.asarray(_transform(x, dims, forward=True) * scale)
    halved = np.fft.rfft(x, axis=dims[-1])
    return np.asarray(_transform(halved, dims[:-1], forward=True) * scale)


def complex_to_real(a: Args) -> Array:
    x, dims, size = a["self"], _fft_dims(a), a["last_dim_size"]
    _check(size * max(1, x.size))
    points = _points(x, dims[:-1]) * size
    result = _transform(x, dims[:-1], forward=False)
    result = np.fft.irfft(result, n=size, axis=dims[-1], norm="forward")
    return np.asarray(result * _scale(a["normalization"], points))


def _check(elements: int) -> None:
    """Check the size of a transform, which an argument may make longer than the tensor."""
    if elements > MAX_RESULT_ELEMENTS:
        raise UnsupportedUseError(f"a transform of {elements} elements is too large")


def _norm(a: Args) -> str:
    norm = a["norm"] or "backward"
    if norm not in _NORMALIZATIONS:
        raise UnsupportedUseError(f"normalization {norm!r} is not supported")
    return str(norm)


def fft_1d(function: Callable[..., Any]) -> Rule:
    """Return the rule of a NumPy transform along one dimension."""

    def rule(a: Args) -> Array:
        x = as_float(a["self"])
        if a["n"] is not None:
            _check(a["n"] * max(1, x.size // max(1, x.shape[a["dim"]])))
        return np.asarray(function(x, n=a["n"], axis=a["dim"], norm=_norm(a)))

    return rule


def _axes(a: Args, x: Array) -> tuple[tuple[int, ...], tuple[int | None, ...]]:
    """The dimensions of a transform along several, and how many points each has (None: its own)."""
    dims, sizes = a["dim"], a["s"]
    if dims is None:
        rank = x.ndim if sizes is None else len(sizes)
        dims = tuple(range(x.ndim - rank, x.ndim))
    dims = tuple(d % x.ndim for d in dims)
    lengths = (None,) * len(dims) if sizes is None else sizes
    points = tuple(None if n in (None, -1) else n for n in lengths)
    _check(math.prod(n or x.shape[d] for d, n in zip(dims, points, strict=True)) * max(1, x.size))
    return dims, points


def fft_nd(
    last: Callable[..., Any], others: Callable[..., Any], *, last_first: bool = False
) -> Rule:
    """Return the rule of a transform along several dimensions: ``last`` along the last one,
    ``others`` along the others; ``last_first`` if the last one takes real numbers."""

    def rule(a: Args) -> Array:
        x = as_float(a["self"])
        dims, points = _axes(a, x)
        steps = [
            (last if position == len(dims) - 1 else others, dim, n)
            for position, (dim, n) in enumerate(zip(dims, points, strict=True))
        ]
        for function, dim, n in steps[::-1] if last_first else steps:
            x = function(x, n=n, axis=dim, norm=_norm(a))
        return np.asarray(x)

    return rule


def fftshift(function: Callable[..., Any]) -> Rule:
    def rule(a: Args) -> Array:
        dims = a["dim"]
        return np.asarray(function(a["self"], (dims,) if isinstance(dims, int) else dims))

    return rule


def frequencies(function: Callable[..., Any]) -> Rule:
    def rule(a: Args) -> Array:
        _check(a["n"])
        return np.asarray(function(a["n"], a["d"]))

    return rule


# ---- of windows one after the other --------------------------------------------------------------


def _window(a: Args, length: int, points: int) -> Array:
    """Return the window of ``length``, centred in ``points``."""
    window = np.ones(length) if a["window"] is None else a["window"]
    before = (points - length) // 2
    return np.pad(window, (before, points - length - before))


def stft(a: Args) -> Array:
    """Windows of the last dimension, transformed: [..., frequency, window]."""
    x, points = a["self"], a["n_fft"]
    step = points // 4 if a["hop_length"] is None else a["hop_length"]
    length = points if a["win_length"] is None else a["win_length"]
    if a.get("center"):
        modes = {"reflect": "reflect", "constant": "constant", "replicate": "edge"}
        half = [(0, 0)] * (x.ndim - 1) + [(points // 2, points // 2)]
        x = np.pad(x, half, mode=modes[a["pad_mode"]])  # type: ignore[call-overload]
    count = 1 + (x.shape[-1] - points) // step
    _check(count * points * max(1, x.size // max(1, x.shape[-1])))
    positions = np.arange(count)[:, None] * step + np.arange(points)
    frames = x[..., positions] * _window(a, length, points)
    onesided = not np.iscomplexobj(frames) if a["onesided"] is None else a["onesided"]
    result = np.fft.rfft(frames) if onesided else np.fft.fft(frames)
    result = np.swapaxes(result / math.sqrt(points) if a["normalized"] else result, -1, -2)
    if a["return_complex"] or (a["return_complex"] is None and np.iscomplexobj(frames)):
        return np.asarray(result)
    return np.stack([result.real, result.imag], axis=-1)


def istft(a: Args) -> Array:
    """Return the signal from its windows' transforms: the sum of the windows, divided by the sum of
    the squared window function."""
    spectrum, points = np.swapaxes(a["self"], -1, -2), a["n_fft"]
    step = points // 4 if a["hop_length"] is None else a["hop_length"]
    length = points if a["win_length"] is None else a["win_length"]
    window = _window(a, length, points)
    if a["normalized"]:
        spectrum = spectrum * math.sqrt(points)
    if not a["return_complex"]:  # the first half determines both sides
        spectrum = spectrum[..., : points // 2 + 1]
        spectrum = np.fft.irfft(spectrum, n=points)
    else:
        spectrum = np.fft.ifft(spectrum)
    frames = spectrum * window
    count = frames.shape[-2]
    total = points + step * (count - 1)
    signal = np.zeros((*frames.shape[:-2], total), dtype=frames.dtype)
    squares = np.zeros(total, dtype=window.dtype)
    for position in range(count):
        part = slice(position * step, position * step + points)
        signal[..., part] += frames[..., position, :]
        squares[part] += window * window
    start = points // 2 if a["center"] else 0
    end = total - start
    if a["length"] is not None:
        end = start + a["length"]
    part = slice(start, min(end, total))
    result = signal[..., part] / squares[part]
    missing = max(0, end - total)
    _check(missing)
    return np.pad(result, [(0, 0)] * (result.ndim - 1) + [(0, missing)])
