"""Losses, and distances and likeness of vectors, against torch."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler.ir.graph import Node, Ref
from scheduler.reference import evaluate
from tests.unit.torch_export import agree, as_module

torch = pytest.importorskip("torch")
F = torch.nn.functional

REDUCTIONS = ("none", "mean", "sum")


def _randn(*size: int) -> Any:
    return torch.randn(*size, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def _ints(high: int, *size: int) -> Any:
    return torch.randint(0, high, size, generator=torch.Generator().manual_seed(3))


@pytest.mark.full
@pytest.mark.parametrize("decompose", [False, True])
def test_losses_of_classes(tmp_path: Path, decompose: bool) -> None:
    def every(x: Any, t: Any, image: Any, map_of: Any, w: Any, shares: Any) -> Any:
        loss = F.cross_entropy
        return (
            *(loss(x, t, reduction=r) for r in REDUCTIONS),
            *(loss(x, t, w, ignore_index=1, reduction=r) for r in REDUCTIONS),
            *(loss(x, t, w, label_smoothing=0.1, ignore_index=1, reduction=r) for r in REDUCTIONS),
            *(loss(image, map_of, w, reduction=r) for r in REDUCTIONS),
            *(loss(image, map_of, label_smoothing=0.3), loss(x[0], t[0]), loss(x[0], t[0], w)),
            *(loss(x, shares, reduction=r) for r in REDUCTIONS),
            *(loss(x, shares, w, label_smoothing=0.2, reduction=r) for r in REDUCTIONS),
            *(loss(x[0], shares[0]), loss(x, torch.full_like(t, -100))),
            *(F.nll_loss(x, t, w, ignore_index=2, reduction=r) for r in REDUCTIONS),
            *(F.nll_loss(image, map_of, w, reduction=r) for r in REDUCTIONS),
            *(F.nll_loss(x[0], t[0]), F.nll_loss(x[0], t[0], w, reduction="none")),
            *(
                F.multi_margin_loss(x, t, p=2, margin=0.5, weight=w, reduction=r)
                for r in REDUCTIONS
            ),
            *(F.multi_margin_loss(x, t), F.multi_margin_loss(x[0], t[0])),
            F.multi_margin_loss(x[0, 0], t[0] * 0),
        )

    t = _ints(4, 6)
    t[2] = 1
    args = (_randn(6, 4), t, _randn(2, 4, 3, 5), _ints(4, 2, 3, 5), _randn(4).abs())
    shares = torch.softmax(_randn(6, 4), -1)
    agree(as_module(every), (*args, shares), tmp_path, decompose=decompose)


@pytest.mark.full(but=["False"])
@pytest.mark.parametrize("decompose", [False, True])
def test_losses_of_elements(tmp_path: Path, decompose: bool) -> None:
    def every(x: Any, y: Any, p: Any, q: Any, sign: Any) -> Any:
        return (
            *(F.mse_loss(x, y, reduction=r) for r in REDUCTIONS),
            *(F.l1_loss(x, y, reduction=r) for r in REDUCTIONS),
            *(F.smooth_l1_loss(x, y, reduction=r, beta=0.7) for r in REDUCTIONS),
            *(F.smooth_l1_loss(x, y, beta=0.0), F.huber_loss(x, y, delta=0.4)),
            *(F.binary_cross_entropy(p, q, reduction=r) for r in REDUCTIONS),
            F.binary_cross_entropy((p > 0.5).double(), q, p),
            *(F.binary_cross_entropy_with_logits(x, q, reduction=r) for r in REDUCTIONS),
            F.binary_cross_entropy_with_logits(x * 50, q, p, pos_weight=q[0]),
            *(F.kl_div(x, q, reduction=r) for r in REDUCTIONS),
            *(
                F.kl_div(x, x + y, log_target=True),
                F.kl_div(x, (q > 0.5).double(), reduction="sum"),
            ),
            *(
                F.poisson_nll_loss(x, q * 4),
                F.poisson_nll_loss(p, q * 4, log_input=False, full=True),
            ),
            F.soft_margin_loss(x, sign),
            *(F.hinge_embedding_loss(x, sign, reduction=r) for r in REDUCTIONS),
            F.margin_ranking_loss(x, y, sign, margin=0.2),
            F.multilabel_soft_margin_loss(x, q),
            *(x.dist(y), x.dist(y[0], 3), x.dist(y, math.inf), x.dist(y, 0), x.dist(y, 1)),
            *(torch.renorm(x, 2, 1, 1.5), torch.renorm(x, 1, -1, 0.5)),
        )

    p, q = torch.sigmoid(_randn(5, 7)), torch.sigmoid(_randn(7, 5).t() * 2)
    sign = _ints(2, 5, 7).double() * 2 - 1
    args = (_randn(5, 7), _randn(7, 5).t().contiguous(), p, q.contiguous(), sign)
    agree(as_module(every), args, tmp_path, decompose=decompose)


@pytest.mark.full(but=["False"])
@pytest.mark.parametrize("decompose", [False, True])
def test_losses_of_vectors(tmp_path: Path, decompose: bool) -> None:
    def every(x: Any, y: Any, z: Any, sign: Any) -> Any:
        return (
            *(F.cosine_similarity(x, y), F.cosine_similarity(x, y[0], dim=-1)),
            F.cosine_similarity(x * 0, y, eps=1e-3),
            *(F.pairwise_distance(x, y), F.pairwise_distance(x, y[0], p=1, keepdim=True)),
            *(F.cosine_embedding_loss(x, y, sign, 0.1, reduction=r) for r in REDUCTIONS),
            F.cosine_embedding_loss(x[0], y[0], sign[0]),
            *(F.triplet_margin_loss(x, y, z, reduction=r) for r in REDUCTIONS),
            F.triplet_margin_loss(x, y, z, p=1, swap=True, margin=0.3),
            *(F.normalize(x), F.normalize(x, p=1, dim=0)),
        )

    sign = _ints(2, 5).double() * 2 - 1
    agree(
        as_module(every),
        (_randn(5, 7), _randn(5, 7).flip(0), _randn(5, 7) * 2, sign),
        tmp_path,
        decompose=decompose,
    )


def test_losses_of_the_reference_alone(tmp_path: Path) -> None:
    def every(x: Any, t: Any) -> Any:
        return (
            *(F.multilabel_margin_loss(x, t, reduction=r) for r in REDUCTIONS),
            F.multilabel_margin_loss(x[0], t[0]),
        )

    t = torch.tensor([[3, 0, -1, 1], [-1, 0, 1, 2], [1, 2, 3, 0]])
    agree(as_module(every), (_randn(3, 4), t), tmp_path)


@pytest.mark.parametrize("reduction", range(3))
def test_sums_over_alignments(reduction: int) -> None:
    """torch.export has no shape for this op; a file of another exporter may hold it."""
    logs = torch.log_softmax(_randn(9, 3, 6), -1)
    words = _ints(5, 3, 4) + 1
    steps, lengths = (9, 7, 3), (4, 2, 4)  # the last one has no alignment
    expected = F.ctc_loss(logs, words, steps, lengths, 0, REDUCTIONS[reduction])
    node = Node(
        "ctc",
        "aten.ctc_loss.IntList",
        (Ref("logs"), Ref("words"), steps, lengths, 0, reduction),
        {},
        ("ctc",),
    )
    got = evaluate(node, {"logs": logs.numpy(), "words": words.numpy()}, {})["ctc"]
    np.testing.assert_allclose(got, expected.numpy(), rtol=1e-12)
