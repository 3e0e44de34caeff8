"""Rows of linear algebra: solutions, factorizations and spectra by LAPACK, products by kernels."""

from __future__ import annotations

from scheduler.ir.ops import op
from scheduler.ir.reference import linalg as ref
from scheduler.ir.reference import matrix_factors as factors
from scheduler.ir.reference import matrix_spectra as spectra
from scheduler.ir.reference import reductions
from scheduler.lowering import linalg as rules
from scheduler.lowering.errors import FACTORS, MATRIX_EXPONENTIALS, SPECTRA

_LU = "A, *, pivot=True"
_EX = "*, check_errors=False"
_RTOL = "*, atol=None, rtol=None, hermitian=False"

ROWS = (
    op("aten.linalg_lu_factor", _LU, FACTORS, factors.lu_factor_plain),
    op("aten.linalg_lu_factor_ex", f"{_LU}, check_errors=False", FACTORS, factors.lu_factor),
    op("aten._lu_with_info", "self, pivot=True, check_errors=True", FACTORS, factors.lu_factor),
    op("aten.linalg_lu", _LU, FACTORS, factors.lu),
    op(
        "aten.lu_unpack",
        "LU_data, LU_pivots, unpack_data=True, unpack_pivots=True",
        FACTORS,
        factors.lu_unpack,
    ),
    op("aten.cholesky", "self, upper=False", FACTORS, factors.cholesky),
    op("aten.linalg_cholesky", "self, *, upper=False", FACTORS, factors.cholesky),
    op(
        "aten.linalg_cholesky_ex",
        "self, *, upper=False, check_errors=False",
        FACTORS,
        factors.cholesky_ex,
    ),
    op("aten.cholesky_inverse", "self, upper=False", FACTORS, factors.cholesky_inverse),
    op("aten.cholesky_solve", "self, input2, upper=False", FACTORS, factors.cholesky_solve),
    op("aten.linalg_ldl_factor", "self, *, hermitian=False", FACTORS, factors.ldl_factor),
    op(
        "aten.linalg_ldl_factor_ex",
        "self, *, hermitian=False, check_errors=False",
        FACTORS,
        factors.ldl_factor_ex,
    ),
    op("aten.linalg_ldl_solve", "LD, pivots, B, *, hermitian=False", FACTORS, factors.ldl_solve),
    op("aten.linalg_qr", "A, mode='reduced'", FACTORS, factors.qr),
    op("aten.qr", "self, some=True", FACTORS, factors.qr),
    op("aten.geqrf", "self", FACTORS, factors.geqrf),
    op("aten.orgqr", "self, input2", FACTORS, factors.householder_product),
    op("aten.linalg_householder_product", "input, tau", FACTORS, factors.householder_product),
    op("aten.ormqr", "self, input2, input3, left=True, transpose=False", FACTORS, factors.ormqr),
    op("aten.inverse", "self", FACTORS, ref.inverse),
    op("aten.linalg_inv", "A", FACTORS, ref.inverse),
    op("aten.linalg_inv_ex", f"A, {_EX}", FACTORS, ref.inverse_ex),
    op("aten.linalg_solve", "A, B, *, left=True", FACTORS, ref.solve),
    op("aten.linalg_solve_ex", "A, B, *, left=True, check_errors=False", FACTORS, ref.solve_ex),
    op(
        "aten._linalg_solve_ex",
        "A, B, *, left=True, check_errors=False",
        FACTORS,
        ref.solve_with_factors,
    ),
    op(
        "aten.linalg_solve_triangular",
        "self, B, *, upper, left=True, unitriangular=False",
        FACTORS,
        ref.solve_triangular,
    ),
    op(
        "aten.triangular_solve",
        "self, A, upper=True, transpose=False, unitriangular=False",
        FACTORS,
        ref.triangular_solve,
    ),
    op("aten.lu_solve", "self, LU_data, LU_pivots", FACTORS, ref.lu_solve),
    op(
        "aten.linalg_lu_solve",
        "LU, pivots, B, *, left=True, adjoint=False",
        FACTORS,
        ref.linalg_lu_solve,
    ),
    op("aten.det", "self", FACTORS, ref.determinant),
    op("aten.linalg_det", "A", FACTORS, ref.determinant),
    op("aten._linalg_det", "A", FACTORS, ref.determinant_with_factors),
    op("aten.slogdet", "self", FACTORS, ref.sign_and_log),
    op("aten.linalg_slogdet", "A", FACTORS, ref.sign_and_log),
    op("aten._linalg_slogdet", "A", FACTORS, ref.sign_and_log_with_factors),
    op("aten.logdet", "self", FACTORS, ref.log_determinant),
    op("aten.linalg_tensorinv", "self, ind=2", FACTORS, ref.tensor_inverse),
    op("aten.linalg_tensorsolve", "self, other, dims=None", FACTORS, ref.tensor_solve),
    op("aten.linalg_lstsq", "self, b, rcond=None, *, driver=None", SPECTRA, spectra.least_squares),
    op("aten.linalg_eig", "self", SPECTRA, spectra.eigen),
    op("aten.linalg_eigvals", "self", SPECTRA, spectra.eigenvalues),
    op("aten._linalg_eigvals", "self", SPECTRA, spectra.eigenvalues),
    op("aten.linalg_eigh", "self, UPLO='L'", SPECTRA, spectra.eigen_symmetric),
    op("aten._linalg_eigh", "A, UPLO='L', compute_v=True", SPECTRA, spectra.eigen_symmetric),
    op("aten.linalg_eigvalsh", "self, UPLO='L'", SPECTRA, spectra.eigenvalues_symmetric),
    op("aten.linalg_svd", "A, full_matrices=True, *, driver=None", SPECTRA, spectra.singular),
    op(
        "aten._linalg_svd",
        "A, full_matrices=False, compute_uv=True, *, driver=None",
        SPECTRA,
        spectra.singular,
    ),
    op("aten.linalg_svdvals", "A, *, driver=None", SPECTRA, spectra.singular_values),
    op("aten.svd", "self, some=True, compute_uv=True", SPECTRA, spectra.svd),
    op(
        "aten.linalg_pinv",
        "self, rcond, hermitian=False; rcond_tensor: self, rcond, hermitian=False; "
        f"atol_rtol_float atol_rtol_tensor: self, {_RTOL}",
        SPECTRA,
        spectra.pseudo_inverse,
    ),
    op("aten.pinverse", "self, rcond=1e-15", SPECTRA, spectra.pseudo_inverse),
    op(
        "aten.linalg_matrix_rank",
        "self, tol, hermitian=False; tol_tensor: input, tol, hermitian=False; "
        f"atol_rtol_float: self, {_RTOL}; atol_rtol_tensor: input, {_RTOL}",
        SPECTRA,
        spectra.matrix_rank,
    ),
    op("aten.linalg_cond", "self, p=None; p_str: self, p", SPECTRA, spectra.condition),
    op(
        "aten.nuclear_norm",
        "self, keepdim=False; dim: self, dim, keepdim=False",
        SPECTRA,
        spectra.nuclear_norm,
    ),
    op("aten.linalg_matrix_exp", "self", MATRIX_EXPONENTIALS, spectra.exponential),
    op("aten.matrix_exp", "self", MATRIX_EXPONENTIALS, spectra.exponential),
    op(
        "aten.linalg_matrix_norm",
        "self, ord, dim=(-2, -1), keepdim=False, *, dtype=None; "
        "str_ord: self, ord='fro', dim=(-2, -1), keepdim=False, *, dtype=None",
        rules.matrix_norm,
        spectra.matrix_norm,
    ),
    op(
        "aten.linalg_norm",
        "self, ord=None, dim=None, keepdim=False, *, dtype=None; "
        "ord_str: self, ord, dim=None, keepdim=False, *, dtype=None",
        rules.norm,
        spectra.norm(reductions.norm),
    ),
    op("aten.linalg_vecdot", "x, y, *, dim=-1", rules.vecdot, ref.vecdot),
    op("aten.linalg_cross", "self, other, *, dim=-1", rules.cross, ref.cross),
    op("aten.cross", "self, other, dim=None", rules.cross, ref.cross),
    op("aten.linalg_vander", "x, *, N=None", rules.vandermonde, ref.vandermonde),
    op("aten.linalg_multi_dot", "tensors", rules.multi_dot, ref.multi_dot),
)
