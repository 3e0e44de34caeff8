"""Integers that a model makes of positions and sizes are of 64 bits, as torch's are, whatever a
kernel's indices are of."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler.build.flags import DEFAULT_FLAGS
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv, Mod, as_expr, symbol
from scheduler.ir.index.ranges import Ranges
from scheduler.ir.index.widening import widen_indices
from scheduler.ir.values import Call, Cast, IndexValue, Value
from scheduler.targets import find
from tests.support.caches import KEPT
from tests.support.exported_kernels import assert_close
from tests.support.models_as_kernels import compile_all, prepare, run
from tests.unit.torch_export import as_module, export, inputs_of

torch = pytest.importorskip("torch")

BOUNDED, ANY = {0: torch.export.Dim("n", min=2, max=4096)}, torch.export.Dim.DYNAMIC


def agrees(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    folder: Path,
    *,
    dynamic: tuple[Any, ...] | None = None,
    others: tuple[Any, ...] | None = None,
    target: str = "cpu",
) -> str:
    """What kernels give at the example's sizes, or at those of ``others``, is what torch gives;
    the sources."""
    module, chosen, given = as_module(function), find(target), others or args
    options = {} if dynamic is None else {"dynamic_shapes": (dynamic,)}
    program, graph = export(module, args, folder, **options)
    prepared = prepare(graph, chosen)
    library = compile_all([prepared], chosen, KEPT, DEFAULT_FLAGS)
    tensors = [
        (one.name, arg)
        for one, arg in zip(graph.inputs, given, strict=True)
        if not isinstance(arg, int)
    ]
    shapes = [
        (size, extent)
        for name, tensor in tensors
        for size, extent in zip(graph.tensors[name].size, tensor.shape, strict=True)
    ]
    sizes = {size.name: extent for size, extent in shapes if size.is_Symbol}
    numbers = iter([arg for arg in given if isinstance(arg, int)])
    sizes |= {name: next(numbers) for name in graph.symbols if name not in sizes}
    got = run(prepared, library, chosen, inputs_of(program, graph, given), sizes)
    (name,) = graph.outputs
    assert_close(got[name], module(*given), 1e-6, name)
    return "".join(kernel.source for kernel in prepared.generated.kernels)


def ones(*size: int) -> Any:
    return torch.ones(*size)


CASES: dict[str, tuple[Any, ...]] = {
    "an arange": (
        lambda x: x + torch.arange(0, 5_000_000_000, 1_000_000_000),
        (torch.zeros(5, dtype=torch.int64),),
    ),
    "a part of an index from an arange": (
        lambda x: x[(torch.arange(60_000) * 60_007) % 1000],
        (torch.arange(1000.0),),
    ),
    "a power of a size": (
        lambda x: x + x.shape[0] ** 3,
        (torch.arange(8.0),),
        (BOUNDED,),
        (torch.arange(4000.0),),
    ),
    "after a reduction": (
        lambda x: x.sum(-1) * x.shape[0] ** 4,
        (ones(8, 64),),
        (BOUNDED,),
        (ones(1000, 64),),
    ),
    "after a product": (
        lambda x, y: (x @ y) * x.shape[0] ** 4,
        (ones(8, 16), ones(16, 8)),
        (BOUNDED, {}),
        (ones(1000, 16), ones(16, 8)),
    ),
    "a place in a product": (
        lambda x, y: (x @ y) + torch.arange(24)[:, None] * torch.arange(24) * 10_000_019,
        (ones(24, 16), ones(16, 24)),
    ),
    "sizes without bounds": (
        lambda x: (
            x.t().reshape(-1).to(torch.int64)
            + x.shape[0] ** 4
            + torch.arange(x.shape[0] * x.shape[1]) % x.shape[1]
        ),
        (ones(8, 6),),
        ({0: ANY, 1: ANY},),
        (ones(1000, 6),),
    ),
}


@pytest.mark.full(but=["an arange"])
@pytest.mark.parametrize("name", CASES)
def test_what_is_beyond_32_bits_is_what_torch_computes(name: str, tmp_path: Path) -> None:
    function, args, *more = CASES[name]
    dynamic, others = more or (None, None)
    agrees(function, args, tmp_path, dynamic=dynamic, others=others)


def test_what_fits_stays_an_index(tmp_path: Path) -> None:
    """And costs what it did: no arithmetic of 64 bits."""
    source = agrees(
        lambda x: x + torch.arange(64) * 3 + 7, (torch.zeros(64, dtype=torch.int64),), tmp_path
    )
    assert "static_cast<int64_t>(x0 * 3" in source


n, s, t = symbol("n"), symbol("s"), symbol("t")
RANGES = Ranges(loops=((n, s),), sizes=(("s", (2, 1000)), ("t", (2, np.inf))))


@pytest.mark.parametrize(
    ("expr", "fits"),
    [
        (n, True),
        (t, True),
        (n * 2_000_000 + 7, True),
        (n * 3_000_000, False),
        (n * 2_000_000 - n * 1_000_000 * s, False),
        (n + t, False),
        (FloorDiv(n, t), True),
        (Mod(t, n + 5), True),
        (Mod(n * 5_000_000, s), False),
        (s**3, True),
        (s**4, False),
    ],
    ids=str,
)
def test_what_fits_is_told_by_every_part(expr: Expr, fits: bool) -> None:
    value = IndexValue(expr, DType.I64)
    assert (widen_indices(value, RANGES) is value) is fits


@pytest.mark.parametrize(
    ("expr", "fits"),
    [
        (n + 2**31 - 2, True),  # with n = 1 it is the greatest that 32 bits hold
        (n + 2**31 - 1, False),
        (n * (2**31 - 1), True),
        (n * 2**31, False),
        (1 - n * 2**31, False),
        (-n * (2**31 - 1), True),
        (-n - 2**31 + 2, True),
        (-n - 2**31 + 1, False),  # what has no opposite in 32 bits counts as beyond them
    ],
    ids=str,
)
def test_32_bits_hold_what_is_below_2_to_the_31st(expr: Expr, fits: bool) -> None:
    value = IndexValue(expr, DType.I64)
    inside = Ranges(loops=((n, as_expr(2)),))
    assert (widen_indices(value, inside) is value) is fits


def test_another_type_is_rounded_to_at_the_end() -> None:
    found = widen_indices(IndexValue(n * 3_000_000, DType.I32), RANGES)
    assert isinstance(found, Cast)
    assert found.dtype is DType.I32
    assert isinstance(found.value, Call)
    assert found.value.dtype is DType.I64


def test_hundreds_of_terms_are_a_flat_tree() -> None:
    """What reads a tree calls itself once a level."""

    def depth(value: Value) -> int:
        return 1 + max(map(depth, value.args)) if isinstance(value, Call) else 0

    terms = (t ** (1 + power % 7) * symbol(f"u{power}") for power in range(300))
    sizes = (*RANGES.sizes, *((f"u{power}", (2, np.inf)) for power in range(300)))
    tree = widen_indices(IndexValue(sum(terms), DType.I64), Ranges(RANGES.loops, sizes))
    assert 9 <= depth(tree) <= 9 + 4


def test_a_number_that_is_given_may_be_beyond_32_bits(tmp_path: Path) -> None:
    source = agrees(
        lambda x, n: x + n,
        (torch.arange(8), 5),
        tmp_path,
        dynamic=(BOUNDED, ANY),
        others=(torch.arange(9), 2**33 + 1),
    )
    assert "using index_t = int32_t" in source


_CONSTANTS = (1, 2, 3, 7, 1000, 60_007, 2**31 - 1, 2**31, 2**33 + 1)


def integer(rng: random.Random, depth: int, n: int, m: int, x: Any, size: bool = False) -> Any:
    """Some integer made of places, sizes and an input, with a part or all of it beyond 32 bits;
    of sizes alone where it is a ``size``."""
    if depth == 0:
        leaves = [n, m, rng.choice(_CONSTANTS)]
        if not size:
            leaves += [torch.arange(n)[:, None], torch.arange(m), x, x.flip(1)]
        return rng.choice(leaves)
    a, b = (integer(rng, depth - 1, n, m, x, size) for _ in "ab")
    match rng.randrange(6):
        case 0:
            return a + b
        case 1:
            return a - b
        case 2:
            return a * b
        case 3:
            return a // rng.choice(_CONSTANTS)
        case 4:
            return (a - b) % rng.choice(_CONSTANTS)
    return a + integer(rng, depth - 1, n, m, x, True)


@pytest.mark.long(but=10)
@pytest.mark.full
@pytest.mark.parametrize("seed", range(20))
def test_integers_of_places_sizes_and_inputs_are_torchs(seed: int, tmp_path: Path) -> None:
    """At sizes other than the example's, up to the export's bounds."""

    def made(x: Any) -> Any:
        rng, (n, m) = random.Random(seed), x.shape
        return tuple(x * 0 + integer(rng, 1 + place % 3, n, m, x) for place in range(12))

    def values(n: int, m: int) -> Any:
        generator = torch.Generator().manual_seed(seed)
        return torch.randint(-(2**33), 2**33 + 1, (n, m), generator=generator)

    dims = {0: torch.export.Dim("n", min=8, max=3000), 1: torch.export.Dim("m", min=8, max=2000)}
    program, graph = export(as_module(made), (values(10, 9),), tmp_path, dynamic_shapes=((dims,),))
    chosen = find("cpu")
    prepared = prepare(graph, chosen)
    library = compile_all([prepared], chosen, KEPT, DEFAULT_FLAGS)
    for n, m in ((8, 8), (3000, 11), (13, 2000)):
        x = values(n, m)
        named = graph.tensors[graph.inputs[0].name].size
        sizes = {size.name: extent for size, extent in zip(named, x.shape, strict=True)}
        got = run(prepared, library, chosen, inputs_of(program, graph, (x,)), sizes)
        for place, (name, tensor) in enumerate(zip(graph.outputs, made(x), strict=True)):
            assert np.array_equal(got[name], tensor.numpy()), (place, n, m)
