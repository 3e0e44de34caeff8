"""What a reference rule is: from a node's arguments, by name, to its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from scheduler.errors import UserError
from scheduler.ir.dtypes import DType

Array: TypeAlias = npt.NDArray[Any]
# Arguments by their schema's names, references exchanged for values. A rule gives an array or a
# number, or a tuple of them where the op has several results; None where it has no result.
Args: TypeAlias = Mapping[str, Any]
# Under this name stand the strides of the first tensor argument in its memory, where the elements
# fill it without gaps; None where they do not, or it is not known. Only ops of strides have it.
STRIDES = "strides"
# Under this name stands the first tensor argument's own ``DType``, or None where it is not known.
OWN_DTYPE = "own dtype"
# Under this name stands what runs a ``Subgraph`` among the arguments: from it and the values of
# its inputs to those of its outputs.
RUN = "run"
# Under this name stands the key of the op's random numbers: the seed, and its stream; of torch's
# own numbers how many blocks of threads its GPU holds.
RANDOM = "random key"
Result: TypeAlias = Any
Rule: TypeAlias = Callable[[Args], Result]


class UnsupportedUseError(Exception):
    """A use of its op that a rule does not cover; the text is one line for the user."""


class FailedAssertionError(UserError):
    """An assertion of the model that does not hold for these inputs; torch raises too."""


class EndlessLoopError(UserError):
    """A loop that goes on after as many steps as are run."""


def compute_dtype(dtype: DType) -> Any:
    """The NumPy type in which the reference holds it: float64 for floats, complex128 for complex
    numbers, its own for the rest."""
    return np.dtype(dtype.reference_numpy)


def compute_dtype_or(dtype: DType | None, default: Any) -> Any:
    """``held(dtype)``, or the default where no type is asked for."""
    return np.dtype(default) if dtype is None else compute_dtype(dtype)


def is_float(array: Any) -> bool:
    """Whether an array or number is of a float type."""
    return bool(np.issubdtype(np.asarray(array).dtype, np.floating))


def is_inexact(array: Any) -> bool:
    """Whether an array or number is of a float or complex type."""
    return bool(np.issubdtype(np.asarray(array).dtype, np.inexact))


def wrap_like(value: Any, like: Any) -> Any:
    """A whole number that meets an array of integers, in the array's type: it wraps around there,
    as in torch. Everything else as it is."""
    dtype = np.asarray(like).dtype
    if isinstance(value, bool) or not isinstance(value, int) or dtype.kind not in "iu":
        return value
    bits = value & (2 ** (8 * dtype.itemsize) - 1)
    return np.asarray(bits, dtype=f"u{dtype.itemsize}").view(dtype)


def as_float(array: Array) -> Array:
    """The array as float64, itself if it is, or if it is complex."""
    array = np.asarray(array)
    return array if np.iscomplexobj(array) else np.asarray(array, dtype=np.float64)


def normalize_dims(dim: Any, rank: int) -> tuple[int, ...]:
    """Axes from torch's ``dim``: one, several, or None and () for all of them."""
    if dim is None or dim == ():
        return tuple(range(rank))
    many = dim if isinstance(dim, tuple) else (dim,)
    # A 0-dim tensor has one axis by torch's count: 0 and -1 mean it.
    return tuple(sorted({int(d) % rank for d in many})) if rank else ()


def pair(value: Any, count: int) -> tuple[int, ...]:
    """One number for all spatial axes, or one each."""
    numbers = tuple(value) if isinstance(value, tuple | list) else (value,)
    return tuple(int(n) for n in (numbers * count if len(numbers) == 1 else numbers))
