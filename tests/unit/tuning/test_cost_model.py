"""The roofline and the model: figures that can be worked out by hand, and their order."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler import pipeline, samples
from scheduler.build.model import Build, Toolchain
from scheduler.build.rocm.metadata import Resources
from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.ir.dtypes import DType
from scheduler.ir.index.functions import FloorDiv, Mod, evaluate, symbol
from scheduler.ir.operations import GroupKind
from scheduler.ir.values import Call, Const, IndexValue, Load
from scheduler.targets import boards, find
from scheduler.tuning.cost_model import expected_ns
from scheduler.tuning.footprint import Guard, distinct_elements, guarded_elements
from scheduler.tuning.roofline import limit
from scheduler.tuning.work import work_of
from tests.unit.matrix.contractions import convolution, matmul

MI300X = boards("gfx942")[0]
X, Y, Z = (symbol(name) for name in "xyz")


def test_a_products_bytes_and_flops_are_counted_once() -> None:
    schedule = matmul(128, 64, 32, DType.F16)
    work = work_of(schedule.nodes[0], schedule.lowered, {})
    assert work.read_bytes == 2 * (128 * 32 + 32 * 64)
    assert work.written_bytes == 2 * 128 * 64
    assert work.matrix_flops == 2 * 128 * 64 * 32
    assert work.matrix_dtype == "f16"


def test_one_tensor_as_both_operands_is_read_once() -> None:
    schedule = matmul(64, 64, 64, DType.F16, same=True)
    assert work_of(schedule.nodes[0], schedule.lowered, {}).read_bytes == 2 * 64 * 64


def test_a_large_product_is_bound_by_its_products_and_a_thin_one_by_its_bytes() -> None:
    large, thin = matmul(8192, 8192, 8192, DType.F16), matmul(1, 8192, 8192, DType.F16)
    peak = MI300X.peak_flops("f16")
    assert peak is not None
    found = limit(work_of(large.nodes[0], large.lowered, {}), MI300X)
    assert found.bound == "products"
    assert found.least_ns == pytest.approx(1e9 * 2 * 8192**3 / peak)
    found = limit(work_of(thin.nodes[0], thin.lowered, {}), MI300X)
    assert found.bound == "memory"
    moved = 2 * (8192 + 8192 * 8192 + 8192)
    assert found.least_ns == pytest.approx(1e9 * moved / MI300X.memory_bytes_per_s)


def test_what_fits_in_the_caches_may_be_there_already() -> None:
    schedule = matmul(1, 1024, 1024, DType.F16)
    work = work_of(schedule.nodes[0], schedule.lowered, {})
    assert limit(work, MI300X, cached=True).least_ns < limit(work, MI300X).least_ns


def test_without_a_board_there_is_no_expectation() -> None:
    schedule = matmul(64, 64, 64, DType.F16)
    node, cpu = schedule.nodes[0], find("cpu")
    caller = ROCmCPPScheduling(schedule, (cpu,)).default(node)
    work = work_of(node, schedule.lowered, {})
    assert expected_ns(caller, work, cpu, {}, None) is None


def test_no_candidate_is_expected_below_the_bound_and_they_differ() -> None:
    target = find("gfx942")
    schedule = matmul(512, 512, 512, DType.F16)
    node = schedule.nodes[0]
    work = work_of(node, schedule.lowered, {})
    floor = limit(work, MI300X).least_ns
    callers = ROCmCPPScheduling(schedule, (target,)).candidates(node).callers
    found = [expected_ns(caller, work, target, {}, MI300X) for caller in callers]
    assert all(each is not None and each > floor for each in found)
    assert len(set(found)) > len(found) / 8


def test_a_small_tile_is_expected_to_lose_on_a_large_product_and_to_win_on_a_small_one() -> None:
    target = find("gfx942")

    def best_tile(size: int) -> int:
        schedule = matmul(size, size, 4096, DType.F16)
        node = schedule.nodes[0]
        work = work_of(node, schedule.lowered, {})
        callers = ROCmCPPScheduling(schedule, (target,)).candidates(node).callers
        plain = [c for c in callers if c.kernel.config["SPLIT_K"] == 1]
        best = min(plain, key=lambda c: expected_ns(c, work, target, {}, MI300X) or 0.0)
        return int(best.kernel.config["BLOCK_M"]) * int(best.kernel.config["BLOCK_N"])

    assert best_tile(256) < best_tile(8192)


def test_the_size_of_the_instruction_alone_promises_nothing() -> None:
    """Equal rates, equal bytes through LDS: which is faster is left to the measurement."""
    name, target = "MATRIX_INSTR_NONKDIM", find("gfx942")
    schedule = matmul(4096, 4096, 4096, DType.F16)
    node = schedule.nodes[0]
    work = work_of(node, schedule.lowered, {})
    callers = ROCmCPPScheduling(schedule, (target,)).candidates(node).callers
    expected: dict[tuple[tuple[str, object], ...], list[float | None]] = {}
    for caller in callers:
        kind = tuple((key, value) for key, value in caller.kernel.config.items() if key != name)
        expected.setdefault(kind, []).append(expected_ns(caller, work, target, {}, MI300X))
    pairs = [found for found in expected.values() if len(found) == 2]
    assert len(pairs) > 50
    assert all(first == second for first, second in pairs)


def test_a_padded_convolution_reads_its_whole_input_in_its_own_type() -> None:
    """resnet's first one: 2 images of 3 x 224 x 224, 64 filters of 7 x 7, in steps of 2."""
    plan = pipeline.schedule(pipeline.lower(pipeline.load(samples.path("resnet_small"))))
    node = plan.nodes[0]
    assert node.kind is GroupKind.CONVOLUTION
    work = work_of(node, plan.lowered, {})
    images, filters, normalisation = 2 * 3 * 224 * 224, 64 * 3 * 7 * 7, 4 * 64
    assert work.read_bytes == 4 * (images + filters + normalisation)
    assert work.written_bytes == 4 * 2 * 64 * 112 * 112
    assert work.matrix_flops == 2 * (2 * 64 * 112 * 112) * (3 * 7 * 7)
    assert work.matrix_dtype == "f32"
    assert limit(work, MI300X).products_ns > 0


