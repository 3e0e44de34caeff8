"""Poolings of one to three dimensions and their gradients: the reference against torch."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tests.unit.torch_export import agree, as_module

torch = pytest.importorskip("torch")
F = torch.nn.functional
aten = torch.ops.aten


def _randn(*size: int) -> Any:
    return torch.randn(*size, dtype=torch.float64, generator=torch.Generator().manual_seed(9))


def test_poolings_of_three_dimensions(tmp_path: Path) -> None:
    def every(x: Any, low: Any, whole: Any) -> Any:
        return (
            F.avg_pool2d(whole, (2, 3), stride=2, padding=1, count_include_pad=False),
            F.avg_pool1d(whole, 3, ceil_mode=True),
            F.max_pool3d(x, 2),
            *F.max_pool3d(x, (3, 2, 2), (2, 1, 2), (1, 1, 0), return_indices=True),
            *F.max_pool3d(x[0], 2, 1, 0, (2, 1, 2), ceil_mode=True, return_indices=True),
            F.avg_pool3d(x, 3, 2, 1),
            F.avg_pool3d(x, (3, 2, 2), 2, (1, 1, 0), ceil_mode=True, count_include_pad=False),
            F.avg_pool3d(x[0], 2, divisor_override=3),
            F.adaptive_avg_pool3d(x, (2, 3, None)),
            *F.adaptive_max_pool3d(x, (2, 3, 4), return_indices=True),
            *F.adaptive_max_pool1d(x[0, 0], 3, return_indices=True),
            *F.max_pool1d(x[0, 0], 3, 2, 1, return_indices=True),
            *F.max_pool2d(low, 3, 2, 1, return_indices=True),
            *F.max_pool2d(low, 2, 2, 1, 2, return_indices=True),
            F.lp_pool2d(x[0], 2.0, 2),
        )

    low = torch.full((1, 5, 6), -math.inf, dtype=torch.double)
    low[0, 4, 5] = 1
    whole = torch.arange(5 * 42).reshape(5, 6, 7) % 23 - 11
    agree(as_module(every), (_randn(2, 3, 5, 6, 7), low, whole), tmp_path)


def test_gradients_of_poolings(tmp_path: Path) -> None:
    averages = [
        ([3, 2], [2, 1], [1, 0], False, True, None),
        ([3, 2], [], [1, 1], True, False, None),
        ([2, 3], [2, 3], [1, 1], True, True, None),
        ([2, 2], [1, 3], [0, 0], False, True, 5),
    ]
    greatest = [
        ([3, 2], [2, 1], [1, 0], [1, 1], False),
        ([2, 3], [], [1, 1], [2, 1], True),
        ([2, 2], [3, 2], [1, 0], [2, 3], False),
    ]

    def every(x: Any, volume: Any) -> Any:
        made = []
        for form in averages:
            grad = torch.sin(aten.avg_pool2d(x, *form))
            made.append(aten.avg_pool2d_backward(grad, x, *form))
        for window in greatest:
            out, places = aten.max_pool2d_with_indices(x, *window)
            made.append(aten.max_pool2d_with_indices_backward(torch.cos(out), x, *window, places))
        for size in ([3, 4], [1, 1], [7, 9]):
            grad = torch.sin(aten._adaptive_avg_pool2d(x, size))
            made.append(aten._adaptive_avg_pool2d_backward(grad, x))
            out, places = aten.adaptive_max_pool2d(x, size)
            made.append(aten.adaptive_max_pool2d_backward(torch.cos(out), x, places))
        form = ([2, 3, 2], [2, 1, 1], [1, 1, 0], True, False, None)
        grad = torch.sin(aten.avg_pool3d(volume, *form))
        made.append(aten.avg_pool3d_backward(grad, volume, *form))
        window = ([2, 3, 2], [2, 1, 1], [1, 1, 0], [1, 2, 1], False)
        out, places = aten.max_pool3d_with_indices(volume, *window)
        back = aten.max_pool3d_with_indices_backward
        made.append(back(torch.cos(out), volume, *window, places))
        grad = torch.sin(aten._adaptive_avg_pool3d(volume, [2, 3, 4]))
        made.append(aten._adaptive_avg_pool3d_backward(grad, volume))
        return tuple(made)

    agree(as_module(every), (_randn(2, 3, 8, 7), _randn(2, 5, 6, 4)), tmp_path)


def test_windows_of_a_symbolic_size(tmp_path: Path) -> None:
    height = torch.export.Dim("height", min=4, max=64)

    def every(x: Any) -> Any:
        return F.adaptive_avg_pool2d(x, (3, 4)), *F.adaptive_max_pool2d(x, (3, 2), True)

    x = _randn(1, 2, 10, 7)
    agree(as_module(every), (x,), tmp_path, dynamic_shapes=(({2: height},),))


def test_fractional_poolings(tmp_path: Path) -> None:
    def every(x: Any, numbers: Any, volume: Any, more: Any) -> Any:
        return (
            *aten.fractional_max_pool2d(x, [2, 3], [4, 3], numbers),
            *aten.fractional_max_pool3d(volume, [2, 2, 2], [3, 2, 4], more),
        )

    numbers, more = (torch.rand(2, 3, n, dtype=torch.double) for n in (2, 3))
    agree(as_module(every), (_randn(2, 3, 8, 7), numbers, _randn(2, 3, 6, 5, 8), more), tmp_path)


@pytest.mark.parametrize("padded", [True, False])
def test_averages_over_windows_that_the_end_cuts_off(tmp_path: Path, padded: bool) -> None:
    """With ``ceil_mode`` the last window may reach beyond the padding, which is not counted there;
    what is before the input is padding as anywhere."""

    def every(x: Any, image: Any) -> Any:
        return (
            F.avg_pool1d(x, 3, 2, 1, ceil_mode=True, count_include_pad=padded),
            F.avg_pool1d(x, 4, 3, 2, ceil_mode=True, count_include_pad=padded),
            F.avg_pool2d(image, (3, 2), (2, 3), 1, ceil_mode=True, count_include_pad=padded),
        )

    agree(as_module(every), (_randn(2, 6), _randn(2, 4, 6)), tmp_path)
