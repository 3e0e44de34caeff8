"""Reference of pooling and unpooling."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from scheduler.ir.reference.rule import Args, Array, Rule, is_float, pair


def _output_size(size: int, kernel: int, stride: int, padding: int, ceil_mode: bool) -> int:
    """Return the windows along an axis; in ceil mode none may begin in the end padding."""
    span = size + 2 * padding - kernel
    count = (math.ceil(span / stride) if ceil_mode else span // stride) + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    return count


def _windows(x: Array, a: Args, rank: int, fill: Any) -> Array:
    """[..., *out, *kernel] windows over the last axes, padded with ``fill``."""
    kernel = pair(a["kernel_size"], rank)
    stride = pair(a["stride"], rank) if a["stride"] else kernel
    padding = pair(a["padding"], rank)
    dilation = pair(a.get("dilation", 1), rank)
    extents = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True))
    sizes = x.shape[-rank:]
    out = tuple(
        _output_size(*values, a["ceil_mode"])
        for values in zip(sizes, extents, stride, padding, strict=True)
    )
    pads = [(0, 0)] * (x.ndim - rank)
    for size, extent, step, before, count in zip(sizes, extents, stride, padding, out, strict=True):
        pads.append((before, max(0, (count - 1) * step + extent - size - before)))
    padded = np.pad(x, pads, constant_values=fill)
    spatial = tuple(range(x.ndim - rank, x.ndim))
    windows = np.lib.stride_tricks.sliding_window_view(padded, extents, axis=spatial)
    steps = [slice(0, (n - 1) * s + 1, s) for n, s in zip(out, stride, strict=True)]
    steps += [slice(None, None, d) for d in dilation]
    position: Any = (..., *steps)
    return np.asarray(windows[position])


def max_pool(rank: int, with_indices: bool) -> Rule:
    def rule(a: Args) -> Any:
        x = a["self"]
        least = -np.inf if is_float(x) else np.iinfo(x.dtype).min
        windows = _windows(x, a, rank, least)
        flat = windows.reshape(*windows.shape[:-rank], -1)
        values = flat.max(axis=-1)
        if not with_indices:
            return values
        positions = np.arange(math.prod(x.shape[-rank:])).reshape(x.shape[-rank:])
        where = _windows(positions, a, rank, -1)
        where = np.broadcast_to(where.reshape(*where.shape[:-rank], -1), flat.shape)
        best = np.where(where < 0, least, flat).argmax(axis=-1)[..., None]
        # If all values are the least one: the first position outside the padding.
        padding = np.take_along_axis(where, best, -1) < 0
        best = np.where(padding, (where >= 0).argmax(axis=-1)[..., None], best)
        return values, np.take_along_axis(where, best, -1)[..., 0]

    return rule


def avg_pool(rank: int) -> Rule:
    def rule(a: Args) -> Array:
        windows = _windows(a["self"], a, rank, 0.0)
        total = windows.sum(axis=tuple(range(-rank, 0)))
        if a.get("divisor_override") is not None:
            return np.asarray(total / a["divisor_override"])
        for axis, counts in zip(range(-rank, 0), _counts(a, rank, total.shape), strict=True):
            total = total / counts.reshape(-1, *(1,) * (-1 - axis))
        return np.asarray(total)

    return rule


def _counts(a: Args, rank: int, shape: tuple[int, ...]) -> Iterator[Array]:
    """Yield, for each axis, the number of elements that each window averages.

    These are the tensor's elements and, with ``count_include_pad``, its padding, but not the
    elements that ceil mode adds.
    """
    kernel, padding = pair(a["kernel_size"], rank), pair(a["padding"], rank)
    stride = pair(a["stride"], rank) if a["stride"] else kernel
    sizes, outs = a["self"].shape[-rank:], shape[-rank:]
    for size, out, width, step, pad in zip(sizes, outs, kernel, stride, padding, strict=True):
        first = np.arange(out) * step - pad
        last = np.minimum(first + width, size + pad)
        if not a["count_include_pad"]:
            first, last = np.maximum(first, 0), np.minimum(last, size)
        yield (last - first).astype(np.float64)


def _cells(size: int, count: int) -> Iterator[slice]:
    """Yield the windows of an adaptive pooling: floor to ceil, overlapping if uneven."""
    for i in range(count):
        yield slice(i * size // count, -((i + 1) * size // -count))


def adaptive_pool(rank: int, reduce: Callable[..., Any]) -> Callable[[Args], Array]:
    def rule(a: Args) -> Array:
        result = a["self"]
        sizes = a["output_size"] if isinstance(a["output_size"], tuple) else (a["output_size"],)
        sizes = sizes * rank if len(sizes) == 1 else sizes
        for axis, count in zip(range(-rank, 0), sizes, strict=True):
            size = result.shape[axis]
            moved = np.moveaxis(result, axis, -1)
            cells = [reduce(moved[..., cell], axis=-1) for cell in _cells(size, count or size)]
            result = np.moveaxis(np.stack(cells, axis=-1), -1, axis)
        return np.asarray(result)

    return rule


def adaptive_max(rank: int) -> Callable[[Args], tuple[Array, Array]]:
    def rule(a: Args) -> tuple[Array, Array]:
        x = a["self"]
        lead, sizes = x.shape[:-rank], x.shape[-rank:]
        counts = pair(a["output_size"], rank)
        values = np.empty((*lead, *counts), dtype=x.dtype)
        positions = np.empty((*lead, *counts), dtype=np.int64)
        flat = np.arange(math.prod(sizes)).reshape(sizes)
        cells = [list(_cells(size, count)) for size, count in zip(sizes, counts, strict=True)]
        for output_index in np.ndindex(*counts):
            cell = tuple(axis_cells[i] for axis_cells, i in zip(cells, output_index, strict=True))
            window = x[(..., *cell)].reshape(*lead, -1)
            values[(..., *output_index)] = window.max(axis=-1)
            positions[(..., *output_index)] = flat[cell].ravel()[window.argmax(axis=-1)]
        return values, positions

    return rule


def _spread_over_windows(grad: Array, a: Args, rank: int) -> Array:
    """Add each window's value to every input element that it covers."""
    sizes = a["self"].shape[-rank:]
    kernel, padding = pair(a["kernel_size"], rank), pair(a["padding"], rank)
    stride = pair(a["stride"], rank) if a["stride"] else kernel
    counts = grad.shape[-rank:]
    padded_size = tuple(
        max((n - 1) * s + k, size + p)
        for n, s, k, size, p in zip(counts, stride, kernel, sizes, padding, strict=True)
    )
    result = np.zeros((*grad.shape[:-rank], *padded_size))
    for tap in np.ndindex(*kernel):
        position: Any = tuple(
            slice(t, t + (n - 1) * s + 1, s) for t, n, s in zip(tap, counts, stride, strict=True)
        )
        result[(..., *position)] += grad
    inside: Any = (..., *(slice(p, p + n) for p, n in zip(padding, sizes, strict=True)))
    return np.asarray(result[inside])


