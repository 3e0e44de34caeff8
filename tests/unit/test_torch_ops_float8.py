"""Floats of 8 bits against torch: conversions, moves, comparisons, products with scales."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.torch_export import agree, as_module

torch = pytest.importorskip("torch")

FLOATS = (
    *(torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz),
    torch.float8_e8m0fnu,
)
SIGNED = FLOATS[:-1]


def _randn(*size: int, scale: float = 1.0) -> Any:
    return torch.randn(*size, generator=torch.Generator().manual_seed(7)) * scale


def test_conversions(tmp_path: Path) -> None:
    def convert(x: Any, whole: Any, *narrow: Any) -> tuple[Any, ...]:
        there = tuple(v.to(dtype).float() for v in (x, whole) for dtype in FLOATS)
        back = tuple(n.to(dtype) for n in narrow for dtype in (torch.float32, torch.bfloat16))
        whole_back = tuple(n.to(torch.int32) for n in narrow)
        across = (narrow[0].to(torch.float8_e5m2).half(), narrow[1].to(torch.float8_e4m3fn).half())
        return (*there, *(b.float() for b in back), *whole_back, *(c.float() for c in across))

    edges = torch.tensor([0.0, -0.0, 1e9, -500, 448, 464, 57344, 61440, 1e-9, -1e-4, 0.1, 240, 248])
    x = torch.cat([edges, _randn(50, scale=30)])
    narrow = tuple(_randn(20).abs().to(dtype) for dtype in FLOATS)
    agree(as_module(convert), (x, torch.arange(0, 600, 37), *narrow), tmp_path)


def test_what_moves_and_compares_them(tmp_path: Path) -> None:
    def moves(*narrow: Any) -> tuple[Any, ...]:
        made: list[Any] = []
        for x in narrow:
            joined = torch.cat([x, x.flip(0)])
            made += [joined, x.T, x[torch.tensor([2, 0])], x[1:, ::2], torch.zeros_like(x)]
            made += [
                torch.where(x == x[0], x, x[1]),
                x.clone(),
                torch.full((2,), 1.3, dtype=x.dtype),
            ]
        return (*(one.float() for one in made), *(x != x[0] for x in narrow))

    agree(as_module(moves), tuple(_randn(3, 4).to(dtype) for dtype in SIGNED), tmp_path)


def test_products_with_scales(tmp_path: Path) -> None:
    def products(
        x: Any, y: Any, wide: Any, rows: Any, columns: Any, bias: Any, whole: Any
    ) -> tuple[Any, ...]:
        one, other = torch.tensor(0.5), torch.tensor([[0.25]])
        return (
            torch._scaled_mm(x, y.t(), one, other, out_dtype=torch.float32),
            torch._scaled_mm(x, y.t(), one, other, bias=bias, out_dtype=torch.float32),
            torch._scaled_mm(x, y.t(), rows, columns, out_dtype=torch.float32),
            torch._scaled_mm(x, wide.t(), one, other, out_dtype=torch.float32),
            torch._scaled_mm(whole, whole.t(), one, other).float(),
            (x.float() * one) @ y.t().float(),
        )

    e4m3, e5m2 = torch.float8_e4m3fn, torch.float8_e5m2
    x, y, wide = _randn(16, 32).to(e4m3), _randn(48, 32).to(e4m3), _randn(16, 32).to(e5m2)
    scales = torch.rand(16, 1) + 0.5, torch.rand(1, 48) + 0.5
    # On some processors torch rounds a sum to bf16 before it is narrow: these have no more digits.
    whole = torch.randint(-2, 3, (32, 32)).to(e4m3)
    agree(as_module(products), (x, y, wide, *scales, _randn(48), whole), tmp_path)
