"""Reference of matrix factorizations: LU, Cholesky, LDL, QR."""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.errors import UserError
from scheduler.ir.reference.lapack import (
    NUMPY,
    adjoint,
    call_lapack,
    each_matrix,
    scipy_linalg,
    to_double,
)
from scheduler.ir.reference.rule import Args, Array, Result, UnsupportedUseError


def _lu_of(a: Array) -> tuple[Any, ...]:
    """Return LU in one matrix, LAPACK's 1-based pivots, and the index of the first zero pivot."""
    if not a.size:
        return a, np.zeros(min(a.shape), np.int32), np.int32(0)
    (getrf,) = scipy_linalg().lapack.get_lapack_funcs(("getrf",), (a,))
    lu, pivots, info = getrf(a)
    return lu, (pivots + 1).astype(np.int32), np.int32(info)


def lu_packed(a: Array) -> tuple[Array, ...]:
    return each_matrix(_lu_of, to_double(a))


def lu_factor(a: Args) -> Result:
    if not a.get("pivot", True):
        raise UnsupportedUseError("factorization without pivoting is not supported on a CPU")
    return lu_packed(a["A"] if "A" in a else a["self"])


def lu_factor_plain(a: Args) -> Result:
    return lu_factor(a)[:2]


def unpack_lu(lu: Array) -> tuple[Array, Array]:
    k = min(lu.shape[-2:])
    lower = np.tril(lu[..., :, :k], -1) + np.eye(lu.shape[-2], k)
    return lower, np.triu(lu[..., :k, :])


def _pivots(matrix: Array, rows: int, least: int = 1) -> Array:
    """Check pivots, since LAPACK uses them as indices: from 1, or negative for 2x2 blocks."""
    if matrix.size and (matrix.min() < least or matrix.max() > rows or not matrix.all()):
        raise UnsupportedUseError(f"a pivot is not one of {rows} rows")
    return np.asarray(matrix[0])


def permutation(pivots: Array, rows: int) -> Array:
    """Return P of A = P L U, from LAPACK's row exchanges."""

    def one(exchanges: Array) -> tuple[Array]:
        order = np.arange(rows)
        for row, other in enumerate(_pivots(exchanges, rows) - 1):
            order[[row, other]] = order[[other, row]]
        result = np.zeros((rows, rows))
        result[order, np.arange(rows)] = 1
        return (result,)

    return each_matrix(one, np.asarray(pivots)[..., None, :])[0]


def lu(a: Args) -> Result:
    packed, pivots, _ = lu_factor(a)
    lower, upper = unpack_lu(packed)
    return permutation(pivots, packed.shape[-2]).astype(packed.dtype), lower, upper


def lu_unpack(a: Args) -> Result:
    packed, none = to_double(a["LU_data"]), np.zeros(0)
    lower, upper = unpack_lu(packed) if a["unpack_data"] else (none, none)
    if not a["unpack_pivots"]:
        return none, lower, upper
    order = permutation(a["LU_pivots"], packed.shape[-2])
    return order.astype(packed.dtype), lower, upper


def _cholesky_of(a: Array) -> tuple[Any, ...]:
    if not a.size:
        return a, np.int32(0)
    (potrf,) = scipy_linalg().lapack.get_lapack_funcs(("potrf",), (a,))
    factor, info = potrf(a, lower=True, clean=True)
    return factor, np.int32(info)


def cholesky_ex(a: Args) -> Result:
    matrix = to_double(a["self"])
    if a["upper"]:
        factor, info = each_matrix(_cholesky_of, adjoint(matrix))
        return adjoint(factor), info
    return each_matrix(_cholesky_of, matrix)


def cholesky(a: Args) -> Result:
    factor, info = cholesky_ex(a)
    if np.any(info):
        raise UserError("linear algebra on these values fails: a matrix is not positive definite")
    return factor


def _product_of(factor: Array, upper: bool) -> Array:
    """Return the matrix of a Cholesky factor."""
    triangle = np.triu(factor) if upper else np.tril(factor)
    other = adjoint(triangle)
    return np.asarray(other @ triangle if upper else triangle @ other)


def cholesky_inverse(a: Args) -> Result:
    matrix = _product_of(to_double(a["self"]), a["upper"])
    return call_lapack(lambda: NUMPY.inv(matrix))


def cholesky_solve(a: Args) -> Result:
    matrix = _product_of(to_double(a["input2"]), a["upper"])
    return call_lapack(lambda: NUMPY.solve(matrix, to_double(a["self"])))


def _ldl_of(a: Array, hermitian: bool) -> tuple[Any, ...]:
    name = "hetrf" if hermitian and np.iscomplexobj(a) else "sytrf"
    if not a.size:
        return a, np.zeros(len(a), np.int32), np.int32(0)
    (factor,) = scipy_linalg().lapack.get_lapack_funcs((name,), (a,))
    packed, pivots, info = factor(a, lower=1)
    return np.tril(packed), pivots.astype(np.int32), np.int32(info)


def ldl_factor_ex(a: Args) -> Result:
    return each_matrix(lambda one: _ldl_of(one, a["hermitian"]), to_double(a["self"]))


def ldl_factor(a: Args) -> Result:
    return ldl_factor_ex(a)[:2]


def ldl_solve(a: Args) -> Result:
    factors, right = to_double(a["LD"]), to_double(a["B"])
    hermitian = a["hermitian"] and np.iscomplexobj(factors)
    (solver,) = scipy_linalg().lapack.get_lapack_funcs(
        ("hetrs" if hermitian else "sytrs",), (factors, right)
    )

    def one(ld: Array, pivots: Array, b: Array) -> tuple[Array]:
        exchanges = _pivots(pivots, len(ld), -len(ld))
        return (solver(ld, exchanges, b, lower=1)[0],) if ld.size and b.size else (b,)

    return each_matrix(one, factors, np.asarray(a["pivots"])[..., None, :], right)[0]


def qr(a: Args) -> Result:
    if "some" in a:
        matrix, mode = a["self"], "reduced" if a["some"] else "complete"
    else:
        matrix, mode = a["A"], a["mode"]
    if mode == "r":
        return np.zeros(0), NUMPY.qr(to_double(matrix), mode="r")
    result = NUMPY.qr(to_double(matrix), mode=mode)
    return result[0], result[1]


def geqrf(a: Args) -> Result:
    packed, scales = NUMPY.qr(to_double(a["self"]), mode="raw")
    return np.swapaxes(packed, -1, -2), scales


def _reflected(packed: Array, scales: Array, columns: int) -> Array:
    """Return the first columns of the product of the reflectors from ``geqrf``."""

    def one(vectors: Array, factors: Array) -> tuple[Array]:
        rows = vectors.shape[0]
        result = np.eye(rows, columns, dtype=np.result_type(vectors, factors))
        for k in reversed(range(factors.shape[-1])):
            v = np.zeros(rows, result.dtype)
            v[k], v[k + 1 :] = 1, vectors[k + 1 :, k]
            result = result - factors[0, k] * np.outer(v, np.conj(v) @ result)
        return (result,)

    return each_matrix(one, to_double(packed), to_double(scales)[..., None, :])[0]


def householder_product(a: Args) -> Result:
    packed, scales = (a["input"], a["tau"]) if "tau" in a else (a["self"], a["input2"])
    return _reflected(packed, scales, np.shape(packed)[-1])


def ormqr(a: Args) -> Result:
    full = _reflected(a["self"], a["input2"], np.shape(a["self"])[-2])
    factor = adjoint(full) if a["transpose"] else full
    other = to_double(a["input3"])
    return factor @ other if a["left"] else other @ factor
