"""Reference of eigenvalues and singular values, and of ranks and norms derived from them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from scheduler.ir.reference.lapack import (
    NUMPY,
    adjoint,
    call_lapack,
    is_vector,
    scipy_linalg,
    to_double,
    transpose,
)
from scheduler.ir.reference.rule import OWN_DTYPE, Args, Array, Result, Rule


def eigen(a: Args) -> Result:
    values, vectors = call_lapack(lambda: NUMPY.eig(to_double(a["self"])))
    return values.astype(np.complex128), vectors.astype(np.complex128)


def eigenvalues(a: Args) -> Result:
    return call_lapack(lambda: NUMPY.eigvals(to_double(a["self"]))).astype(np.complex128)


def eigen_symmetric(a: Args) -> Result:
    matrix = to_double(a["A"] if "A" in a else a["self"])
    if not a.get("compute_v", True):
        return call_lapack(lambda: NUMPY.eigvalsh(matrix, a["UPLO"])), np.zeros(0)
    values, vectors = call_lapack(lambda: NUMPY.eigh(matrix, a["UPLO"]))
    return values, vectors


def eigenvalues_symmetric(a: Args) -> Result:
    matrix = to_double(a["self"])
    return call_lapack(lambda: NUMPY.eigvalsh(matrix, a["UPLO"]))


def singular(a: Args) -> Result:
    matrix = to_double(a["A"])
    if not a.get("compute_uv", True):
        none = np.zeros(0, matrix.dtype)
        return none, _singular_values(matrix), none
    result = call_lapack(lambda: NUMPY.svd(matrix, full_matrices=a["full_matrices"]))
    return result[0], result[1], result[2]


def _singular_values(matrix: Array) -> Array:
    return np.asarray(call_lapack(lambda: NUMPY.svd(matrix, compute_uv=False)))


def singular_values(a: Args) -> Result:
    return _singular_values(to_double(a["A"]))


def svd(a: Args) -> Result:
    """The op before ``linalg``: V, not its adjoint; zeros if no vectors are requested."""
    matrix = to_double(a["self"])
    *batch, m, n = matrix.shape
    if not a["compute_uv"]:
        u, v = (np.zeros((*batch, size, size), matrix.dtype) for size in (m, n))
        return u, _singular_values(matrix), v
    u, values, vh = call_lapack(lambda: NUMPY.svd(matrix, full_matrices=not a["some"]))
    return u, values, adjoint(vh)


def _cutoff(a: Args, values: Array, shape: Sequence[int]) -> Array:
    """Return the threshold below which singular values count as zero, by torch's defaults."""
    atol, rtol = a.get("atol"), a.get("rtol")
    if rtol is None:
        dtype = a[OWN_DTYPE]
        rounding = 2 * dtype.eps if dtype is not None else np.finfo(np.float64).eps
        some = atol is not None and np.any(np.asarray(atol) > 0)
        rtol = 0.0 if some else max(shape) * rounding
    largest = values.max(axis=-1, initial=0.0)
    least = 0.0 if atol is None else np.asarray(atol)
    return np.asarray(np.maximum(least, np.asarray(rtol) * largest))


def matrix_rank(a: Args) -> Result:
    matrix = to_double(a["input"] if "input" in a else a["self"])
    if a["hermitian"]:
        values = np.abs(call_lapack(lambda: NUMPY.eigvalsh(matrix)))
    else:
        values = _singular_values(matrix)
    cutoff = np.asarray(a["tol"]) if "tol" in a else _cutoff(a, values, matrix.shape[-2:])
    return np.sum(values > cutoff[..., None], axis=-1)


