"""Ops of quantized tensors against torch: conversions of ``quantized_decomposed``, products."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler.reference import run
from tests.unit.torch_export import agree, as_module, export, inputs_of

torch = pytest.importorskip("torch")
pytest.importorskip("torch.ao.quantization.fx._decomposed")
q = torch.ops.quantized_decomposed

X = torch.randn(6, 8, generator=torch.Generator().manual_seed(1)) * 3
CODES = torch.randint(-128, 128, (6, 8), generator=torch.Generator().manual_seed(2)).to(torch.int8)


def test_one_scale_and_one_a_channel(tmp_path: Path) -> None:
    def both(x: Any, codes: Any, scale: Any, zero: Any, scales: Any, zeros: Any) -> tuple[Any, ...]:
        i8, u8 = (-128, 127, torch.int8), (0, 255, torch.uint8)
        return (
            *(q.quantize_per_tensor(x, 0.05, 3, *i8), q.quantize_per_tensor(x, 0.1, 128, *u8)),
            *(q.quantize_per_tensor(x, scale, zero, -7, 7, torch.int8),),
            *(q.dequantize_per_tensor(codes, 0.05, 3, *i8),),
            *(q.dequantize_per_tensor(codes, scale, zero, *i8),),
            *(q.quantize_per_channel(x, scales, zeros, 1, *i8),),
            *(q.quantize_per_channel(x, scales[:6], zeros[:6], 0, *i8),),
            *(q.dequantize_per_channel(codes, scales, zeros, 1, *i8),),
            *(q.dequantize_per_channel(codes, scales[:6], None, 0, *i8),),
            q.dequantize_per_channel(codes, scales[:6], zeros[:6], 0, *i8).T * 2,
        )

    scales, zeros = torch.rand(8) + 0.1, torch.arange(8)
    args = (X, CODES, torch.tensor(0.3), torch.tensor(1), scales, zeros)
    agree(as_module(both), args, tmp_path)


def test_scales_of_rows_and_groups(tmp_path: Path) -> None:
    def both(x: Any, codes: Any, rows: Any, zeros: Any, groups: Any) -> tuple[Any, ...]:
        i8, f32 = (-128, 127, torch.int8), torch.float32
        none = torch.zeros(6, 2, dtype=torch.int64)
        return (
            q.quantize_per_token(x, rows, zeros, *i8),
            q.dequantize_per_token(codes, rows, zeros, *i8, f32),
            q.quantize_per_channel_group(x, groups, none, -8, 7, torch.int8, 4),
            q.dequantize_per_channel_group(codes, groups, none, -8, 7, torch.int8, 4, f32),
        )

    rows, zeros = torch.rand(6, 1) + 0.1, torch.arange(6)[:, None]
    agree(as_module(both), (X, CODES, rows, zeros, torch.rand(6, 2) + 0.1), tmp_path)


def test_products_of_whole_numbers_and_packed_halves(tmp_path: Path) -> None:
    def products(a: Any, b: Any, packed: Any) -> tuple[Any, ...]:
        low, high = packed & 0xF, packed >> 4
        halves = torch.stack([low, high], -1).flatten(1).to(torch.float32) - 8.0
        return torch._int_mm(a, b), halves

    whole = torch.randint(-128, 128, (32, 32), generator=torch.Generator().manual_seed(3))
    a, b = whole.to(torch.int8), whole.T.contiguous().to(torch.int8)
    agree(as_module(products), (a, b, whole.to(torch.uint8)), tmp_path)


def test_products_with_weights_of_8_bits(tmp_path: Path) -> None:
    x = torch.randn(4, 64, generator=torch.Generator().manual_seed(4)).bfloat16()
    codes = torch.randint(-99, 99, (32, 64), generator=torch.Generator().manual_seed(5))
    scales = torch.full((32,), 2.0**-7).bfloat16()

    def product(x: Any, codes: Any, scales: Any) -> Any:
        return torch._weight_int8pack_mm(x, codes, scales).float()

    program, graph = export(as_module(product), (x, codes.to(torch.int8), scales), tmp_path)
    values = inputs_of(program, graph, (x, codes.to(torch.int8), scales))
    (got,) = run(graph, values, {}).values()
    np.testing.assert_allclose(got, product(x, codes.to(torch.int8), scales).numpy(), rtol=2**-7)
