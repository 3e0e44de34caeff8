"""LAPACK in double precision over batches of matrices, for the references of linear algebra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from scheduler.errors import UserError
from scheduler.ir.reference.rule import Array

#: Untyped, because its annotations distinguish array types that are one type here.
NUMPY: Any = np.linalg


def scipy_linalg() -> Any:
    """Return ``scipy.linalg``, imported on first use: it takes a third of a second."""
    import scipy.linalg  # noqa: PLC0415

    return scipy.linalg


def to_double(array: Any) -> Array:
    """Convert to double precision, real or complex."""
    matrix = np.asarray(array)
    return matrix.astype(np.complex128 if np.iscomplexobj(matrix) else np.float64, copy=False)


def transpose(a: Array) -> Array:
    """Transpose each matrix."""
    return np.swapaxes(a, -1, -2)


def adjoint(a: Array) -> Array:
    """Transpose and conjugate each matrix."""
    return np.conj(transpose(a))


def is_vector(a: Array, b: Array) -> bool:
    """Whether torch treats ``b`` as vectors, one for each matrix of ``a``."""
    return b.ndim == 1 or (a.ndim - 1 == b.ndim and a.shape[:-1] == b.shape)


def each_matrix(function: Callable[..., tuple[Any, ...]], *matrices: Array) -> tuple[Array, ...]:
    """Apply ``function`` to the matrices at each batch index; batch dimensions broadcast."""
    batch = np.broadcast_shapes(*(m.shape[:-2] for m in matrices))
    full = [np.broadcast_to(m, (*batch, *m.shape[-2:])) for m in matrices]
    if 0 in batch:  # take shapes and types from regular matrices
        result = function(*(_regular_stand_in(m) for m in matrices))
        parts = [np.asarray(part) for part in result]
        return tuple(np.zeros((*batch, *p.shape), p.dtype) for p in parts)
    rows = [function(*(m[index] for m in full)) for index in np.ndindex(*batch)]
    return tuple(
        np.stack([np.asarray(part) for part in parts]).reshape((*batch, *np.shape(parts[0])))
        for parts in zip(*rows, strict=True)
    )


def _regular_stand_in(array: Array) -> Array:
    """Return a regular matrix; for integers, which are pivots, ones."""
    shape, dtype = array.shape[-2:], array.dtype
    return np.ones(shape, dtype) if dtype.kind in "iu" else np.eye(*shape, dtype=dtype)


def call_lapack(function: Callable[[], Any]) -> Any:
    """Call LAPACK. Raises ``UserError`` for a matrix that it cannot factor."""
    try:
        return function()
    except np.linalg.LinAlgError as error:
        raise UserError(f"linear algebra on these values fails: {error}") from None
