"""Tensors made from numbers, windows, and weights apart from their length, against torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.torch_export import agree, as_module

torch = pytest.importorskip("torch")


def _randn(*size: int) -> Any:
    return torch.randn(*size, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("decompose", [False, True])
def test_spaced_numbers_and_triangles(tmp_path: Path, decompose: bool) -> None:
    double = torch.double

    def every(x: Any) -> Any:
        return (
            *(
                torch.linspace(-1, 3, 7, dtype=double),
                torch.linspace(2, 2, 1),
                torch.linspace(0, 1, 0),
            ),
            *(
                torch.linspace(0, 10, 5, dtype=torch.int64),
                torch.linspace(-4.7, 12.9, 5, dtype=torch.int32),
            ),
            *(
                torch.linspace(x[0], x[1], 6, dtype=double),
                torch.linspace(x[0], 2, 6, dtype=double),
            ),
            *(
                torch.logspace(-2, 2, 5, dtype=double),
                torch.logspace(0, 5, 6, base=2, dtype=torch.int64),
            ),
            *(
                torch.logspace(0.5, 1, 1, dtype=double),
                torch.logspace(x[0], 1, 4, 3.0, dtype=double),
            ),
            *(torch.tril_indices(4, 5), torch.tril_indices(5, 3, 1), torch.tril_indices(6, 4, -2)),
            *(
                torch.tril_indices(3, 7, 9),
                torch.tril_indices(2, 2, -5),
                torch.tril_indices(40, 33, 3),
            ),
            *(torch.triu_indices(4, 5), torch.triu_indices(5, 3, -2), torch.triu_indices(6, 9, 2)),
            *(torch.triu_indices(3, 3, 5), torch.triu_indices(37, 41, -3, dtype=torch.int32)),
        )

    agree(as_module(every), (_randn(4),), tmp_path, decompose=decompose)


@pytest.mark.full(but=["False"])
@pytest.mark.parametrize("decompose", [False, True])
def test_windows_and_weights(tmp_path: Path, decompose: bool) -> None:
    def every(v: Any, g: Any) -> Any:
        made = []
        for length in (1, 2, 9, 16):
            for periodic in (True, False):
                given = (length, periodic)
                made += [torch.hann_window(*given), torch.hamming_window(*given)]
                made += [
                    torch.blackman_window(*given, dtype=torch.double),
                    torch.bartlett_window(*given),
                ]
                made += [torch.kaiser_window(*given, 6.0, dtype=torch.double)]
        made += [
            torch.hamming_window(7, True, 0.6, 0.3),
            torch.kaiser_window(5),
            torch.hann_window(6),
        ]
        return (
            *made,
            torch._weight_norm(v, g),
            *torch.ops.aten._weight_norm_interface(v, g),
            *(
                torch.norm_except_dim(v, 2, 0),
                torch.norm_except_dim(v, 1, 2),
                torch.norm_except_dim(v, 2, -1),
            ),
        )

    agree(as_module(every), (_randn(4, 3, 5), _randn(4, 1, 1)), tmp_path, decompose=decompose)
