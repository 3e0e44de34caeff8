"""Kernels of each element type, compiled and run on the emulation, beside torch itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.exported_kernels import assert_kernels_agree

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
