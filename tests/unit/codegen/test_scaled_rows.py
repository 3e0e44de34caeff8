"""Rows of products less their greatest: the greatest is left with 0, and weights sum to 1."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.support.exported_kernels import assert_kernels_agree  # noqa: E402 - torch first

ROWS = torch.randn(8, 64, generator=torch.Generator().manual_seed(3))
LONG = torch.randn(2, 9000, generator=torch.Generator().manual_seed(4))


def softmax(x: Any) -> tuple[Any, ...]:
    weights = (x * 1e5).softmax(-1)
    return weights, weights.sum(-1)


def with_temperature(x: Any) -> Any:
    return (x / 1e-5).softmax(-1)


def log_softmax(x: Any) -> Any:
    """Never positive."""
    return (x * 1e5).log_softmax(-1).amax(-1)


def of_columns(x: Any) -> Any:
    return (x * 1e5).softmax(0)


def written_out(x: Any) -> Any:
    y = x * 1e6
    return (y - y.amax(-1, keepdim=True)).amax(-1)


FUNCTIONS = [softmax, with_temperature, log_softmax, of_columns, written_out]


@pytest.mark.long(but=3)
@pytest.mark.full
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("x", [ROWS, LONG], ids=["in registers", "long"])
def test_the_greatest_is_left_with_nothing(
    function: Callable[..., Any], x: Any, tmp_path: Path
) -> None:
    assert_kernels_agree(function, (x,), tmp_path, relative=1e-5)
