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
from tests.unit.test_torch_ops_bits import arguments, as_others
from tests.unit.test_torch_ops_complex import rotated

torch = pytest.importorskip("torch")


@pytest.mark.full
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


@pytest.mark.long(but=3)
@pytest.mark.full
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


@pytest.mark.full
def test_products_of_8_bits_are_one_kernel_with_scales_and_bias(tmp_path: Path) -> None:
    def function(x: Any, y: Any, rows: Any, columns: Any, bias: Any) -> Any:
        return torch._scaled_mm(x, y.t(), rows, columns, bias=bias, out_dtype=torch.float32)

    e4m3 = torch.float8_e4m3fn
    x, y = torch.randn(16, 64).to(e4m3), torch.randn(48, 64).to(e4m3)
    args = (x, y, torch.rand(16, 1), torch.rand(1, 48), torch.randn(48))
    graph = assert_kernels_agree(function, args, tmp_path, relative=1e-6)
    (node,) = schedule(lower(graph)).nodes
    assert node.kind is GroupKind.GEMM


@pytest.mark.long
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_complex_functions(dtype: Any, tmp_path: Path) -> None:
    def function(z: Any, w: Any) -> tuple[Any, ...]:
        return (
            *(z.exp(), z.sqrt(), z.sin(), z.cos(), z.tan(), z.sinh(), z.cosh(), z.tanh()),
            *(z.asin(), z.acos(), z.atan(), z.asinh(), z.acosh(), z.atanh(), z.sigmoid()),
            *(z.exp2(), z.expm1(), z.reciprocal(), z.rsqrt(), z**2, z**1.5, z**w, z / w, z * w),
            *((z + 3).log(), z.log2(), z.log10(), z.log1p(), z.sgn(), z.abs(), z.angle()),
            *(z == w, z != w, torch.isfinite(z), z.bool(), z.real.to(torch.int32), z + 1j),
            *(z.to(torch.complex64), z.to(torch.complex128), torch.where(z == w, z, 2j)),
        )

    values = torch.randn(40, dtype=torch.complex128, generator=torch.Generator().manual_seed(4))
    edges = torch.tensor([0, 1j, -1j, 2 + 1e-3j, -2 - 1e-3j, 1e-3 - 1e-3j, 3 - 4j, 0.5])
    z = torch.cat([values, edges]).to(dtype)
    relative = 3e-6 if dtype is torch.complex64 else 1e-14
    assert_kernels_agree(function, (z, z.flip(0) + 0.25), tmp_path, relative=relative)


@pytest.mark.full
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_complex_sums_products_and_moves(dtype: Any, tmp_path: Path) -> None:
    def function(z: Any, w: Any, x: Any) -> tuple[Any, ...]:
        return (
            *(z.sum(), z.sum(0), z.mean(1), z.prod(1), z.cumsum(1), z.var(1), (z * w).sum(1)),
            *(z @ w.mH, torch.vdot(z[0], w[0]), z.any(1), torch.linalg.vector_norm(z, dim=0)),
            *(torch.cat([z, w.conj()]), z.T, z[:, [2, 0]], torch.view_as_real(z), z.imag),
            *(torch.view_as_complex(x.reshape(-1, 2)), torch.complex(x, x), z.flip(0).cumprod(0)),
        )

    z = torch.randn(5, 300, dtype=dtype)
    x = torch.randn(4, 6, dtype=z.real.dtype)
    relative = 1e-5 if dtype is torch.complex64 else 1e-13
    assert_kernels_agree(function, (z, torch.randn_like(z), x), tmp_path, relative=relative)


@pytest.mark.full
def test_rotary_embeddings_by_polar_are_one_kernel_beside_their_table(tmp_path: Path) -> None:
    x = torch.randn(2, 3, 2, 8)
    angles = torch.arange(3)[:, None] * torch.tensor([1.0, 0.1, 0.01, 0.001])
    graph = assert_kernels_agree(rotated, (x, angles), tmp_path, relative=1e-6)
    table, rotation = schedule(lower(graph)).nodes
    assert {table.kind, rotation.kind} == {GroupKind.POINTWISE}
    assert set(table.writes) < set(rotation.reads)


@pytest.mark.full
def test_bits_as_another_type(tmp_path: Path) -> None:
    assert_kernels_agree(as_others, arguments(), tmp_path)
