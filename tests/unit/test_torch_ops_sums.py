"""Sums of products over named dimensions, and of numbers, against torch."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tests.unit.torch_export import agree, as_module

torch = pytest.importorskip("torch")


def _randn(*size: int) -> Any:
    return torch.randn(*size, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def test_einsum(tmp_path: Path) -> None:
    def every(x: Any, y: Any, m: Any, i: Any) -> Any:
        e = torch.einsum
        return (
            *(e("ij,jk", m, m), e("ij,kj->ik", m, m), e("ij->ji", m), e("ii", m), e("ii->i", m)),
            *(
                e("ij->", m),
                e("ij->j", m),
                e("ij,ij->", m, m),
                e("ij,ij->ij", m, m),
                e("i,j", m[0], m[1]),
            ),
            *(e("bhid,bhjd->bhij", x, y), e("...id,...jd->...ij", x, y), e("...ij->...ji", x)),
            *(
                e("b h i d , b h j d -> b h i j", x, y),
                e("bhid,d->bh", x, m[0]),
                e("bhid,dj", x, m),
            ),
            *(
                e("ij,jk,kl->il", m, m, m),
                e("ij,jk,kl", m, m.mT, m),
                e("bhid,bhjd,de->bhije", x, y, m),
            ),
            *(
                e("bhid,bhjd->hij", x, y[:1]),
                e("...d,...d->...", x[0], m[0]),
                e("bi,bj,bk->ijk", m, m, m),
            ),
            *(
                e("iij,j->i", x[0, :, :3].expand(3, 3, 4), m[0]),
                e("ij,kl->", m, m),
                e("i,->i", m[0], m[1, 1]),
            ),
            *(
                e("ij,jk->ik", i, i),
                e("ij,ij->i", i, i),
                e("ij->i", i),
                e("ij,jk,k->i", i, i, i[0]),
            ),
            *(e("aB,Bc->ca", m, m), e("ij,jk->ik", m[:, :1], m[:1])),
        )

    i = torch.arange(16).reshape(4, 4) - 5
    agree(as_module(every), (_randn(2, 3, 5, 4), _randn(2, 3, 6, 4), _randn(4, 4), i), tmp_path)


@pytest.mark.full(but=["False"])
@pytest.mark.parametrize("decompose", [False, True])
def test_products_of_several_kinds(tmp_path: Path, decompose: bool) -> None:
    def every(x: Any, m: Any, i: Any) -> Any:
        v, flags = m[0], i > 3
        return (
            *(
                torch.tensordot(x, m, 1),
                torch.tensordot(x, x, ([0, 2], [0, 2])),
                torch.tensordot(m, m, 2),
            ),
            *(
                torch.tensordot(m, m, 0),
                torch.tensordot(i, i, 1),
                torch.inner(x, m),
                torch.inner(v, v),
            ),
            *(torch.inner(m, v[0]), torch.inner(i, i)),
            *(torch.kron(m, x[0]), torch.kron(v, m), torch.kron(x, v), torch.kron(i, i)),
            *(torch.addbmm(m[0], x.mT, x), torch.addbmm(m, x.mT, x, beta=0.5, alpha=2)),
            torch.addbmm(torch.full_like(m, math.nan), x.mT, x, beta=0),
            torch.addbmm(x[0, :, :1], x, m.expand(2, 4, 4)[:, :, :1], beta=3),
            *(torch.addr(m, v, m[1]), torch.addr(v, v, m[1], beta=2, alpha=0.5)),
            *(torch.addr(i, i[0], i[1], alpha=3), torch.addr(flags, flags[0], flags[1])),
            torch.chain_matmul(m, m, m),
            torch.nn.functional.bilinear(x, x, m.expand(3, 4, 4), v[:3]),
            torch.nn.functional.bilinear(v, m[1], m.expand(3, 4, 4)),
        )

    i = torch.arange(16).reshape(4, 4) - 5
    agree(as_module(every), (_randn(2, 5, 4), _randn(4, 4), i), tmp_path, decompose=decompose)


@pytest.mark.parametrize("decompose", [False, True])
def test_sums_of_numbers(tmp_path: Path, decompose: bool) -> None:
    def every(x: Any, holes: Any, i: Any) -> Any:
        return (
            *(holes.nansum(), holes.nansum(1), holes.nansum((0, 1), keepdim=True), i.nansum(0)),
            *(holes.nanmean(), holes.nanmean(-1), holes.nanmean(0, keepdim=True)),
        )

    holes = _randn(4, 5)
    holes[1, 2], holes[2] = math.nan, math.nan
    i = torch.arange(15).reshape(3, 5)
    agree(as_module(every), (_randn(2, 3, 5), holes, i), tmp_path, decompose=decompose)
