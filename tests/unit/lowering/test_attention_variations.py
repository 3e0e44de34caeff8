"""Softmaxes between two products, near to attention and not always it, are what torch computes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.unit.torch_export import agree, as_module

torch = pytest.importorskip("torch")
F = torch.nn.functional
ROWS, COLUMNS, DEPTH = 4, 4, 8


def masked(rng: random.Random, scores: Any) -> Any:
    """Scores with something added, replaced or put beside them; some rows see nothing."""
    floor = rng.choice([-1e4, -1e9, -float("inf"), torch.finfo(scores.dtype).min])
    hidden = torch.tensor(
        [[rng.random() < 0.4 or row == 2 for _ in range(COLUMNS)] for row in range(ROWS)]
    )
    match rng.randrange(6):
        case 0:
            return scores + torch.zeros(ROWS, COLUMNS, dtype=scores.dtype).masked_fill(
                hidden, floor
            )
        case 1:
            return scores.masked_fill(hidden, floor)
        case 2:
            return torch.where(hidden, floor, scores)
        case 3:
            return F.pad(scores, (0, rng.choice([0, 2])))
        case 4:
            return scores + torch.arange(2, dtype=scores.dtype)[:, None, None]
    return scores.tril(rng.randrange(-1, 2))


def varied(seed: int, q: Any, k: Any, v: Any) -> Any:
    rng = random.Random(seed)
    scale = rng.choice([1.0, 0.5, DEPTH**-0.5, torch.tensor([[[0.5]], [[2.0]]], dtype=q.dtype)])
    scores = (q * scale) @ k.transpose(-1, -2) if rng.random() < 0.3 else q @ k.transpose(-1, -2)
    scores = scores * scale if rng.random() < 0.7 else scores / 3
    scores = masked(rng, scores)
    if rng.random() < 0.2:
        scores = scores.tanh() * 5
    weights = scores.softmax(rng.choice([-1, -1, -1, -2, 1]))
    if rng.random() < 0.2:
        weights = weights.nan_to_num()
    if rng.random() < 0.2:
        weights = F.dropout(weights, 0.5, training=False)
    values = F.pad(v, (0, 0, 0, scores.shape[-1] - COLUMNS))
    result = weights @ values
    return (result, scores.sum(-1)) if rng.random() < 0.3 else (result,)


@pytest.mark.parametrize(
    "seed",
    [pytest.param(n, marks=pytest.mark.full if n >= 5 else ()) for n in range(40)],
)
def test_it_is_what_torch_computes(seed: int, tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(seed)
    shapes = ((2, ROWS, DEPTH), (2, COLUMNS, DEPTH), (2, COLUMNS, DEPTH))
    given = tuple(
        torch.randn(1, *shape, dtype=torch.float64, generator=generator) for shape in shapes
    )
    agree(as_module(lambda q, k, v: varied(seed, q, k, v)), given, tmp_path)


@pytest.mark.parametrize("inside", [True, False])
def test_a_mask_of_more_digits_makes_the_softmax_its_own(inside: bool, tmp_path: Path) -> None:
    """A float64 mask over float32 scores: torch's softmax is then of float64."""

    def made(q: Any, k: Any, v: Any, mask: Any) -> Any:
        weights = (q @ k.transpose(-1, -2) + mask).softmax(-1)
        return weights.float() @ v if inside else weights @ v.double()

    generator = torch.Generator().manual_seed(7)
    tensors = [torch.randn(1, 2, ROWS, DEPTH, generator=generator) for _ in range(3)]
    mask = torch.randn(ROWS, COLUMNS, dtype=torch.float64, generator=generator)
    agree(as_module(made), (*tensors, mask), tmp_path, least_tolerance=1e-6)


EIGHT_BITS = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")


@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=pytest.mark.full if n >= 4 else ()) for n in range(16)]
)
def test_weights_of_another_type_are_what_torch_computes(seed: int, tmp_path: Path) -> None:
    """A softmax of float64 between products of float32, and weights stored in 8 bits."""
    rng = random.Random(seed)
    kept = getattr(torch, rng.choice(EIGHT_BITS)) if rng.random() < 0.6 else torch.float32
    inside = rng.choice([torch.float32, torch.float64])

    def made(q: Any, k: Any, v: Any) -> Any:
        scores = masked(random.Random(seed), q @ k.transpose(-1, -2) * DEPTH**-0.5)
        weights = scores.to(inside).softmax(-1).to(kept).float()
        return weights @ F.pad(v, (0, 0, 0, scores.shape[-1] - COLUMNS))

    generator = torch.Generator().manual_seed(seed)
    tensors = tuple(torch.randn(1, 2, ROWS, DEPTH, generator=generator) for _ in range(3))
    agree(as_module(made), tensors, tmp_path, least_tolerance=1e-6)
