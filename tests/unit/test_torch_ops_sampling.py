"""Sampling at a grid's places, windows as columns, paddings and poolings undone: the reference
against torch."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.unit.torch_export import agree, as_module

torch = pytest.importorskip("torch")
F = torch.nn.functional
aten = torch.ops.aten


def _randn(*size: int) -> Any:
    return torch.randn(*size, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


@pytest.mark.long
def test_samples_at_a_grid(tmp_path: Path) -> None:
    def every(x: Any, grid: Any, volume: Any, places: Any, theta: Any) -> Any:
        made = []
        for mode, padding, corners in product(
            ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"), (False, True)
        ):
            form = {"mode": mode, "padding_mode": padding, "align_corners": corners}
            made.append(F.grid_sample(x, grid, **form))
            if mode != "bicubic" and padding != "border":
                made.append(F.grid_sample(volume, places, **form))
        for corners in (False, True):
            made.append(F.affine_grid(theta, [2, 1, 4, 3], corners))
            made.append(
                F.affine_grid(theta[:, :, :1].repeat(1, 2, 4)[:, :3], [2, 1, 1, 4, 3], corners)
            )
        return tuple(made)

    args = (
        *(_randn(2, 3, 5, 4), 1.5 * _randn(2, 4, 6, 2)),
        *(_randn(2, 2, 3, 4, 5), 1.5 * _randn(2, 2, 3, 4, 3), _randn(2, 2, 3)),
    )
    agree(as_module(every), args, tmp_path)


def test_windows_as_columns(tmp_path: Path) -> None:
    def every(x: Any) -> Any:
        made = []
        for kernel, dilation, padding, stride in (
            ((3, 2), 1, 0, 1),
            ((3, 2), (2, 1), (1, 2), (2, 1)),
            ((2, 3), 1, 1, (3, 2)),
        ):
            form = (kernel, dilation, padding, stride)
            columns = F.unfold(x, *form)
            made += [columns, F.fold(columns, (7, 6), *form), F.unfold(x[0], *form)]
            made.append(F.fold(columns[0], (7, 6), *form))
        return tuple(made)

    agree(as_module(every), (_randn(2, 3, 7, 6),), tmp_path)


def test_paddings_and_their_gradients(tmp_path: Path) -> None:
    def every(x: Any, volume: Any, g: Any) -> Any:
        return (
            aten.reflection_pad1d(x[0], [2, 1]),
            aten.reflection_pad2d(x, [2, 1, 0, 3]),
            aten.reflection_pad3d(volume, [1, 2, 1, 0, 1, 1]),
            aten.replication_pad1d(x[0], [5, 1]),
            aten.replication_pad2d(x, [2, 7, 0, 3]),
            aten.replication_pad3d(volume, [1, 2, 4, 0, 1, 1]),
            F.pad(x, (-1, 3, 2, -2), mode="circular"),
            F.pad(x, (-2, 3, 4, -3), mode="replicate"),
            F.pad(x[..., :2], (-2, 3, 0, 0), mode="replicate"),
            aten.reflection_pad2d_backward(g, x, [2, 1, 0, 3]),
            aten.replication_pad2d_backward(g, x, [1, 2, 3, 0]),
            aten.reflection_pad1d_backward(g[0], x[0, :, :1].repeat(1, 8, 1)[..., :8, :], [2, 1]),
        )

    args = (_randn(2, 3, 5, 4), _randn(1, 2, 3, 4, 5), _randn(2, 3, 8, 7))
    agree(as_module(every), args, tmp_path)


def test_poolings_undone(tmp_path: Path) -> None:
    def every(x: Any, volume: Any) -> Any:
        small, places = F.max_pool2d(x, 2, return_indices=True)
        cubes, there = F.max_pool3d(volume, 2, return_indices=True)
        return (
            F.max_unpool2d(small, places, 2),
            F.max_unpool2d(small[0], places[0], 2, output_size=(7, 7)),
            F.max_unpool3d(cubes, there, 2),
        )

    agree(as_module(every), (_randn(2, 3, 6, 6), _randn(1, 2, 4, 4, 6)), tmp_path)
