"""uint16, uint32 and uint64 against torch: what torch computes with them on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scheduler.errors import UserError
from scheduler.ir.dtypes import DType
from scheduler.ir.promotion import promote_types
from tests.unit.torch_export import agree, as_module

torch = pytest.importorskip("torch")

UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)
SMALL = torch.tensor([0, 1, 5, 7, 250, 3])


def _values(dtype: Any) -> tuple[Any, Any]:
    largest = torch.tensor([2**63 - 1, 3, 2**15, 2**31 - 1, 0, 9]).to(dtype)
    return SMALL.to(dtype), largest


def _arithmetic(x: Any, y: Any) -> tuple[Any, ...]:
    return (
        *(x * y, x / y, x & y, x | 3, x ^ y, x == y, x != y),
        *(torch.where(x == y, x, y), x.sqrt(), x + 1.5, torch.isnan(x)),
        *(x.sum(), x.prod(), x.cumsum(0), x.bool(), x.any(), x.mean(dtype=torch.float32)),
    )


def _moves(x: Any, y: Any) -> tuple[Any, ...]:
    places = SMALL % 3
    return (
        *(torch.cat([x, y]), x[places], x.roll(1), x.view(2, 3).T, x[1:4]),
        *(torch.full((3,), 7, dtype=x.dtype), torch.zeros_like(x), x.unsqueeze(0).expand(2, 6)),
    )


def _conversions(x: Any, y: Any) -> tuple[Any, ...]:
    types = (torch.float32, torch.float64, torch.int64, torch.uint8, torch.int16, torch.bool)
    return (*(y.to(dtype) for dtype in types), x.half(), x.bfloat16().float(), x.float() * 2)


def _for_each(function: Any) -> tuple[Any, tuple[Any, ...]]:
    """A module that does it with each type, and its inputs."""

    def all_types(*args: Any) -> tuple[Any, ...]:
        pairs = zip(args[::2], args[1::2], strict=True)
        return tuple(made for x, y in pairs for made in function(x, y))

    return as_module(all_types), tuple(v for dtype in UNSIGNED for v in _values(dtype))


def test_what_torch_computes_with_them(tmp_path: Path) -> None:
    agree(*_for_each(_arithmetic), tmp_path)


def test_what_only_moves_them(tmp_path: Path) -> None:
    agree(*_for_each(_moves), tmp_path)


def test_conversions_from_them(tmp_path: Path) -> None:
    agree(*_for_each(_conversions), tmp_path)


def test_conversions_to_them(tmp_path: Path) -> None:
    numbers = torch.tensor([0.0, 1.7, -1.7, -1.0, 255.9, 256.0, 40000.5, -40000.5], dtype=float)

    def convert(x: Any, whole: Any) -> tuple[Any, ...]:
        return tuple(v.to(dtype) for v in (x, x.float(), whole) for dtype in UNSIGNED)

    agree(as_module(convert), (numbers, torch.tensor([-1, 70000, 2**40 + 5])), tmp_path)


NAMES = {getattr(torch, d.torch.removeprefix("torch.")): d for d in DType}


@pytest.mark.parametrize("a", NAMES, ids=str)
def test_types_promote_as_in_torch(a: Any) -> None:
    for b, label in NAMES.items():
        try:
            expected = torch.promote_types(a, b)
        except RuntimeError:
            with pytest.raises(UserError, match="no common type"):
                promote_types(NAMES[a], label)
        else:
            assert promote_types(NAMES[a], label) is NAMES[expected], b
