"""Reference of solutions, inverses, determinants and products of matrices."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from scheduler.ir.reference.lapack import (
    NUMPY,
    adjoint,
    call_lapack,
    each_matrix,
    is_vector,
    scipy_linalg,
    to_double,
    transpose,
)
from scheduler.ir.reference.matrix_factors import lu_packed, permutation, unpack_lu
from scheduler.ir.reference.rule import Args, Array, Result


def inverse(a: Args) -> Result:
    matrix = to_double(a["A"] if "A" in a else a["self"])
    return call_lapack(lambda: NUMPY.inv(matrix))


def inverse_ex(a: Args) -> Result:
    info = lu_packed(a["A"])[2]
    return inverse(a), info


def _solve(a: Array, b: Array, left: bool) -> Array:
    vector = is_vector(a, b)
    right = b[..., None] if vector else b
    if not left:
        return np.swapaxes(_solve(transpose(a), transpose(right), True), -1, -2)
    result = call_lapack(lambda: NUMPY.solve(a, right))
    return np.asarray(result[..., 0] if vector else result)


def solve(a: Args) -> Result:
    return _solve(to_double(a["A"]), to_double(a["B"]), a["left"])


def solve_ex(a: Args) -> Result:
    return solve(a), lu_packed(a["A"])[2]


def _factors_of(matrix: Any) -> tuple[Array, ...]:
    """Return the factors that torch saves: of the transposed matrix, unless it is complex."""
    a = to_double(matrix)
    return lu_packed(a if np.iscomplexobj(a) else transpose(a))


def solve_with_factors(a: Args) -> Result:
    packed, pivots, info = _factors_of(a["A"])
    return solve(a), packed, pivots, info


def solve_triangular(a: Args) -> Result:
    matrix, right = to_double(a["self"]), to_double(a["B"])
    result = _solve_triangle(matrix, right if a["left"] else transpose(right), a, not a["left"])
    return result if a["left"] else transpose(result)


def triangular_solve(a: Args) -> Result:
    matrix = to_double(a["A"])
    return _solve_triangle(matrix, to_double(a["self"]), a, a["transpose"]), matrix


def _solve_triangle(coefficients: Array, right: Array, a: Args, transposed: bool) -> Array:
    triangle = np.triu(coefficients) if a["upper"] else np.tril(coefficients)
    if a["unitriangular"]:
        diagonal = np.einsum("...ii->...i", triangle)
        triangle = (
            triangle - diagonal[..., None] * np.eye(diagonal.shape[-1]) + np.eye(diagonal.shape[-1])
        )

    def one(matrix: Array, b: Array) -> tuple[Array]:
        if not matrix.size or not b.size:
            return (np.zeros(b.shape, np.result_type(matrix, b)),)
        lower = not a["upper"]
        trans = 1 if transposed else 0
        return (
            call_lapack(
                lambda: scipy_linalg().solve_triangular(matrix, b, lower=lower, trans=trans)
            ),
        )

    return each_matrix(one, triangle, right)[0]


def _solve_factored(packed: Any, pivots: Any, right: Any, left: bool, conjugated: bool) -> Array:
    lower, upper = unpack_lu(to_double(packed))
    product = permutation(pivots, lower.shape[-2]) @ lower @ upper
    return _solve(adjoint(product) if conjugated else product, to_double(right), left)


def lu_solve(a: Args) -> Result:
    return _solve_factored(a["LU_data"], a["LU_pivots"], a["self"], True, False)


def linalg_lu_solve(a: Args) -> Result:
    return _solve_factored(a["LU"], a["pivots"], a["B"], a["left"], a["adjoint"])


def determinant(a: Args) -> Result:
    return NUMPY.det(to_double(a["A"] if "A" in a else a["self"]))


def determinant_with_factors(a: Args) -> Result:
    return determinant(a), *_factors_of(a["A"])[:2]


def sign_and_log(a: Args) -> Result:
    result = NUMPY.slogdet(to_double(a["A"] if "A" in a else a["self"]))
    return result[0], result[1]


def sign_and_log_with_factors(a: Args) -> Result:
    return *sign_and_log(a), *_factors_of(a["A"])[:2]


def log_determinant(a: Args) -> Result:
    sign, log = sign_and_log(a)
    if np.iscomplexobj(sign):
        return np.log(sign) + log
    return np.where(sign < 0, np.nan, log)


def tensor_inverse(a: Args) -> Result:
    return call_lapack(lambda: NUMPY.tensorinv(to_double(a["self"]), a["ind"]))


def tensor_solve(a: Args) -> Result:
    return call_lapack(
        lambda: NUMPY.tensorsolve(to_double(a["self"]), to_double(a["other"]), a["dims"])
    )


def vandermonde(a: Args) -> Result:
    x = np.atleast_1d(a["x"])
    count = x.shape[-1] if a["N"] is None else int(a["N"])
    return x[..., None] ** np.arange(count)


def vecdot(a: Args) -> Result:
    return np.sum(np.conj(a["x"]) * np.asarray(a["y"]), axis=a["dim"])


def cross(a: Args) -> Result:
    first, second = np.broadcast_arrays(a["self"], a["other"])
    dim = a["dim"]
    if dim is None:
        dim = next(d for d, size in enumerate(first.shape) if size == 3)
    x, y = (np.moveaxis(operand, dim, 0) for operand in (first, second))
    parts = [x[i] * y[j] - x[j] * y[i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return np.stack(parts, axis=dim)


def multi_dot(a: Args) -> Result:
    return reduce(np.matmul, [np.asarray(factor) for factor in a["tensors"]])
