"""Sorting, order statistics and searches: the reference against torch."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tests.unit.torch_export import agree, as_module

torch = pytest.importorskip("torch")

DECOMPOSED = pytest.mark.parametrize("decompose", [False, True], ids=["", "core"])
NAN, INF = math.nan, math.inf


def _randn(*size: int) -> Any:
    return torch.randn(*size, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def _ints(high: int, *size: int, dtype: Any = torch.int64) -> Any:
    drawn = torch.randint(0, high, size, generator=torch.Generator().manual_seed(3))
    return drawn.to(dtype)


X = _randn(3, 5, 4)
# Equal elements, both zeros, both infinities, NaNs: rows with none, some and all of them.
SPECIAL = torch.tensor(
    [
        [1.0, -0.0, 0.0, 3.0, 1.0, -INF, INF],
        [NAN, 2.0, INF, NAN, -INF, 2.0, 0.0],
        [NAN, NAN, NAN, NAN, NAN, NAN, NAN],
        [5.0, 4.0, 3.0, 2.0, 1.0, 0.0, -1.0],
    ],
    dtype=torch.float64,
)


@DECOMPOSED
def test_sorting(tmp_path: Path, decompose: bool) -> None:
    def uses(x: Any, special: Any, ties: Any, flags: Any, one: Any, scalar: Any) -> Any:
        made = [*x.sort(1), *x.sort(0, descending=True), *torch.sort(x, stable=True, dim=-1)]
        made += [
            *torch.sort(special, stable=True),
            *torch.sort(special, stable=True, descending=True),
        ]
        made += [torch.argsort(ties, stable=True), torch.argsort(ties, 0, descending=True)]
        made += [
            *torch.sort(ties, descending=True, stable=True),
            *torch.sort(flags, dim=0, stable=True),
        ]
        made += [torch.msort(x), torch.msort(ties), x.argsort(1), x.transpose(0, 2).sort(1)[0]]
        made += [*one.sort(), *scalar.sort(), *x[:, :0].sort(1), *x[:0].sort(-1)]
        return tuple(made)

    flags = _ints(2, 6, 3, dtype=torch.bool)
    args = (X, SPECIAL, _ints(4, 6, 9), flags, X[:1, 0, 0], torch.tensor(2.0))
    agree(as_module(uses), args, tmp_path, decompose=decompose)


@DECOMPOSED
def test_the_first_of_an_order(tmp_path: Path, decompose: bool) -> None:
    def uses(x: Any, special: Any, ints: Any, scalar: Any) -> Any:
        made = [*x.topk(2, dim=1), *x.topk(3, 0, largest=False), special.topk(3)[0]]
        made += [special.topk(5, largest=False)[0], *ints.topk(2), *scalar.topk(1)]
        made += [x.topk(2, sorted=False)[0].sum(-1), x.topk(0)[0], x.topk(4)[1]]
        made += [*x.kthvalue(2), *x.kthvalue(3, 1, keepdim=True), special.kthvalue(6)[0]]
        made += [*x.kthvalue(1, 0), *scalar.kthvalue(1), *ints.kthvalue(4, -1)]
        return tuple(made)

    distinct = torch.stack([torch.randperm(6) for _ in range(3)]).to(torch.int16)
    agree(as_module(uses), (X, SPECIAL, distinct, torch.tensor(2.0)), tmp_path, decompose=decompose)


@DECOMPOSED
def test_medians(tmp_path: Path, decompose: bool) -> None:
    def uses(x: Any, special: Any, ints: Any, scalar: Any) -> Any:
        made = [x.median(), *x.median(1), *x.median(0, keepdim=True), special.median()]
        made += [special.median(1)[0], special[3:].median(1)[1], ints.median(), *ints.median(0)]
        made += [special.nanmedian(), special.nanmedian(-1)[0], *x.nanmedian(2, keepdim=True)]
        made += [*scalar.median(0), scalar.nanmedian(), x[:0].median()]
        return tuple(made)

    distinct = torch.stack([torch.randperm(6) for _ in range(3)]).to(torch.uint8)
    agree(as_module(uses), (X, SPECIAL, distinct, torch.tensor(2.0)), tmp_path, decompose=decompose)


@DECOMPOSED
def test_quantiles(tmp_path: Path, decompose: bool) -> None:
    def uses(x: Any, special: Any, q: Any) -> Any:
        made = []
        for kind in ("linear", "lower", "higher", "nearest", "midpoint"):
            made += [x.quantile(q, 1, interpolation=kind), x.quantile(0.3, interpolation=kind)]
            made += [special.nanquantile(q, -1, True, interpolation=kind)]
        made += [special.quantile(q, 1), special[3:].quantile(q, 0, keepdim=True)]
        made += [special.nanquantile(0.25), x.quantile(q, keepdim=True), x.quantile(0.5, 2, True)]
        return tuple(made)

    q = torch.tensor([0.0, 0.1, 0.5, 0.75, 1.0], dtype=torch.float64)
    agree(as_module(uses), (X, SPECIAL, q), tmp_path, decompose=decompose)
    single = (X.float(), SPECIAL.float(), q.float())
    agree(as_module(uses), single, tmp_path, decompose=decompose)
