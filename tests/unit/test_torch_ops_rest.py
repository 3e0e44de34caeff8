"""Gradients by differences, chunks, places and histograms of several dimensions, against torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.torch_export import agree, as_module

torch = pytest.importorskip("torch")


def _randn(*size: int) -> Any:
    return torch.randn(*size, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.full(but=["False"])
@pytest.mark.parametrize("decompose", [False, True])
def test_gradient(tmp_path: Path, decompose: bool) -> None:
    def every(x: Any, i: Any, p: Any, q: Any) -> Any:
        return (
            *torch.gradient(x),
            *torch.gradient(x, spacing=0.5, dim=1, edge_order=2),
            *torch.gradient(x, spacing=3.0, dim=(0, -1)),
            *torch.gradient(x, spacing=(2.0, 0.25), dim=(1, 0), edge_order=2),
            *torch.gradient(x, spacing=(p, q)),
            *torch.gradient(x, spacing=(q,), dim=-1, edge_order=2),
            *torch.gradient(x[:2, :3]),
            *torch.gradient(x[:2, :2], spacing=(p[:2], q[:2])),
            *torch.gradient(i),
            *torch.gradient(i, dim=0, edge_order=2),
        )

    i = (torch.arange(20).reshape(4, 5) * 37 % 11).to(torch.int8) * 20
    p, q = torch.tensor([0.0, 1, 3, 3.5]), torch.tensor([-1.0, 0, 0.5, 2, 7])
    args = (_randn(4, 5), i, p.double(), q.double())
    agree(as_module(every), args, tmp_path, decompose=decompose)


@pytest.mark.parametrize("decompose", [False, True])
def test_chunks_and_lines(tmp_path: Path, decompose: bool) -> None:
    def every(x: Any, y: Any) -> Any:
        return (
            torch._chunk_cat([x, y], 0, 3),
            torch._chunk_cat([x, y[:, 0]], 0, 2),
            torch._chunk_cat([x, x[:, :2]], 1, 2),
            torch._utils._flatten_dense_tensors([x, y]),
            torch.roll(x[:, :0], 1, 1),
            torch.roll(x[:0], (1, 2), (0, 1)),
            torch.take_along_dim(x, torch.tensor([[3, 0], [7, 7]])),
            torch.take_along_dim(x, torch.tensor([[1], [0], [3], [2]]), 1),
            torch.take_along_dim(x, torch.tensor([[1, 0, 3, 2, 1]]), 0),
        )

    agree(as_module(every), (_randn(4, 5), _randn(5, 2, 3)), tmp_path, decompose=decompose)


@pytest.mark.parametrize("decompose", [False, True])
def test_so_many_nonzero_places(tmp_path: Path, decompose: bool) -> None:
    def every(x: Any, b: Any) -> Any:
        return (
            torch.nonzero_static(x, size=4),
            torch.nonzero_static(x, size=20, fill_value=7),
            torch.nonzero_static(b, size=3),
            torch.nonzero_static(b[0], size=0),
            torch.nonzero_static(b[:0], size=2),
            torch.nonzero_static(x[0, 0, 0], size=2),
        )

    x = torch.tensor([0.0, 1, -2, 0, float("nan"), 0, 3, 4]).reshape(2, 2, 2)
    b = torch.tensor([[False, True, True], [True, False, True]])
    agree(as_module(every), (x.double(), b), tmp_path, decompose=decompose)


def test_histograms_of_several_dimensions(tmp_path: Path) -> None:
    def every(x: Any, w: Any, e: Any) -> Any:
        hist, edges = torch.histogramdd(x, [2, 3])
        weighed, cells = torch.histogramdd(
            x, [3, 2], range=[-1.0, 1.0, 0.0, 2.0], weight=w, density=True
        )
        same, _ = torch.histogramdd(x, 2)
        given, _ = torch.histogramdd(x, [e, e * 2])
        return (hist, *edges, weighed, *cells, same, given)

    e = torch.tensor([-1.0, 0, 0.25, 2], dtype=torch.float64)
    agree(as_module(every), (_randn(9, 2), _randn(9).abs(), e), tmp_path)


def test_a_result_written_to_an_argument(tmp_path: Path) -> None:
    def every(x: Any, y: Any, z: Any) -> Any:
        made = torch.atan2(x, y, out=torch.empty_like(x))
        out = z.clone()
        before = out + 1
        torch.atan2(x, y, out=out)
        return made * 2, before, out + 1, out[0] * z[0]

    agree(as_module(every), (_randn(4, 5), _randn(4, 5), _randn(4, 5)), tmp_path)


def test_resized_tensors_show_their_memory(tmp_path: Path) -> None:
    def every(x: Any, y: Any) -> Any:
        return (
            x.clone().resize_(2, 3) * 2,
            x.t().clone().resize_(3, 4) + 1,
            x.clone().resize_as_(y).exp(),
            x.clone().resize_(4, 5),
            x.clone().resize_(0),
        )

    agree(as_module(every), (_randn(4, 5), _randn(2, 2, 3)), tmp_path)
