"""Sort kernels on CPU emulation against NumPy, for both wave sizes and every way to hold a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scheduler import targets
from scheduler.build.compile import build
from scheduler.build.cuda.toolchains import NAME, CudaToolchain, cuda_compilers
from scheduler.build.model import Build
from scheduler.build.toolchains import Search
from scheduler.codegen.rocm.sort import SortTemplate
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import SymbolInfo
from scheduler.ir.index.functions import as_expr, evaluate, symbol
from scheduler.ir.operations import Axis, GroupKind, Sort, Store
from scheduler.ir.values import Accumulator, Call, Load
from tests.support.caches import KEPT
from tests.support.memory import from_device, to_device
from tests.unit.codegen.loopnest import at, axes, buffer, compiled, group, run

F16, BF16, F32, F64 = DType.F16, DType.BF16, DType.F32, DType.F64
TARGETS = tuple(targets.find(n) for n in ("gfx942", "gfx1100"))
S = symbol("s27")
SYMBOL = SymbolInfo("s27", 100, 0, 10000)
WAVES = ("cpu", "cpu-gfx1100")


def sort(
    dtype: DType,
    rows: int,
    length: Any,
    *,
    descending: bool = False,
    limit: Any = None,
    negated: bool = False,
    stores: tuple[str, ...] = ("values", "places"),
) -> SortTemplate:
    """Rows that lie along the first dimension of x: the sorted one of the second."""
    outer = axes(rows)
    axis = Axis(symbol("r"), as_expr(length))
    place = Axis(symbol("p"), as_expr(length if limit is None else limit))
    key: Any = Load("x", (axis.var, *at(outer)), dtype)
    if negated:
        key = Call("neg", (key,), dtype)
    buffers = [
        buffer("x", dtype, (length, rows)),
        buffer("values", dtype, (rows, place.size)),
        buffer("places", DType.I64, (rows, place.size)),
    ]
    results = {
        "values": Accumulator(dtype.compute_dtype),
        "places": Accumulator(DType.I64, Sort.INDEX),
    }
    made = [Store(name, (*at(outer), place.var), results[name]) for name in stores]
    operation = Sort("op0", outer, axis, place, key, descending, tuple(made), ())
    node, lowered = group(GroupKind.SORT, [operation], buffers, (SYMBOL,))
    return SortTemplate(node, lowered, TARGETS)


def keys(rng: np.random.Generator, dtype: DType, length: int, rows: int) -> np.ndarray:
    """Many equal ones; of floats also both zeros, infinities and NaNs."""
    if dtype is DType.BOOL:
        return rng.integers(0, 2, (length, rows)).astype(bool)
    if not dtype.is_float:
        low = 0 if dtype is DType.U8 else -60
        return rng.integers(low, 60, (length, rows)).astype(dtype.numpy)
    drawn = np.round(rng.standard_normal((length, rows)) * 40) / 8
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan])
    chosen = rng.integers(0, len(special), drawn.shape)
    return np.where(rng.random(drawn.shape) < 0.2, special[chosen], drawn)


def expected(x: np.ndarray, limit: int, *, descending: bool) -> tuple[np.ndarray, np.ndarray]:
    """By Python's own sort of pairs, which knows nothing of NumPy's."""
    values = np.empty((x.shape[1], limit), x.dtype)
    places = np.empty((x.shape[1], limit), np.int64)
    for row, own in enumerate(x.T.tolist()):

        def rank(place: int, own: list[Any] = own) -> Any:
            nan = own[place] != own[place]
            key = (nan, 0 if nan else own[place])
            return (not key[0], -key[1]) if descending else key

        order = sorted(range(len(own)), key=rank)[:limit]
        places[row] = order
        values[row] = [own[place] for place in order]
    return values, places


def check(made: SortTemplate, config: Any, length: int, target: str, seed: int = 0) -> None:
    operation = made.operation
    dtype, bindings = operation.key.dtype, {"s27": length}
    rows = int(made.lowered.buffers["x"].size[1])
    x = keys(np.random.default_rng(seed), dtype, length, rows)
    memory = {"x": to_device(x, dtype).reshape(-1)}
    found = run(made.generate(config), memory, bindings, target)
    limit = evaluate(operation.place.size, bindings)
    values, places = expected(
        -x if isinstance(operation.key, Call) else x, limit, descending=operation.descending
    )
    if "values" in found:
        got = from_device(found["values"], dtype).reshape(rows, limit)
        np.testing.assert_array_equal(got, values, str(config))
    if "places" in found:
        np.testing.assert_array_equal(found["places"].reshape(rows, limit), places, str(config))


@pytest.mark.full
@pytest.mark.parametrize("descending", [False, True], ids=["up", "down"])
def test_rows_of_any_length_that_is_known_only_at_run_time(descending: bool) -> None:
    """One kernel for all of them: in one tile, in several, and merged."""
    made = sort(F32, 3, S, descending=descending)
    config = made.default_config()
    assert made.reject(config) is None
    for length in (0, 1, 2, 3, 63, 64, 65, 1000, 5000):
        check(made, config, length, "cpu", seed=length)
    check(made, config, 5000, "cpu-gfx1100")


@pytest.mark.long(but=3)
@pytest.mark.full
@pytest.mark.parametrize(
    "dtype", [F16, BF16, F64, DType.I64, DType.I16, DType.U8, DType.BOOL], ids=lambda d: d.label
)
def test_every_kind_of_element(dtype: DType) -> None:
    for descending in (False, True):
        made = sort(dtype, 5, 65, descending=descending)
        check(made, made.default_config(), 65, "cpu")
    made = sort(dtype, 2, 2500, descending=True)
    check(made, {"lanes": 256, "items": 4}, 2500, "cpu")


@pytest.mark.full
@pytest.mark.parametrize("target", WAVES)
def test_short_rows_share_a_block(target: str) -> None:
    for length, rows in ((2, 300), (7, 70), (30, 40), (64, 9)):
        made = sort(F32, rows, length)
        config = made.default_config()
        assert int(config["lanes"]) * int(config["items"]) < 2 * max(length, 8)
        check(made, config, length, target)


@pytest.mark.long(but=3)
@pytest.mark.full(but=4)
@pytest.mark.parametrize("length", [1, 5, 17, 100])
def test_every_configuration_that_serves(length: int) -> None:
    made = sort(F16, 3, length, limit=min(length, 4))
    serving = [config for config in made.configs() if made.reject(config) is None]
    assert serving
    for config in serving[:: max(1, len(serving) // 4)]:
        check(made, config, length, "cpu")


@pytest.mark.full(but=4)
@pytest.mark.parametrize("limit", [1, 50, 1500, 5000])
def test_the_first_of_long_rows(limit: int) -> None:
    """A few of them without a workspace, many with one."""
    made = sort(F32, 2, 5000, descending=True, limit=limit)
    config = made.default_config()
    assert (made.render(config).workspace_bytes == 0) == (limit <= 2048)
    check(made, config, 5000, "cpu")


def test_what_is_not_wanted_is_not_written() -> None:
    for stores in (("values",), ("places",)):
        made = sort(F32, 4, 20, stores=stores, negated=True)
        caller = made.generate(made.default_config())
        assert [arg.is_output for arg in caller.kernel.args] == [False, True]
        check(made, made.default_config(), 20, "cpu")


def test_more_rows_than_blocks_with_a_workspace() -> None:
    made = sort(DType.I32, 530, 1030)
    config = {"lanes": 256, "items": 4}
    assert int(made.render(config).workspace_bytes) == 512 * 1032 * 2 * 8
    check(made, config, 1030, "cpu")


@pytest.mark.full
def test_the_same_text_builds_for_nvidia() -> None:
    (toolchain,) = (one for one in cuda_compilers(Search(cache=KEPT)) if one.name == NAME)
    assert isinstance(toolchain, CudaToolchain)
    for made in (sort(F16, 3, S, descending=True), sort(F32, 3, 9000, limit=8)):
        kernel = made.generate(made.default_config()).kernel
        built = build(kernel.source, kernel.name, targets.find("sm_90"), toolchain, KEPT)
        assert isinstance(built, Build), built


@pytest.mark.full
@pytest.mark.parametrize("target", ["gfx90a", "gfx1030", "gfx1201"])
def test_one_text_builds_for_every_target(target: str) -> None:
    for made in (sort(BF16, 3, S), sort(F64, 3, 60), sort(F32, 3, 9000, limit=8)):
        caller = made.generate(made.default_config())
        (resources,) = compiled(caller, target).resources.values()
        assert resources.get("scratch_bytes", 0) == 0
        assert resources["lds_bytes"] == caller.kernel.launches[0].lds_bytes
