"""Special functions, losses, sums of products and places of triangles through compiled kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it

from tests.support.exported_kernels import assert_kernels_agree

OTHERS = ("gfx942",)


def _randn(*size: int) -> Any:
    return torch.randn(*size, generator=torch.Generator().manual_seed(1))


@pytest.mark.full
def test_special_functions(tmp_path: Path) -> None:
    def every(x: Any, i: Any, j: Any) -> Any:
        large = x * 6
        return (
            torch.stack([torch.lgamma(large), torch.special.erfcx(x), torch.i0(large)]),
            torch.special.log_ndtr(large) + torch.digamma(large.abs() + 1),
            torch.special.ndtri(torch.sigmoid(x)) + torch.special.i1e(large),
            torch.gcd(i, j) + (i << j) - (i >> j),
            torch.isclose(x, x + 1e-7) & torch.signbit(x),
        )

    i = torch.arange(40, dtype=torch.int32).reshape(5, 8) - 20
    assert_kernels_agree(
        every, (_randn(5, 8), i, i.flip(0) * 2), tmp_path, relative=1e-5, others=OTHERS
    )


@pytest.mark.full(but=2)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_losses(dtype: Any, tmp_path: Path) -> None:
    def every(x: Any, image: Any, t: Any, places: Any, y: Any) -> Any:
        return (
            F.cross_entropy(x, t, label_smoothing=0.1, ignore_index=1),
            F.cross_entropy(image, places, reduction="none"),
            F.binary_cross_entropy_with_logits(x, y),
            F.cosine_similarity(x, y),
            F.smooth_l1_loss(x, y, beta=0.5, reduction="sum"),
        )

    t = torch.randint(0, 33, (17,), generator=torch.Generator().manual_seed(2))
    places = torch.randint(0, 5, (2, 3, 4), generator=torch.Generator().manual_seed(3))
    args = (_randn(17, 33).to(dtype), _randn(2, 5, 3, 4).to(dtype), t, places)
    relative = 1e-5 if dtype is torch.float32 else 4e-3
    y = torch.sigmoid(_randn(17, 33).flip(0)).to(dtype)
    assert_kernels_agree(every, (*args, y), tmp_path, relative=relative, others=OTHERS)


@pytest.mark.full
def test_sums_of_products_and_places(tmp_path: Path) -> None:
    def every(x: Any, m: Any) -> Any:
        return (
            torch.einsum("bij,bkj,kl->bil", x, x, m),
            torch.einsum("ii,j->j", m, x[0, 0, :3]),
            torch.kron(m, x[0]),
            torch.diag_embed(x, 1) + torch.rot90(torch.diag_embed(x, -1), 2, (1, 2)),
            torch.triu_indices(7, 9, -2),
            torch.kaiser_window(12) * torch.hann_window(12),
        )

    assert_kernels_agree(
        every, (_randn(3, 6, 7), _randn(6, 6)), tmp_path, relative=1e-5, others=OTHERS
    )
