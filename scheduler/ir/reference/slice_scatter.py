"""Reference of ops that replace a part of a tensor, and of the gradients of slices."""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.ir.reference.rule import Args, Array


def _write_slice(result: Array, a: Args, part: Array) -> Array:
    place = [slice(None)] * result.ndim
    place[a["dim"]] = slice(a["start"], a["end"], a["step"])
    result[tuple(place)] = part
    return np.asarray(result)


def _write_select(result: Array, a: Args, part: Array) -> Array:
    place: list[Any] = [slice(None)] * result.ndim
    place[a["dim"]] = a["index"]
    result[tuple(place)] = part
    return np.asarray(result)


def _write_diagonal(result: Array, a: Args, part: Array) -> Array:
    shown = np.diagonal(result, a["offset"], a["dim1"], a["dim2"])
    shown.flags.writeable = True
    shown[...] = part
    return np.asarray(result)


def _zeros(a: Args) -> Array:
    return np.zeros(a["input_sizes"], dtype=a["grad_output"].dtype)


def slice_scatter(a: Args) -> Array:
    return _write_slice(a["self"].copy(), a, a["src"])


def select_scatter(a: Args) -> Array:
    return _write_select(a["self"].copy(), a, a["src"])


def diagonal_scatter(a: Args) -> Array:
    return _write_diagonal(a["self"].copy(), a, a["src"])


def slice_backward(a: Args) -> Array:
    return _write_slice(_zeros(a), a, a["grad_output"])


def select_backward(a: Args) -> Array:
    return _write_select(_zeros(a), a, a["grad_output"])


def diagonal_backward(a: Args) -> Array:
    return _write_diagonal(_zeros(a), a, a["grad_output"])


def unfold_backward(a: Args) -> Array:
    grad, step = a["grad_in"], a["step"]
    result = np.zeros(a["input_sizes"], dtype=grad.dtype)
    if not result.ndim:
        return np.asarray(grad.reshape(()))
    along = np.moveaxis(result, a["dim"], 0)
    windows = np.moveaxis(grad, a["dim"] % result.ndim, 0)
    starts = np.arange(len(windows)) * step
    for place in range(a["size"]):
        np.add.at(along, starts + place, windows[..., place])
    return result