def avg_pool_backward(rank: int) -> Rule:
    def rule(a: Args) -> Array:
        grad = np.asarray(a["grad_output"])
        if a["divisor_override"] is not None:
            return _spread_over_windows(grad / a["divisor_override"], a, rank)
        for axis, counts in zip(range(-rank, 0), _counts(a, rank, grad.shape), strict=True):
            grad = grad / counts.reshape(-1, *(1,) * (-1 - axis))
        return _spread_over_windows(grad, a, rank)

    return rule


def max_pool_backward(rank: int) -> Rule:
    """Add each window's gradient at its maximum; also for adaptive pooling."""

    def rule(a: Args) -> Array:
        grad, positions = a["grad_output"], a["indices"]
        x = a["self"]
        rows = math.prod(x.shape[:-rank])
        result = np.zeros((rows, math.prod(x.shape[-rank:])))
        row = np.arange(rows)[:, None]
        np.add.at(result, (row, positions.reshape(rows, -1)), grad.reshape(rows, -1))
        return result.reshape(x.shape)

    return rule


def adaptive_avg_backward(rank: int) -> Rule:
    def rule(a: Args) -> Array:
        result = np.asarray(a["grad_output"], np.float64)
        for axis in range(-rank, 0):
            size, count = a["self"].shape[axis], result.shape[axis]
            moved = np.moveaxis(result, axis, -1)
            spread = np.zeros((*moved.shape[:-1], size))
            for number, cell in enumerate(_cells(size, count)):
                spread[..., cell] += moved[..., number, None] / (cell.stop - cell.start)
            result = np.moveaxis(spread, -1, axis)
        return result

    return rule


def _starts(sample: float, size: int, count: int, width: int) -> list[int]:
    """Return the starts of the windows of a fractional pooling, with steps from a sample."""
    step = (size - width) / (count - 1) if count > 1 else 0.0
    inner = [int((i + sample) * step) - int(sample * step) for i in range(count - 1)]
    return [*inner, size - width]


def fractional_max_pool(rank: int) -> Rule:
    """``random_samples`` [N, C, rank]: for rank 2 the last dimension's number comes first."""

    def rule(a: Args) -> tuple[Array, Array]:
        x, samples = a["self"], a["random_samples"]
        sizes, lead = x.shape[-rank:], x.shape[:-rank]
        widths, counts = pair(a["kernel_size"], rank), pair(a["output_size"], rank)
        planes = x.reshape(-1, *sizes)
        numbers = samples.reshape(-1, rank)[:, :: -1 if rank == 2 else 1]
        flat = np.arange(math.prod(sizes)).reshape(sizes)
        values = np.empty((len(planes), *counts), x.dtype)
        positions = np.empty((len(planes), *counts), np.int64)
        for k, plane in enumerate(planes):
            axes = zip(numbers[k], sizes, counts, widths, strict=True)
            starts = [_starts(float(number), *rest) for number, *rest in axes]
            for output_index in np.ndindex(*counts):
                firsts = (
                    axis_starts[i] for axis_starts, i in zip(starts, output_index, strict=True)
                )
                cell = tuple(slice(s, s + w) for s, w in zip(firsts, widths, strict=True))
                best = plane[cell].argmax()
                values[(k, *output_index)], positions[(k, *output_index)] = (
                    plane[cell].ravel()[best],
                    flat[cell].ravel()[best],
                )
        return values.reshape(*lead, *counts), positions.reshape(*lead, *counts)

    return rule


def max_unpool(rank: int) -> Rule:
    def rule(a: Args) -> Array:
        x, positions = a["self"], a["indices"]
        size = tuple(int(n) for n in a["output_size"])
        lead = x.shape[:-rank]
        result = np.zeros((math.prod(lead), math.prod(size)), x.dtype)
        rows = np.arange(len(result))[:, None]
        result[rows, positions.reshape(len(result), -1)] = x.reshape(len(result), -1)
        return result.reshape(*lead, *size)

    return rule
