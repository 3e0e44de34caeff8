"""Reference of the parts of complex numbers, and of complex numbers from parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.ir import numerics
from scheduler.ir.reference.rule import Args, Array, as_float


def real(a: Args) -> Array:
    return np.real(a["self"])


def imag(a: Args) -> Array:
    return np.imag(a["self"])


def conj(a: Args) -> Array:
    x: Array = a["self"]
    return np.asarray(np.conj(x)) if np.iscomplexobj(x) else x


def adjoint(a: Args) -> Array:
    x: Array = a["self"]
    return conj({"self": np.swapaxes(x, -1, -2) if x.ndim else x})


def neg(a: Args) -> Array:
    return np.asarray(-a["self"])


def view_as_real(a: Args) -> Array:
    """Return the parts as a view of the numbers' memory, so that writes to either affect both."""
    x = np.asarray(a["self"], dtype=np.complex128)
    first = x.real
    size, stride = (*first.shape, 2), (*first.strides, first.itemsize)
    return np.lib.stride_tricks.as_strided(first, size, stride)


def view_as_complex(a: Args) -> Array:
    x = np.asarray(a["self"], dtype=np.float64)
    if x.strides[-1] == x.itemsize:
        return x.view(np.complex128)[..., 0]
    return np.asarray(numerics.make_complex(x[..., 0], x[..., 1]))


def complex_op(a: Args) -> Array:
    return np.asarray(numerics.make_complex(as_float(a["real"]), as_float(a["imag"])))


def polar(a: Args) -> Array:
    size, turn = a["abs"], a["angle"]
    return np.asarray(numerics.make_complex(size * np.cos(turn), size * np.sin(turn)))


def sgn(a: Args) -> Any:
    x = a["self"]
    if not np.iscomplexobj(x):
        return x.copy() if x.dtype == np.bool_ else numerics.sign(x)
    size = np.abs(x)
    return np.where(size == 0, 0, x / np.where(size == 0, 1, size))


def vdot(a: Args) -> Any:
    return np.conj(a["self"]) @ a["other"]
