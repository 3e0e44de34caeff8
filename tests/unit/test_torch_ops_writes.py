"""Ops that write at indices: the reference against torch, and (beside ``lowering``) the kernels'
operations against the reference. Every use has places that several sources reach."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.torch_export import agree, as_module

torch = pytest.importorskip("torch")

index_put = torch.ops.aten.index_put
DTYPES = [torch.float64, torch.int64, torch.int32, torch.uint8, torch.int8, torch.bool]


def values(dtype: Any, *size: int, seed: int = 1) -> Any:
    generator = torch.Generator().manual_seed(seed)
    if dtype.is_floating_point:
        return torch.randn(*size, dtype=dtype, generator=generator)
    if dtype is torch.bool:
        return torch.rand(*size, generator=generator) > 0.5
    return torch.randint(0, 100, size, generator=generator).to(dtype)


def places(high: int, *size: int, low: int = 0, seed: int = 3) -> Any:
    return torch.randint(low, high, size, generator=torch.Generator().manual_seed(seed))


def many(*functions: Any) -> Any:
    return as_module(lambda *args: tuple(f(*args) for f in functions))


@pytest.mark.parametrize("decompose", [False, True])
def test_scatter(tmp_path: Path, decompose: bool) -> None:
    module = many(
        lambda x, i, s: x.scatter(0, i, s),
        lambda x, i, s: x.scatter(1, i[:, :2] % 4, s),
        lambda x, i, s: x.scatter(-1, i[:1] % 4, 2.5),
        lambda x, i, s: x.scatter(0, i, s, reduce="add"),
        lambda x, i, s: x.scatter(0, i, 3, reduce="multiply"),
        lambda x, i, s: x.scatter_add(1, i % 4, s),
        lambda x, i, s: x.clone().scatter_(0, i, s).scatter_add_(0, i, s),
        lambda x, i, s: x[0, 0].scatter(0, i[0, 0] * 0, s[0, 0]),
        lambda x, i, s: x.scatter(0, i[:0], s),
    )
    agree(
        module,
        (values(torch.float64, 6, 4), places(6, 5, 3), values(torch.float64, 5, 4, seed=2)),
        tmp_path,
        decompose=decompose,
    )


@pytest.mark.parametrize("decompose", [False, True])
def test_scatter_reduce(tmp_path: Path, decompose: bool) -> None:
    def reduced(reduce: str, include_self: bool) -> Any:
        return lambda x, i, s: x.scatter_reduce(0, i, s, reduce, include_self=include_self)

    kinds = ("sum", "prod", "mean", "amax", "amin")
    module = many(*(reduced(kind, own) for kind in kinds for own in (True, False)))
    source = values(torch.float64, 9, 4, seed=2)
    source[3, 1] = torch.nan
    args = (values(torch.float64, 6, 4), places(4, 9, 3), source)
    agree(module, args, tmp_path, decompose=decompose)


@pytest.mark.full
def test_combining_in_each_type(tmp_path: Path) -> None:
    def every(i: Any, *tensors: Any) -> Any:
        made = []
        for x, s in zip(tensors[::2], tensors[1::2], strict=True):
            kinds = ("sum", "prod", "amax", "amin") + (() if x.dtype is torch.bool else ("mean",))
            made += [
                x.scatter_reduce(0, i, s, kind, include_self=own)
                for kind in kinds
                for own in (True, False)
            ]
            made += [x.scatter(0, i, s), x.index_put((i,), s, accumulate=True)]
            made += [x.index_add(0, i, s), x.index_fill(0, i, 1)]
        return tuple(made)

    tensors = [t for d in DTYPES for t in (values(d, 5), values(d, 12, seed=2))]
    agree(as_module(every), (places(4, 12), *tensors), tmp_path)


@pytest.mark.parametrize("decompose", [False, True])
def test_slices_along_a_dimension(tmp_path: Path, decompose: bool) -> None:
    module = many(
        lambda x, i, s: x.index_add(0, i, s),
        lambda x, i, s: x.index_add(-2, i, s, alpha=2),
        lambda x, i, s: x.T.index_add(1, i, s.T),
        lambda x, i, s: x.index_copy(0, i, s),
        lambda x, i, s: x.index_copy(1, i[:2] % 4, s[:6, :2]),
        lambda x, i, s: x.index_fill(0, i, 1.5),
        lambda x, i, s: x.index_fill(1, i % 4, s[0, 0]),
        lambda x, i, s: x[0, 0].index_add(0, i[0] * 0, s[0, 0]),
        lambda x, i, s: x.clone().index_add_(0, i, s).index_copy_(0, i, s).index_fill_(0, i[:1], 2),
    )
    args = (values(torch.float64, 6, 4), places(6, 7), values(torch.float64, 7, 4, seed=2))
    if not decompose:
        agree(module, args, tmp_path)
    else:
        agree(many(lambda x, i, s: x.index_add(0, i, s)), args, tmp_path, decompose=True)


def test_index_reduce(tmp_path: Path) -> None:
    functions = [
        lambda x, i, s, kind=kind, own=own: x.index_reduce(1, i, s, kind, include_self=own)
        for kind in ("prod", "mean", "amax", "amin")
        for own in (True, False)
    ]
    args = (values(torch.float64, 3, 6, 2), places(4, 7), values(torch.float64, 3, 7, 2, seed=2))
    agree(many(*functions), args, tmp_path)


@pytest.mark.parametrize("decompose", [False, True])
def test_index_put(tmp_path: Path, decompose: bool) -> None:
    x = values(torch.float64, 5, 6, 4)
    i, j = places(5, 3, 2, low=-5), places(4, 2, low=-4, seed=4)
    many_values = values(torch.float64, 3, 2, 6, seed=5)
    module = many(
        lambda x, i, j, v: index_put(x, (i, None, j), v),
        lambda x, i, j, v: index_put(x, (i, None, j), v, accumulate=True),
        lambda x, i, j, v: x.index_put((i,), v[0, 0, 0]),
        lambda x, i, j, v: index_put(x, (None, i), v[:, :, :4], accumulate=True),
        lambda x, i, j, v: index_put(x, (None, i, j), v[0, 0, :2], accumulate=False),
        lambda x, i, j, v: index_put(x, (None, None, j), v[0, 1, 0], accumulate=True),
        lambda x, i, j, v: torch.ops.aten._unsafe_index_put(x, (None, i), v[0, 0, :4]),
        lambda x, i, j, v: torch.ops.aten._index_put_impl_(x.clone(), (i,), v[0, 0, :4], True),
    )
    agree(module, (x, i, j, many_values), tmp_path, decompose=decompose)


@pytest.mark.parametrize("decompose", [False, True])
def test_masks(tmp_path: Path, decompose: bool) -> None:
    x = values(torch.float64, 5, 6, 4)
    mask, rows = values(torch.bool, 5, 6, seed=7), values(torch.bool, 5, seed=8)
    count, lines = int(mask.sum()), int(rows.sum())
    source = values(torch.float64, 5 * 6 * 4, seed=9)
    module = many(
        lambda x, m, r, s: x.index_put((m,), s[: count * 4].view(count, 4)),
        lambda x, m, r, s: x.index_put((m,), s[:4], accumulate=True),
        lambda x, m, r, s: x.index_put((r,), s[: lines * 24].view(lines, 6, 4), accumulate=True),
        lambda x, m, r, s: x.index_put((m,), s[0]),
        lambda x, m, r, s: index_put(x.transpose(0, 1), (None, r), s[: lines * 4].view(lines, 4)),
        lambda x, m, r, s: x.masked_scatter(m[:, :, None], s),
        lambda x, m, r, s: x[0, 0].masked_scatter(x[0] > 0, s),
    )
    agree(module, (x, mask, rows, source), tmp_path, decompose=decompose)


def test_a_tensor_as_one_line(tmp_path: Path) -> None:
    x, i = values(torch.float64, 5, 6), places(30, 3, 4, low=-30)
    source = values(torch.float64, 3, 4, seed=2)
    module = many(
        lambda x, i, s: x.take(i),
        lambda x, i, s: x.T.take(i),
        lambda x, i, s: x.put(i, s),
        lambda x, i, s: x.put(i, s, accumulate=True),
        lambda x, i, s: x[0, 0].take(i * 0),
    )
    agree(module, (x, i, source), tmp_path)


def test_the_gradient_of_an_embedding(tmp_path: Path) -> None:
    backward = torch.ops.aten.embedding_dense_backward
    module = many(
        lambda g, i: backward(g, i, 7, -1, False),
        lambda g, i: backward(g, i, 7, 2, False),
        lambda g, i: backward(g, i, 7, 2, True),
    )
    agree(module, (values(torch.float64, 4, 5, 3), places(7, 4, 5)), tmp_path)


def test_a_cache_is_written_at_the_positions_of_new_tokens(tmp_path: Path) -> None:
    def step(cache: Any, new: Any, position: Any) -> Any:
        cache = cache.clone()
        cache[:, :, position] = new
        return cache, cache.index_copy(2, position, new * 2)

    args = (
        values(torch.float64, 2, 3, 8, 4),
        values(torch.float64, 2, 3, 2, 4),
        torch.tensor([5, 6]),
    )
    agree(as_module(step), args, tmp_path)


def test_nothing_is_written_from_nothing(tmp_path: Path) -> None:
    module = many(
        lambda x, i, s: x.index_add(0, i, s),
        lambda x, i, s: x.index_copy(0, i, s),
        lambda x, i, s: x.index_put((i,), s, accumulate=True),
        lambda x, i, s: x[:0].index_add(1, i, s.T[:0]),
        lambda x, i, s: x.index_reduce(0, i, s, "amax", include_self=False),
    )
    args = (values(torch.float64, 6, 4), places(6, 0), values(torch.float64, 0, 4))
    agree(module, args, tmp_path)


def test_complex_numbers_are_added_up_by_their_parts(tmp_path: Path) -> None:
    def parts(*made: Any) -> Any:
        return tuple(part for one in made for part in (one.real, one.imag))

    def written(x: Any, y: Any, i: Any) -> Any:
        z, s = torch.complex(x, y), torch.complex(y, x)
        return parts(
            z.index_add(0, i, s, alpha=1j),
            z.scatter_add(0, i, s),
            z.index_put((i,), s, accumulate=True),
            z.index_copy(0, i, s),
        )

    args = (values(torch.float64, 9), values(torch.float64, 9, seed=2), places(7, 9))
    agree(as_module(written), args, tmp_path)