def pseudo_inverse(a: Args) -> Result:
    matrix = to_double(a["self"])
    if "rcond" in a:
        a = {**a, "rtol": a["rcond"], "atol": None}
    if not matrix.size:
        return transpose(matrix)
    if a.get("hermitian"):
        values, vectors = call_lapack(lambda: NUMPY.eigh(matrix))
        u, vh = vectors, adjoint(vectors)
    else:
        u, values, vh = call_lapack(lambda: NUMPY.svd(matrix, full_matrices=False))
    cutoff = _cutoff(a, np.abs(values), matrix.shape[-2:])[..., None]
    inverted = np.where(np.abs(values) > cutoff, 1 / np.where(values == 0, 1, values), 0)
    return (adjoint(vh) * inverted[..., None, :]) @ adjoint(u)


def condition(a: Args) -> Result:
    matrix, order = to_double(a["self"]), a["p"]
    if order in (None, 2, -2):
        values = _singular_values(matrix)
        first, last = values.max(axis=-1), values.min(axis=-1)
        return last / first if order == -2 else first / last
    if not matrix.size:
        return np.zeros(matrix.shape[:-2])
    return NUMPY.cond(matrix, order)


def _norm(matrix: Array, order: Any, dims: tuple[int, int], keepdim: bool) -> Array:
    moved = np.moveaxis(matrix, dims, (-2, -1))
    if order == "nuc" or order in (2, -2):
        values = _singular_values(moved)
        greatest = partial(np.max, initial=0.0)
        reduce: Any = {"nuc": np.sum, 2: greatest, -2: np.min}[order]
        result = np.asarray(reduce(values, axis=-1))
    elif order in (None, "fro"):
        result = np.sqrt(np.sum(np.abs(moved) ** 2, axis=(-2, -1)))
    else:
        sums = np.abs(moved).sum(axis=-2 if abs(order) == 1 else -1)
        result = sums.max(axis=-1, initial=0.0) if order > 0 else sums.min(axis=-1)
    return np.expand_dims(result, tuple(d % matrix.ndim for d in dims)) if keepdim else result


def matrix_norm(a: Args) -> Result:
    return _norm(to_double(a["self"]), a["ord"], tuple(a["dim"]), a["keepdim"])


def nuclear_norm(a: Args) -> Result:
    return _norm(to_double(a["self"]), "nuc", tuple(a.get("dim", (-2, -1))), a["keepdim"])


def norm(vector_norm: Rule) -> Rule:
    """Return ``linalg_norm``, from the norms of vectors and of matrices."""

    def rule(a: Args) -> Result:
        order, dim = a["ord"], a["dim"]
        if dim is None and order is not None and np.ndim(a["self"]) == 2:
            dim = (-2, -1)
        if isinstance(dim, tuple) and len(dim) == 2 and order is not None:
            return _norm(to_double(a["self"]), order, dim, a["keepdim"])
        return vector_norm({**a, "ord": 2 if order is None else order})

    return rule


def exponential(a: Args) -> Result:
    matrix = to_double(a["self"])
    return scipy_linalg().expm(matrix) if matrix.size else matrix


def least_squares(a: Args) -> Result:
    matrix, right = to_double(a["self"]), to_double(a["b"])
    driver = a["driver"] or "gelsy"
    b = right[..., None] if is_vector(matrix, right) else right
    values = _singular_values(matrix)
    dtype = a[OWN_DTYPE]
    rounding = 2 * dtype.eps if dtype is not None else np.finfo(np.float64).eps
    limit = max(matrix.shape[-2:]) * rounding if a["rcond"] is None else float(a["rcond"])
    inverted = pseudo_inverse({**a, "self": matrix, "atol": 0.0, "rtol": limit})
    solution = inverted @ b
    rank = np.sum(values > limit * values.max(axis=-1, initial=0.0)[..., None], axis=-1)
    m, n = matrix.shape[-2:]
    has_residuals = m > n and bool(np.all(rank == n)) and driver != "gelsy"
    residuals = (
        np.sum(np.abs(matrix @ solution - b) ** 2, axis=-2) if has_residuals else np.zeros(0)
    )
    return (
        solution[..., 0] if is_vector(matrix, right) else solution,
        residuals,
        np.zeros(0, np.int64) if driver == "gels" else np.asarray(rank),
        values if driver in ("gelsd", "gelss") else np.zeros(0),
    )
