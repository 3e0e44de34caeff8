"""Resampling to another size and its gradients: the reference against torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.torch_export import agree, as_module

torch = pytest.importorskip("torch")
F = torch.nn.functional
aten = torch.ops.aten


def _randn(*size: int) -> Any:
    return torch.randn(*size, dtype=torch.float64, generator=torch.Generator().manual_seed(4))


X = _randn(1, 2, 7, 9)
SIZES = [(5, 13), (14, 18), (7, 3), (49, 1), (1, 61)]


@pytest.mark.full
def test_nearest_pixels(tmp_path: Path) -> None:
    def every(x: Any, single: Any, bytes_: Any, volume: Any) -> Any:
        made = []
        for mode in ("nearest", "nearest-exact"):
            for value in (x, single, bytes_):
                made += [F.interpolate(value, size=size, mode=mode) for size in SIZES]
                made += [F.interpolate(value, scale_factor=s, mode=mode) for s in (0.6, 1.7, 3.0)]
            made.append(F.interpolate(x[0], scale_factor=2.3, mode=mode))
            made.append(F.interpolate(volume, size=(5, 2, 11), mode=mode))
        return tuple(made)

    bytes_ = torch.arange(7 * 9, dtype=torch.uint8).reshape(1, 1, 7, 9)
    args = (X, X.float(), bytes_, _randn(1, 2, 3, 4, 5))
    agree(as_module(every), args, tmp_path)


@pytest.mark.full
def test_interpolations(tmp_path: Path) -> None:
    def every(x: Any, volume: Any) -> Any:
        made = []
        for mode in ("bilinear", "bicubic"):
            for corners in (False, True):
                for size in SIZES:
                    made.append(F.interpolate(x, size=size, mode=mode, align_corners=corners))
                for scale in (0.6, 1.7, 3.0):
                    made.append(
                        F.interpolate(x, scale_factor=scale, mode=mode, align_corners=corners)
                    )
            # With one pixel across torch takes the first row for all: its own kernels differ.
            for size in [*SIZES[:3], (49, 2), (1, 61)]:
                made.append(F.interpolate(x, size=size, mode=mode, antialias=True))
            made.append(F.interpolate(x, scale_factor=0.4, mode=mode, antialias=True))
            made.append(F.interpolate(x, scale_factor=(2.1, 0.3), mode=mode, antialias=True))
        made.append(F.interpolate(x[0], size=5, mode="linear"))
        made.append(F.interpolate(x[0], scale_factor=2.3, mode="linear", align_corners=True))
        made.append(F.interpolate(volume, size=(5, 2, 11), mode="trilinear"))
        made.append(F.interpolate(volume, scale_factor=1.5, mode="trilinear", align_corners=True))
        return tuple(made)

    agree(as_module(every), (X, _randn(1, 2, 3, 4, 5)), tmp_path)


def test_gradients_of_resampling(tmp_path: Path) -> None:
    def every(g: Any, volume: Any) -> Any:
        size, own = [7, 9], [1, 2, 4, 12]
        line = g[0]
        return (
            aten.upsample_nearest2d_backward(g, size, own),
            aten._upsample_nearest_exact2d_backward(g, size, own, 7 / 4, 9 / 12),
            aten.upsample_nearest1d_backward(line, [9], [2, 7, 4]),
            aten.upsample_nearest3d_backward(volume, [3, 4, 5], [1, 2, 2, 5, 3]),
            aten.upsample_bilinear2d_backward(g, size, own, False),
            aten.upsample_bilinear2d_backward(g, size, own, True),
            aten.upsample_bicubic2d_backward(g, size, own, False),
            aten.upsample_linear1d_backward(line, [9], [2, 7, 4], False),
            aten.upsample_trilinear3d_backward(volume, [3, 4, 5], [1, 2, 2, 5, 3], False),
        )

    agree(as_module(every), (X, _randn(1, 2, 3, 4, 5)), tmp_path)


def test_resampling_of_symbolic_sizes(tmp_path: Path) -> None:
    height = torch.export.Dim("height", min=4, max=64)

    def every(x: Any) -> Any:
        return (
            F.interpolate(x, size=(11, 12), mode="nearest"),
            F.interpolate(x, scale_factor=2.0, mode="nearest"),
            F.interpolate(x, scale_factor=3.0, mode="nearest-exact"),
            F.interpolate(x, size=(11, 12), mode="bilinear"),
            F.interpolate(x, size=(11, 12), mode="bicubic", align_corners=True),
        )

    agree(as_module(every), (X,), tmp_path, dynamic_shapes=(({2: height},),))
