"""Reference rules: functions from a node's arguments, by name, to its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from scheduler.errors import UserError
from scheduler.ir.dtypes import DType

Array: TypeAlias = npt.NDArray[Any]
# Arguments by the schema's names, with references replaced by values. A rule returns an array or a
# number, a tuple of them if the op has several results, or None if it has no result.
Args: TypeAlias = Mapping[str, Any]
# The key of the first tensor argument's strides in its memory, if its elements fill it without
# gaps; None if they do not, or if that is unknown. Only ops on strides have it.
STRIDES = "strides"
# The key of the first tensor argument's own ``DType``, or None if unknown.
OWN_DTYPE = "own dtype"
# The key of the function that runs a ``Subgraph`` argument: from it and the values of its inputs
# to those of its outputs.
RUN = "run"
# The key of the op's random numbers: the seed and its stream; for torch's generator the number of
# resident blocks of threads on its GPU.
RANDOM = "random key"
Result: TypeAlias = Any
Rule: TypeAlias = Callable[[Args], Result]


class UnsupportedUseError(Exception):
    """A use of an op that its rule does not support; the text is one line for the user."""


class FailedAssertionError(UserError):
    """An assertion of the model fails for these inputs; torch raises an error too."""


class EndlessLoopError(UserError):
    """A loop does not end within the maximum number of steps."""


def compute_dtype(dtype: DType) -> Any:
    """Return the NumPy type that the reference computes in: float64 for floats, complex128 for
    complex numbers, its own for others."""
    return np.dtype(dtype.reference_numpy)


def compute_dtype_or(dtype: DType | None, default: Any) -> Any:
    """Return ``compute_dtype(dtype)``, or the default if ``dtype`` is None."""
    return np.dtype(default) if dtype is None else compute_dtype(dtype)


def is_float(array: Any) -> bool:
    """Whether an array or number has a float type."""
    return bool(np.issubdtype(np.asarray(array).dtype, np.floating))


def is_inexact(array: Any) -> bool:
    """Whether an array or number has a float or complex type."""
    return bool(np.issubdtype(np.asarray(array).dtype, np.inexact))


def wrap_like(value: Any, like: Any) -> Any:
    """Convert an integer to the type of an integer array, wrapping around as in torch. Other values
    are unchanged."""
    dtype = np.asarray(like).dtype
    if isinstance(value, bool) or not isinstance(value, int) or dtype.kind not in "iu":
        return value
    bits = value & (2 ** (8 * dtype.itemsize) - 1)
    return np.asarray(bits, dtype=f"u{dtype.itemsize}").view(dtype)


def as_float(array: Array) -> Array:
    """Convert the array to float64, unless it is float64 or complex."""
    array = np.asarray(array)
    return array if np.iscomplexobj(array) else np.asarray(array, dtype=np.float64)


def normalize_dims(dim: Any, rank: int) -> tuple[int, ...]:
    """Return the axes for torch's ``dim``: one, several, or None and () for all."""
    if dim is None or dim == ():
        return tuple(range(rank))
    many = dim if isinstance(dim, tuple) else (dim,)
    # In torch a 0-dim tensor has one axis, which 0 and -1 denote.
    return tuple(sorted({int(d) % rank for d in many})) if rank else ()


def axis_args(a: Args) -> dict[str, Any]:
    """Return torch's ``dim`` and ``keepdim``, if the op has them, as NumPy's arguments."""
    axis = normalize_dims(a.get("dim"), np.ndim(a["self"]))
    return {"axis": axis, "keepdims": bool(a.get("keepdim", False))}


def pair(value: Any, count: int) -> tuple[int, ...]:
    """Return one number per spatial axis, from one for all axes or one for each."""
    numbers = tuple(value) if isinstance(value, tuple | list) else (value,)
    return tuple(int(n) for n in (numbers * count if len(numbers) == 1 else numbers))
