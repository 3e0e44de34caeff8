"""Ops that take a number beside a tensor, at the number's neighbours in the tensor's own type.

``x == 0.1`` holds of the f16 nearest to 0.1: torch rounds the number to the tensor's type before it
decides. What the op gives is compared, and whether that is the number, its neighbour, or a whole
number, which sees roundings on the way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.torch_export import agree, as_module

torch = pytest.importorskip("torch")
F = torch.nn.functional

OPS: dict[str, Callable[[Any, float], Any]] = {
    **{
        name: lambda x, n, name=name: getattr(torch, name)(x, n)  # type: ignore[misc]
        for name in ("eq", "ne", "lt", "le", "gt", "ge", "fmod", "remainder", "floor_divide")
    },
    "a number less than a tensor": lambda x, n: n < x,
    "isclose": lambda x, n: torch.isclose(x, torch.full_like(x, n)),
    "division to the floor": lambda x, n: torch.div(x, n, rounding_mode="floor"),
    "division towards zero": lambda x, n: torch.div(x, n, rounding_mode="trunc"),
    "where": lambda x, n: torch.where(x > 0, x, n) == n,
    "where first": lambda x, n: torch.where(x > 0, n, x) == n,
    "masked_fill": lambda x, n: x.masked_fill(x > 0, n) == n,
    "fill": lambda x, n: torch.fill(x, n) == x,
    "full_like": lambda x, n: torch.full_like(x, n) == x,
    "clamp": lambda x, n: x.clamp(n) == n,
    "clamp_max": lambda x, n: x.clamp_max(n) == n,
    "index_fill": lambda x, n: x.index_fill(0, torch.tensor([0, 2]), n) == n,
    "pad": lambda x, n: F.pad(x, (1, 2), value=n) == n,
    "scatter": lambda x, n: x.scatter(0, torch.tensor([0, 3]), n) == n,
    "a tensor without dimensions": lambda x, n: x == torch.tensor(n, dtype=torch.float64),
    "floor of a product": lambda x, n: torch.floor(x * n),
    "truth of a product": lambda x, n: (x * n).bool(),
    "whole part of a product": lambda x, n: (x * n).long(),
    "a product compared": lambda x, n: (x * n) == x,
    "the place of the largest product": lambda x, n: (x * n).argmax(),
    "a product that may be infinite": lambda x, n: torch.isfinite(x * n),
}
OF_FLOATS: dict[str, Callable[[Any, float], Any]] = {
    "threshold": lambda x, n: F.threshold(x, n, 7.3),
    "a threshold's value": lambda x, n: F.threshold(x, 0.5, n) == n,
    "hardshrink": lambda x, n: F.hardshrink(x, abs(n)),
    "hardtanh": lambda x, n: F.hardtanh(x, -abs(n), abs(n)) == n,
    "nan_to_num": lambda x, n: torch.nan_to_num(x, n, n, n) == n,
    "copysign": torch.copysign,
    "heaviside": lambda x, n: torch.heaviside(x, torch.tensor(n, dtype=x.dtype)) == n,
    "rounded product": lambda x, n: torch.round(x * n),
    "sign of a product": lambda x, n: torch.sign(x * n),
}
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGERS = [torch.int64, torch.int32, torch.uint8, torch.bool]
NUMBERS = [0.1, -0.3, 1 / 3, 2.5, 1e-9, 2049.0, 70000.0, 3]
EPS = {torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7, torch.float32: 1e-6}


def neighbours(number: float, dtype: Any) -> Any:
    """The number's nearest values of a type, with those about them, and what is special."""
    if not dtype.is_floating_point:
        whole = [number, number + 1, number - 1, 0, 1, 7]
        return torch.tensor([max(int(one), 0) for one in whole]).to(dtype)
    at = torch.tensor([number, -number], dtype=torch.float64).to(dtype)
    up = torch.nextafter(at, torch.tensor(math.inf, dtype=dtype))
    down = torch.nextafter(at, torch.tensor(-math.inf, dtype=dtype))
    ratios = torch.tensor([1 / number, 3 / number, 1e-4, 300.0], dtype=torch.float64).to(dtype)
    special = torch.tensor([0.0, -0.0, math.inf, -math.inf, math.nan], dtype=dtype)
    return torch.cat([at, up, down, ratios, special])


CASES = [(name, dtype) for dtype in FLOATS for name in (*OPS, *OF_FLOATS)]
CASES += [(name, dtype) for dtype in INTEGERS for name in OPS]


@pytest.mark.long(but=5)
@pytest.mark.full
@pytest.mark.parametrize(("name", "dtype"), CASES, ids=lambda one: str(one).removeprefix("torch."))
def test_a_number_is_of_the_tensors_type(name: str, dtype: Any, tmp_path: Path) -> None:
    op = {**OPS, **OF_FLOATS}[name]
    # torch refuses numbers beyond the type's range in some ops.
    limits = {torch.bool: (-math.inf, math.inf), torch.uint8: (0, 255)}
    least, most = limits.get(dtype, (-math.inf, 65504 if dtype is torch.float16 else math.inf))
    numbers = [number for number in NUMBERS if least <= number <= most]
    xs = [neighbours(number, dtype) for number in numbers]

    def made(*inputs: Any) -> Any:
        return tuple(op(x, number) for x, number in zip(inputs, numbers, strict=True))

    agree(as_module(made), tuple(xs), tmp_path, least_tolerance=EPS.get(dtype, 1e-12))