@pytest.mark.parametrize(
    ("stride", "size", "read"),
    # Windows of 3 in steps of 4 begin at -1, 3, 7 and 11: three of them read 3 rows, one reads 2.
    [(1, 16, 16), (2, 16, 16), (4, 16, 11), (4, 15, 11)],
)
def test_what_a_window_leaves_out_is_not_counted(stride: int, size: int, read: int) -> None:
    image = [1, 8, size, size]
    schedule = convolution(image, [8, 8, 3, 3], DType.F16, padding=1, stride=stride)
    node = schedule.nodes[0]
    work = work_of(node, schedule.lowered, {})
    assert work.read_bytes == 2 * (8 * read * read + 8 * 8 * 3 * 3)


@settings(max_examples=100, deadline=None)
@given(
    index=st.sampled_from([X, 2 * X + Y - 1, X - 2, FloorDiv(X, 2) + Y, Mod(X + Y, 3)]),
    bound=st.integers(-1, 6),
    sizes=st.tuples(*[st.integers(1, 5)] * 3),
    holds=st.booleans(),
)
def test_reads_behind_a_condition_count_where_it_holds(
    index: sympy.Expr, bound: int, sizes: tuple[int, int, int], holds: bool
) -> None:
    """Rows at ``index`` that lie below ``bound``, or not; columns at 2 * z where z is not 1."""
    rows = {
        evaluate(index, {"x": x, "y": y, "z": 0}) for x in range(sizes[0]) for y in range(sizes[1])
    }
    columns = {2 * z for z in range(sizes[2]) if z != 1}
    expected = sum((row < bound) is holds for row in rows) * len(columns)
    below = Call("lt", (IndexValue(index, DType.I64), Const(bound, DType.I64)), DType.BOOL)
    first = Call("eq", (IndexValue(Z, DType.I64), Const(1, DType.I64)), DType.BOOL)
    lowered = matmul(2, 2, 2, DType.F16).lowered
    counted = guarded_elements(
        Load("b", (index, 2 * Z), DType.F32),
        (Guard(below, holds), Guard(first, False)),
        dict(zip((X, Y, Z), sizes, strict=True)),
        lowered,
        {},
    )
    assert counted == expected


def test_a_condition_on_data_proves_no_read() -> None:
    condition = Load("c", (X,), DType.BOOL)
    lowered = matmul(2, 2, 2, DType.F16).lowered
    load = Load("b", (X,), DType.F32)
    assert guarded_elements(load, (Guard(condition, True),), {X: 4}, lowered, {}) == 0


INDICES = [
    X,
    Y,
    X + Y,
    4 * X + Y,
    2 * X + 3 * Y,
    X + 7,
    6 * Z + 2 * X,
    FloorDiv(X, 2),
    Mod(X + Y, 3),
]


@settings(max_examples=150, deadline=None)
@given(
    index=st.lists(st.sampled_from(INDICES), min_size=1, max_size=3),
    sizes=st.tuples(*[st.integers(1, 5)] * 3),
)
def test_no_more_elements_are_counted_than_are_read(
    index: list[sympy.Expr], sizes: tuple[int, int, int]
) -> None:
    places = {
        tuple(evaluate(part, {"x": x, "y": y, "z": z}) for part in index)
        for x in range(sizes[0])
        for y in range(sizes[1])
        for z in range(sizes[2])
    }
    load = Load("b", tuple(index), DType.F32)
    counted = distinct_elements(load, dict(zip((X, Y, Z), sizes, strict=True)), {})
    assert 1 <= counted <= len(places)
    if index == [X] or (index == [4 * X + Y] and sizes[1] <= 4):
        assert counted == len(places)


def test_spills_make_a_build_look_slower() -> None:
    target = find("gfx942")
    schedule = matmul(512, 512, 512, DType.F16)
    node = schedule.nodes[0]
    caller = ROCmCPPScheduling(schedule, (target,)).default(node)
    work = work_of(node, schedule.lowered, {})
    lean = Resources(64, 0, 32, 17408, 0, 0, 0, 4096, 64, 8, "waves")
    function = caller.kernel.launches[0].function

    def with_resources(one: Resources) -> float:
        chain = Toolchain("bundled", "1", "", (), ())
        built = Build("gfx942", chain, (), "", "", 0.1, "", Path(), {function: asdict(one)}, False)
        found = expected_ns(caller, work, target, {}, MI300X, built)
        assert found is not None
        return found

    few = with_resources(replace(lean, occupancy_waves_per_simd=1))
    spilling = with_resources(replace(lean, vgpr_spills=40))
    assert with_resources(lean) < few
    assert with_resources(lean) < spilling
