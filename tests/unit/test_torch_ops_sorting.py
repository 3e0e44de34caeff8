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


@pytest.mark.full
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


@DECOMPOSED
def test_modes(tmp_path: Path, decompose: bool) -> None:
    def uses(ints: Any, special: Any, flags: Any, scalar: Any) -> Any:
        made = [*ints.mode(), *ints.mode(0, True), special[::3].mode()[0], *flags.mode(0)]
        return (*made, *scalar.mode(), *ints[:1].mode(0))

    args = (_ints(4, 7, 9), SPECIAL, _ints(2, 6, 3, dtype=torch.bool), torch.tensor(2.0))
    agree(as_module(uses), args, tmp_path, decompose=decompose)


@DECOMPOSED
def test_running_results(tmp_path: Path, decompose: bool) -> None:
    def uses(x: Any, special: Any, ints: Any, flags: Any, scalar: Any) -> Any:
        made = [*x.cummax(1), *x.cummin(-1), *special.cummax(1), *special.cummin(1)]
        made += [*ints.cummax(0), *ints.cummin(1), *flags.cummax(0), *flags.cummin(0)]
        made += [*scalar.cummax(0), *x[:, :0].cummin(1), *x[:1].cummax(0)]
        made += [x.logcumsumexp(1), special.logcumsumexp(1), scalar.logcumsumexp(0)]
        made += [(x * 300).logcumsumexp(0), special.flip(1).logcumsumexp(1)]
        made += [flags.cumsum(0), ints.cumprod(1), ints.cumsum(1, dtype=torch.float64)]
        return tuple(made)

    ints = _ints(5, 4, 9, dtype=torch.int32)
    args = (X, SPECIAL, ints, _ints(2, 6, 3, dtype=torch.bool), torch.tensor(2.0).double())
    agree(as_module(uses), args, tmp_path, decompose=decompose)


@pytest.mark.full(but=2)
@DECOMPOSED
def test_integrals_and_differences(tmp_path: Path, decompose: bool) -> None:
    def uses(y: Any, x: Any, ints: Any, flags: Any) -> Any:
        made = [torch.trapezoid(y), torch.trapezoid(y, dx=0.5, dim=1), torch.trapz(y, x)]
        made += [torch.trapezoid(y, y * 2, dim=0), torch.trapezoid(ints, ints // 2)]
        made += [torch.cumulative_trapezoid(y, x), torch.cumulative_trapezoid(y, dim=1)]
        made += [torch.cumulative_trapezoid(y, y * y, dim=1), torch.trapezoid(y[:, :1], dim=1)]
        made += [y.diff(n=2), y.diff(n=3, dim=1), ints.diff(n=2, prepend=ints), flags.diff(n=2)]
        return (*made, y.diff(n=9), y.diff(n=4, dim=1), torch.diff(y, n=2, append=y[:, :, :1]))

    args = (X, _randn(4).abs().cumsum(0), _ints(9, 6), _ints(2, 3, 6, dtype=torch.bool))
    agree(as_module(uses), args, tmp_path, decompose=decompose)


@DECOMPOSED
def test_searches(tmp_path: Path, decompose: bool) -> None:
    def uses(rows: Any, values: Any, line: Any, long: Any, many: Any, order: Any) -> Any:
        made = []
        for right in (False, True):
            made += [torch.searchsorted(rows, values, right=right)]
            made += [torch.searchsorted(line, values, right=right, out_int32=True)]
            made += [torch.bucketize(values, line, right=right), torch.bucketize(2, line)]
            made += [torch.searchsorted(long, many, right=right)]
        made += [torch.searchsorted(line, 1.5), torch.searchsorted(line, values[0, 0])]
        made += [torch.searchsorted(rows.flip(1), values, side="right", sorter=order)]
        made += [torch.bucketize(values, line[:0]), torch.searchsorted(line, values[:, :0])]
        return (*made, torch.bucketize(many, long, out_int32=True))

    # Equal elements in all of them; the longest takes three steps.
    rows = _ints(6, 3, 7).double().sort(1)[0]
    values = torch.cat([_ints(8, 3, 5).double() - 0.5, rows[:, ::3], SPECIAL[:3, -2:]], 1)
    long = _ints(3000, 2500).sort()[0]
    order = torch.arange(6, -1, -1).expand(3, 7).contiguous()
    args = (rows, values, rows[0], long, _ints(3100, 40) - 20, order)
    agree(as_module(uses), args, tmp_path, decompose=decompose)


@pytest.mark.full(but=2)
@DECOMPOSED
def test_membership(tmp_path: Path, decompose: bool) -> None:
    def uses(x: Any, few: Any, special: Any, many: Any) -> Any:
        made = [torch.isin(x, few), torch.isin(x, few, invert=True), torch.isin(x, 3)]
        made += [torch.isin(3, x), torch.isin(special, special[:2]), torch.isin(x, few[:0])]
        made += [torch.isin(x, 3, invert=True), torch.isin(x * 1.5, few)]
        return (*made, torch.isin(x * 7, many), torch.isin(special, many * 1.0, invert=True))

    many = torch.cat([_ints(90, 1500), torch.tensor([0, 3])])
    agree(
        as_module(uses),
        (_ints(20, 4, 9), _ints(20, 2, 3), SPECIAL, many),
        tmp_path,
        decompose=decompose,
    )
