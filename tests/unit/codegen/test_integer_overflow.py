"""Integers that a type does not hold wrap around in kernels, as in torch, whatever comes after."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.support.exported_kernels import assert_kernels_agree  # noqa: E402 - torch first

LARGE_32 = torch.tensor([1, 50_000, 60_000, 2**30, 2**31 - 5, -(2**31), -77], dtype=torch.int32)
LARGE_64 = torch.tensor([3, 4_000_000_007, 2**62, 2**63 - 5, -(2**63), -(2**61) - 9])
SHORT = torch.tensor([3, 30_000, 32_767, -32_768, -181], dtype=torch.int16)
BYTES = torch.tensor([3, 100, 127, -128, -12], dtype=torch.int8)


def squares(x: Any) -> tuple[Any, ...]:
    """A square that wraps may be negative."""
    return (x * x) % 1000, (x * x) // 7, x.pow(2) % 97, x.pow(3) % 97


def sums(x: Any) -> tuple[Any, ...]:
    return (x + 1000) > x, (x - 1000) < x, (-x) % 5, x * 12 // 4


def magnitudes(x: Any) -> tuple[Any, ...]:
    return x.abs().clamp(min=1), x.abs() % 7, x.abs() // 4


def rows(x: Any) -> tuple[Any, ...]:
    """Sums of squares, which wrap as well."""
    type_ = x.dtype
    return (x * x).sum(dtype=type_) % 1000, (x * x).cumsum(0, dtype=type_) % 1000


@pytest.mark.long(but=3)
@pytest.mark.full(but=["torch.int32-squares"])
@pytest.mark.parametrize("function", [squares, sums, magnitudes, rows])
@pytest.mark.parametrize("x", [LARGE_32, LARGE_64, SHORT, BYTES], ids=lambda x: str(x.dtype))
def test_it_wraps_around(function: Callable[..., Any], x: Any, tmp_path: Path) -> None:
    assert_kernels_agree(function, (x,), tmp_path)


def test_a_table_is_read_where_a_hash_says(tmp_path: Path) -> None:
    def embedded(ids: Any, table: Any) -> Any:
        return torch.nn.functional.embedding((ids * ids) % 1000, table)

    ids = torch.tensor([3, 50_000, 60_000, 70_000], dtype=torch.int32)
    assert_kernels_agree(embedded, (ids, torch.arange(1000.0)[:, None]), tmp_path)
