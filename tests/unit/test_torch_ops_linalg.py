"""Linear algebra beside torch: products in kernels, factors through LAPACK."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler.ir.reference import matrix_factors
from scheduler.ir.reference.rule import UnsupportedUseError
from tests.unit.torch_export import agree, as_module

torch = pytest.importorskip("torch")
LA = torch.linalg


def _randn(*size: int, seed: int = 1) -> Any:
    return torch.randn(*size, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


A, B, V = _randn(2, 4, 4), _randn(2, 4, 3, seed=2), _randn(2, 4, seed=3)
TALL = _randn(3, 5, 3, seed=4)


def test_solutions_and_determinants(tmp_path: Path) -> None:
    def every(a: Any, b: Any, v: Any) -> Any:
        positive = a @ a.mT + torch.eye(4)
        lower = LA.cholesky(positive)
        return (
            *(LA.inv(a), *LA.inv_ex(a), LA.solve(a, b), LA.solve(a, v), LA.det(a)),
            *(LA.solve(a.mT, b.mT, left=False), *LA.slogdet(a), torch.logdet(positive)),
            *(LA.solve_triangular(a, b, upper=True), LA.tensorsolve(a[0], v[0])),
            LA.solve_triangular(a, b.mT, upper=False, left=False, unitriangular=True),
            *(torch.cholesky_solve(b, lower), torch.cholesky_inverse(lower)),
            *(LA.tensorinv(a[0].view(2, 2, 4), ind=2), LA.matrix_exp(a)),
        )

    agree(as_module(every), (A, B, V), tmp_path)


def test_factors(tmp_path: Path) -> None:
    def every(a: Any, b: Any, tall: Any) -> Any:
        packed, pivots = LA.lu_factor(tall)
        own, places, _ = LA.lu_factor_ex(a)
        q, r = LA.qr(tall)
        vectors, scales = torch.geqrf(tall)
        symmetric = a + a.mT
        ldl, exchanges = LA.ldl_factor(symmetric)
        return (
            *(packed, pivots, *LA.lu(tall), *LA.lu(tall.mT), *torch.lu_unpack(packed, pivots)),
            *(LA.lu_solve(own, places, b), LA.lu_solve(own, places, b.mT, left=False)),
            *(LA.lu_solve(own, places, b, adjoint=True), q @ r, LA.qr(tall, "r")[1].abs()),
            *(LA.qr(tall, "complete")[0].abs(), LA.householder_product(vectors, scales)),
            torch.ormqr(vectors, scales, tall, transpose=True),
            LA.cholesky(a @ a.mT + torch.eye(4), upper=True),
            LA.ldl_solve(ldl, exchanges, b),
        )

    agree(as_module(every), (A, B, TALL), tmp_path)


@pytest.mark.full
def test_spectra(tmp_path: Path) -> None:
    def every(a: Any, b: Any, tall: Any) -> Any:
        u, s, vh = LA.svd(tall, full_matrices=False)
        values, vectors = LA.eigh(a + a.mT)
        return (
            *((u * s[..., None, :]) @ vh, s, LA.svdvals(tall), values, LA.eigvalsh(a, "U")),
            *(vectors @ vectors.mT, LA.pinv(tall), torch.pinverse(tall[0]), LA.cond(a)),
            *(LA.matrix_rank(tall), LA.matrix_rank(a @ torch.ones(4, 4).double(), tol=1e-6)),
            *(LA.cond(a, 1), LA.cond(a, "fro"), LA.pinv(a + a.mT, hermitian=True)),
            *(LA.matrix_norm(tall, "nuc"), LA.matrix_norm(tall, 2), LA.norm(tall[0], -2)),
        )

    agree(as_module(every), (A, B, TALL), tmp_path)


def test_products_and_norms(tmp_path: Path) -> None:
    def every(a: Any, b: Any, three: Any) -> Any:
        inf = float("inf")
        return (
            *(LA.multi_dot([a[0], b[0], b[1].mT, a[1]]), LA.multi_dot([a[0, 0], a[1], b[0, :, 0]])),
            *(LA.vecdot(a, a[0]), LA.vecdot(a, b[..., :1], dim=1), LA.vander(a[0, 0])),
            *(LA.vander(a[0], N=3), LA.cross(three, three[:1] + 1), three.cross(three + 1, dim=1)),
            *(torch.cross(three.mT, three.mT.flip(0), dim=-2), LA.norm(a), LA.norm(a[0], 1)),
            *(LA.matrix_norm(a), LA.matrix_norm(a, 1, keepdim=True), LA.matrix_norm(a, -inf)),
            *(
                LA.matrix_norm(a, inf, dim=(0, 2)),
                LA.norm(a, inf, dim=(0, 1)),
                LA.norm(a, 3, dim=1),
            ),
        )

    agree(as_module(every), (A, B, _randn(4, 3, 3)[:, 0]), tmp_path)


@pytest.mark.parametrize("pivot", [0, -3, 3])
def test_a_pivot_beyond_the_matrix_is_refused_before_lapack_reads_there(pivot: int) -> None:
    given = {"LD": np.eye(2), "B": np.eye(2), "pivots": np.array([1, pivot]), "hermitian": False}
    with pytest.raises(UnsupportedUseError, match="a pivot is not one of 2 rows"):
        matrix_factors.ldl_solve(given)
    with pytest.raises(UnsupportedUseError, match="a pivot is not one of 2 rows"):
        matrix_factors.permutation(given["pivots"], 2)


def test_no_matrices_are_solved(tmp_path: Path) -> None:
    """The shapes come from stand-ins, whose pivots LAPACK reads."""
    pivots = torch.zeros(0, 2, dtype=torch.int32)
    given = (_randn(0, 2, 2), pivots, _randn(2, 5))
    agree(
        as_module(lambda ld, p, b: (LA.ldl_solve(ld, p, b), LA.lu_solve(ld, p, b))), given, tmp_path
    )
