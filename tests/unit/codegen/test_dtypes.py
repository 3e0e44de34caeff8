"""Kernels of each element type, compiled and run on the emulation, beside torch itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scheduler.fusion import schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.operations import GroupKind
from scheduler.lowering import lower
from tests.support.exported_kernels import assert_kernels_agree
from tests.unit.test_float8 import numbers

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64], ids=str)
def test_unsigned_integers(dtype: Any, tmp_path: Path) -> None:
    def function(x: Any, y: Any, f: Any) -> tuple[Any, ...]:
        return (
            *((x * y) & 1023, x / 7, torch.where(x == y, x, y), x == 3, x ^ 5),
            *(x.sum(0), torch.cat([x, y], 1).T, x.float() + 0.5, y[:, [1, 0]]),
            *(f.to(dtype), f.double().to(dtype), x.to(torch.int32), torch.full_like(x, 65535)),
        )

    x = torch.tensor([[3, 1, 2**16 - 1], [40000, 0, 9]]).to(dtype)
    y = torch.tensor([[5, 1, 2**63 - 1], [2**31, 7, 2]]).to(dtype)
    floats = torch.tensor([0.0, 1.7, -1.7, -1.0, 255.9, 40000.5])
    assert_kernels_agree(function, (x, y, floats), tmp_path, relative=1e-6)


FLOAT8 = {
    dtype: getattr(torch, dtype.torch.removeprefix("torch.")) for dtype in DType if dtype.is_float8
}


@pytest.mark.parametrize("dtype", FLOAT8, ids=lambda dtype: dtype.label)
def test_floats_of_8_bits(dtype: DType, tmp_path: Path) -> None:
    narrow = FLOAT8[dtype]

    def function(codes: Any, x: Any, double: Any) -> tuple[Any, ...]:
        return (
            *(codes.float(), codes.double() * 2, codes.to(torch.float16)),
            *(x.to(narrow).float(), double.to(narrow).float() + 1, x.to(narrow)),
            *(torch.cat([codes, codes]), torch.full((3,), 1.3, dtype=narrow), codes == codes[5]),
        )

    codes = torch.arange(256, dtype=torch.uint8).view(narrow)
    x = torch.from_numpy(numbers())
    assert_kernels_agree(function, (codes, x, x.double()), tmp_path, relative=1e-6)


def test_products_of_8_bits_are_one_kernel_with_scales_and_bias(tmp_path: Path) -> None:
    def function(x: Any, y: Any, rows: Any, columns: Any, bias: Any) -> Any:
        return torch._scaled_mm(x, y.t(), rows, columns, bias=bias, out_dtype=torch.float32)

    e4m3 = torch.float8_e4m3fn
    x, y = torch.randn(16, 64).to(e4m3), torch.randn(48, 64).to(e4m3)
    args = (x, y, torch.rand(16, 1), torch.rand(1, 48), torch.randn(48))
    graph = assert_kernels_agree(function, args, tmp_path, relative=1e-6)
    (node,) = schedule(lower(graph)).nodes
    assert node.kind is GroupKind.GEMM
