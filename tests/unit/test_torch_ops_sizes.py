"""Numbers that a model computes from its sizes, or reads from its data, beside torch.

``tests/unit/lowering/test_torch_ops.py`` lowers and fuses the same uses.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.unit.torch_export import agree, as_module  # noqa: E402

F = torch.nn.functional
DYNAMIC = {"dynamic_shapes": (({0: torch.export.Dim.AUTO},),)}


def rows() -> Any:
    return torch.randn(6, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


@pytest.mark.full(but=["False"])
@pytest.mark.parametrize("decompose", [False, True])
def test_floats_of_sizes(tmp_path: Path, decompose: bool) -> None:
    def f(x: Any) -> Any:
        s = x.shape[0]
        return (
            x * (s / 2),
            x * s**-0.5,
            x + torch.sym_float(s),
            torch.full((2,), s * 0.5),
            torch.arange(0, 4.0, 0.5) * (s / 3),
            torch.scalar_tensor(s / 2) + x,
            torch.clamp(x, -s / 9, s / 7),
            torch.add(x, x, alpha=s / 2),
            torch.addmm(x, x, torch.ones(4, 4, dtype=x.dtype), beta=s / 4, alpha=1 / s),
            x > s / 9,
            x.sum(0) / s,
            torch.fmod(x, s / 4),
            F.layer_norm(x, (4,), eps=s / 100),
            F.scaled_dot_product_attention(x[None], x[None], x[None], scale=s / 3),
            (x > 0) * (s / 2),
            torch.arange(s) * (s / 2),
        )

    agree(as_module(f), (rows(),), tmp_path, decompose=decompose, **DYNAMIC)


@pytest.mark.parametrize("decompose", [False, True])
def test_truth_values_and_choices_of_sizes(tmp_path: Path, decompose: bool) -> None:
    def f(x: Any) -> Any:
        s = x.shape[0]
        big = s > 5
        return (
            x * torch.sym_not(big),
            x * torch.sym_ite(big, 3, 4),
            x * torch.sym_max(s, 7) + torch.sym_min(s, 2),
            x + torch.tensor(s % 2 == 0),
            torch.where(x > 0, x, s / 3),
            x * (2**s) + x * s**2,
            x * (s >> 1) * (s << 2),
            x * ((s >= 6) & (s <= 9)) + ((s < 3) | (s != 4)),
            x * -s,
            x * (s // 4) * (s % 4),
            x * torch.sym_sqrt(s),
        )

    agree(as_module(f), (rows(),), tmp_path, decompose=decompose, **DYNAMIC)


@pytest.mark.full(but=["False"])
@pytest.mark.parametrize("decompose", [False, True])
def test_what_is_read_from_a_tensor_is_a_number(tmp_path: Path, decompose: bool) -> None:
    def f(x: Any) -> Any:
        most = x.max().item()
        return (
            x * most,
            x * (x.argmin().item() * 0.5 + 1),
            x + (x > 0).sum().item() - 40,
            x * (x > 0).any().item(),
            torch.full((3,), most),
            torch.triu(x, x.argmax().item() % 3),
            x.int() * most,
        )

    agree(as_module(f), (rows(),), tmp_path, decompose=decompose, **DYNAMIC)


def test_sizes_that_floats_make(tmp_path: Path) -> None:
    """Where no float rounds, they are sizes like any others."""

    def f(x: Any) -> Any:
        s = x.shape[0]
        return (
            torch.arange(0, s / 2, 0.5),
            torch.arange(s / 2, 20.0, 0.25) + 1,
            F.interpolate(x[None, None], scale_factor=2.0),
        )

    agree(as_module(f), (rows(),), tmp_path, **DYNAMIC)


def test_numbers_are_outputs_without_dimensions(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        s = x.shape[0]
        return x + 1, s, s / 4, s * 2 + 1

    graph = agree(as_module(f), (rows(),), tmp_path, **DYNAMIC)
    assert len(graph.outputs) == 4
