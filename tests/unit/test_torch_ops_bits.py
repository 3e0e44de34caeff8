"""Bits of tensors read as another type, of the same size and of others, against torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.torch_export import agree, as_module

torch = pytest.importorskip("torch")

X = torch.randn(3, 8, generator=torch.Generator().manual_seed(1))
EDGES = torch.tensor([[0.0, -0.0, 1.5, float("inf"), -float("inf"), 1e-45, 3e38, -2.5]])


def as_others(x: Any, half: Any, whole: Any, codes: Any, z: Any) -> tuple[Any, ...]:
    i32, f32, u8 = torch.int32, torch.float32, torch.uint8
    bits = x.view(i32)
    return (
        *(bits, ((bits >> 23) & 0xFF) - 127, (bits & 0x7FFFFF).view(f32), (x * 2).view(i32)),
        *(half.view(torch.int16), half.view(torch.bfloat16).float(), half.half().view(torch.int16)),
        *(x.view(u8), x.view(torch.int16), x.view(torch.int64), whole.view(i32), whole.view(u8)),
        *(codes.view(f32), codes.view(torch.int64), codes.view(torch.int8), codes[:, :4].view(i32)),
        *(x.view(torch.complex64), z.view(f32), z.view(i32), x.T.view(i32), (x > 0).view(u8)),
        *((codes.to(i32) << 23).view(f32), codes.view(torch.float8_e4m3fn).float()),
        *(x.to(torch.float8_e5m2).view(u8), x.double().view(torch.int64), x[1].view(i32)),
    )


def arguments() -> tuple[Any, ...]:
    x = torch.cat([X, EDGES])
    codes = torch.arange(64).reshape(4, 16).to(torch.uint8)
    return x, x.bfloat16(), torch.arange(8).reshape(2, 4) * 12345678901, codes, x.to(torch.cfloat)


@pytest.mark.parametrize("decompose", [False, True])
def test_bits_as_another_type(tmp_path: Path, decompose: bool) -> None:
    agree(as_module(as_others), arguments(), tmp_path, decompose=decompose)
