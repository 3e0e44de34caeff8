"""Counts, extremes, norms, distances: the reference against torch."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tests.unit.torch_export import agree, as_module

torch = pytest.importorskip("torch")

DECOMPOSED = pytest.mark.parametrize("decompose", [False, True], ids=["", "core"])
INF, NAN = math.inf, math.nan


def _randn(*size: int) -> Any:
    return torch.randn(*size, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def _ints(high: int, *size: int, dtype: Any = torch.int64) -> Any:
    drawn = torch.randint(0, high, size, generator=torch.Generator().manual_seed(3))
    return drawn.to(dtype)


X = _randn(3, 4, 5)
GAPS = torch.where(_ints(3, 3, 4, 5) == 0, NAN, X)


@pytest.mark.full(but=2)
@DECOMPOSED
def test_counts_and_extremes(tmp_path: Path, decompose: bool) -> None:
    def uses(x: Any, gaps: Any, ints: Any, flags: Any, scalar: Any) -> Any:
        made = [*torch.aminmax(x), *torch.aminmax(gaps, dim=1), *torch.aminmax(ints, dim=0)]
        made += [*torch.aminmax(flags, dim=-1, keepdim=True), *torch.aminmax(scalar)]
        made += [x.count_nonzero(), ints.count_nonzero(1), gaps.count_nonzero((0, 2))]
        made += [flags.count_nonzero(0), x[:0].count_nonzero(), scalar.count_nonzero()]
        made += [gaps.nansum(), gaps.nansum(1), ints.nansum(0), flags.nansum(), x[:0].nansum(0)]
        made += [gaps.nanmean(), gaps.nanmean((0, 2), True), gaps.nanmean(2), scalar.nanmean()]
        made += [ints.nansum(dtype=torch.float64), (gaps * NAN).nanmean(0), x[:0].nanmean(0)]
        return tuple(made)

    args = (X, GAPS, _ints(3, 4, 6, dtype=torch.int16), _ints(2, 4, 3).bool(), torch.tensor(2.0))
    agree(as_module(uses), args, tmp_path, decompose=decompose)


def test_histograms(tmp_path: Path) -> None:
    def uses(x: Any, edges: Any, weight: Any) -> Any:
        made = [*torch.histogram(x, 5), *torch.histogram(x, 4, range=(-1.0, 2.0), density=True)]
        made += [*torch.histogram(x, edges), *torch.histogram(x, 3, weight=weight)]
        return (*made, *torch.histogram(x[:0], 3))

    agree(as_module(uses), (X, torch.tensor([-1.0, 0.5, 0.6, 3]).double(), X.abs()), tmp_path)


def test_what_is_distinct(tmp_path: Path) -> None:
    """Places and counts are int64 though the file says another type."""

    def uses(x: Any, floats: Any) -> Any:
        made = [*torch.unique(x, return_inverse=True, return_counts=True)]
        made += [*torch.unique_consecutive(x, return_inverse=True, return_counts=True)]
        made += [*torch.unique(x, dim=0, return_inverse=True, return_counts=True)]
        return (*made, torch.unique(floats), *torch.unique_consecutive(x, return_counts=True))

    x = _ints(2, 300, 2, dtype=torch.uint8).sort(0)[0]
    graph = agree(as_module(uses), (x, X.round()), tmp_path)
    kinds = [graph.tensors[name].dtype.label for name in graph.outputs]
    assert kinds == [*["u8", "i64", "i64"] * 3, "f64", "u8", "i64"]


@DECOMPOSED
def test_reductions_at_their_edges(tmp_path: Path, decompose: bool) -> None:
    def uses(x: Any, ints: Any, flags: Any, scalar: Any) -> Any:
        made = [x.std((0, 2), correction=2), x.var(1, correction=0.5), x.var(1, correction=9)]
        made += [x[:1].std(0), *torch.std_mean(x, 2, correction=0), *torch.var_mean(x)]
        made += [
            x.argmax(),
            x.argmin(keepdim=True),
            x.argmax(1, keepdim=True),
            flags.int().argmax(),
        ]
        made += [x.amax((0, 2)), ints.amin((0, 1), True), ints.prod(), ints.prod(0), flags.prod(1)]
        made += [flags.all((0, 1)), flags.any((-1,), True), ints.any(), ints.all(0), x.any(1)]
        made += [x.logsumexp((0, 2)), x.logsumexp(1, True), (x * INF).logsumexp(1)]
        made += [scalar.std(unbiased=False), scalar.amax(), x[:0].sum(0), x[:0].prod(0)]
        return (*made, x[:0].any(), x[:0].all(0), x[:0].mean(0), ints.sum(dtype=torch.float64))

    args = (X, _ints(3, 4, 6, dtype=torch.uint8), _ints(2, 4, 3).bool(), torch.tensor(2.0))
    agree(as_module(uses), args, tmp_path, decompose=decompose)


@pytest.mark.full(but=2)
@DECOMPOSED
def test_norms(tmp_path: Path, decompose: bool) -> None:
    def uses(x: Any, single: Any) -> Any:
        made = []
        for order in (0, 1, 2, 3, 0.5, -1, -2.5, INF, -INF):
            made += [torch.linalg.vector_norm(x, order, 1), torch.linalg.norm(x[0, 0], order)]
        for order in ("fro", 1, -1, INF, -INF):
            made += [torch.linalg.matrix_norm(x, order), torch.linalg.norm(x[0], order)]
            made += [
                torch.linalg.norm(x, order, (2, 0)),
                torch.linalg.matrix_norm(x, order, (0, 1), True),
            ]
        made += [torch.linalg.matrix_norm(x[:, :, :0], INF), x.diff(n=0, prepend=x[:, :, :1])]
        made += [x.norm(), x.norm(1, dim=(0, 2)), x.norm(3, 1, True), torch.linalg.norm(x)]
        made += [
            torch.norm(x, dim=1),
            torch.linalg.norm(x, dim=1),
            torch.linalg.norm(x, dim=(0, 1)),
        ]
        made += [torch.linalg.vector_norm(single, dtype=torch.float64)]
        return (*made, torch.norm(x, "fro", dim=(1, 2)), torch.linalg.norm(x, 3, 2, True))

    agree(as_module(uses), (X, X.float()), tmp_path, decompose=decompose)


@pytest.mark.full(but=2)
@DECOMPOSED
def test_distances(tmp_path: Path, decompose: bool) -> None:
    def uses(x: Any, y: Any, rows: Any) -> Any:
        made = []
        for p in (0.0, 1.0, 2.0, 3.5, INF):
            made += [torch.cdist(x, y, p), torch.cdist(x[0], y, p), torch.dist(x, x[0] * 2, p)]
            made += [torch.pdist(rows, p)]
        made += [
            torch.pdist(rows[:1]),
            torch.pdist(rows[:2]),
            torch.cdist(x[:, :, :0], y[:, :, :0]),
        ]
        made += [torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")]
        return (*made, torch.linalg.vecdot(x, x + 1), torch.linalg.vecdot(x, x[:, :1], dim=1))

    agree(as_module(uses), (X, _randn(3, 6, 5) + 1, _randn(6, 4)), tmp_path, decompose=decompose)


@DECOMPOSED
def test_cross_products(tmp_path: Path, decompose: bool) -> None:
    def uses(x: Any, ints: Any) -> Any:
        made = [torch.cross(x[:3], x[:3] * 2 + 1, dim=0), torch.cross(x[:3], x[1:])]
        made += [
            torch.linalg.cross(x[:, :3], x[:1, 1:4]),
            torch.linalg.cross(x.T[:3], x.T[3:], dim=0),
        ]
        return (*made, torch.linalg.cross(ints[:3], ints[1:4], dim=0))

    x = _randn(4, 6)
    agree(as_module(uses), (x, _ints(9, 4, 6)), tmp_path, decompose=decompose)
