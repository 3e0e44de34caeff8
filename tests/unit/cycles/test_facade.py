"""Whole kernels from the real compiler, modelled on boards."""

from __future__ import annotations

import json
import re

import pytest

from scheduler import targets
from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.model import Build, Toolchain
from scheduler.codegen.benchmark_request import BenchmarkRequest, ScalarArg, TensorArg
from scheduler.codegen.kernel import Launch as RenderedLaunch
from scheduler.cycles import report_json
from scheduler.cycles.kernel_file import KernelFile, model_file
from scheduler.cycles.kernel_model import TARGETS, Limits, model_kernel
from scheduler.cycles.launch_inputs import prepare_launches
from scheduler.cycles.launches.parser import read_launch
from scheduler.cycles.report import Pipe, Report
from scheduler.cycles.sentence import MEMORY_LIMIT
from scheduler.errors import UserError
from scheduler.ir.index.functions import FloorDiv, as_expr, symbol
from scheduler.isa.rocm.emulator.limits import Limits as EmulatorLimits
from tests.support import foreign_kernels as foreign
from tests.unit.build.sources import ADD, GEMM

N, M, K = symbol("n"), symbol("m"), symbol("k")


def launch_of(
    listing: str, name: str, grid: tuple[object, object], args: tuple[str, ...]
) -> RenderedLaunch:
    (function,) = re.findall(rf"^(\w*{name}\w*):", listing, re.MULTILINE)[:1]
    x, y = (as_expr(size) for size in grid)
    return RenderedLaunch(function, (x, y, as_expr(1)), (256, 1, 1), 0, args)


def tensor(name: str, dtype: str, *size: int, output: bool = False) -> TensorArg:
    strides = tuple(int(n) for n in ([size[1], 1] if len(size) == 2 else [1]))
    return TensorArg(name, f"buffer_{name}", dtype, size, strides, output)


def modelled(
    source: str, target: str, cache: CodeCache, toolchain: Toolchain, **sizes: int
) -> Report:
    """ADD over n elements, or GEMM of m, n and k, on the target's first board."""
    symbol_name = "add_one" if source == ADD else "product"
    found = build(source, symbol_name, targets.find(target), toolchain, cache)
    assert isinstance(found, Build)
    listing = (found.directory / "kernel.s").read_text()
    scalars = tuple(ScalarArg(name, "i32", value) for name, value in sizes.items())
    if source == ADD:
        launch = launch_of(listing, "add", (FloorDiv(N + 255, as_expr(256)), 1), ("x", "y", "n"))
        n = sizes["n"]
        tensors = (tensor("x", "f32", n), tensor("y", "f32", n, output=True))
    else:
        grid = (FloorDiv(N + 127, as_expr(128)), FloorDiv(M + 127, as_expr(128)))
        launch = launch_of(listing, "gemm", grid, ("a", "b", "d", "m", "n", "k"))
        m, n, k = sizes["m"], sizes["n"], sizes["k"]
        tensors = (
            tensor("a", "f16", m, k),
            tensor("b", "f16", n, k),
            tensor("d", "f32", m, n, output=True),
        )
    request = BenchmarkRequest(symbol_name, symbol_name, target, (*tensors, *scalars), sizes)
    launches, memory = prepare_launches([launch], request)
    board = targets.boards(target)[0]
    return model_kernel(
        *(listing, targets.find(target), board, launches, memory), kernel=symbol_name, sizes=sizes
    )


@pytest.mark.parametrize("target", TARGETS)
def test_adding_to_a_vector_is_bound_by_memory(
    target: str, cache: CodeCache, toolchain: Toolchain
) -> None:
    n = 1 << 25
    report = modelled(ADD, target, cache, toolchain, n=n)
    board = targets.boards(target)[0]
    (launch,) = report.launches
    peak = 8 * n / board.memory_bytes_per_s * 1e6
    assert 0.7 < peak / report.time_us.mid < 0.95
    assert report.time_us.low <= report.time_us.mid <= report.time_us.high
    assert launch.limits[0].name == MEMORY_LIMIT
    assert report.sentence.startswith("bound by memory")
    assert launch.sharing is not None
    assert launch.sharing.asked == launch.sharing.distinct == 8 * n
    assert not report.unknown
    for each in launch.instructions:
        if each.bytes_moved:
            assert each.bytes_used == each.bytes_moved
            assert each.lanes == (64 if target.startswith("gfx9") else 32)


def test_a_product_shares_its_tiles_in_l2(cache: CodeCache, toolchain: Toolchain) -> None:
    report = modelled(GEMM, "gfx942", cache, toolchain, m=2048, n=2048, k=256)
    (launch,) = report.launches
    assert launch.sharing is not None
    assert launch.sharing.caches == 8
    assert launch.sharing.fetched.mid < launch.sharing.asked / 2
    assert launch.sharing.distinct < launch.sharing.fetched.mid
    assert launch.pipes[Pipe.MATRIX] > 0
    # 136 halves a row: 16 bytes of padding behind 256.
    reads = [each for each in launch.instructions if each.conflict is not None]
    assert max(each.conflict or 0 for each in reads) == 2
    loop = max(launch.loops, key=lambda each: each.matrix_busy)
    assert 0 < loop.matrix_busy <= 1
    assert loop.cycles > 0


def test_fewer_units_are_never_faster(cache: CodeCache, toolchain: Toolchain) -> None:
    """An MI210 and a die of an MI250X are the same but for that."""
    found = build(ADD, "add_one", targets.find("gfx90a"), toolchain, cache)
    assert isinstance(found, Build)
    listing = (found.directory / "kernel.s").read_text()
    launch = launch_of(listing, "add", (FloorDiv(N + 255, as_expr(256)), 1), ("x", "y", "n"))
    n = 1 << 16
    args = (tensor("x", "f32", n), tensor("y", "f32", n, output=True), ScalarArg("n", "i32", n))
    times = []
    for board in sorted(targets.boards("gfx90a"), key=lambda each: each.compute_units):
        request = BenchmarkRequest("add", "add", "gfx90a", args, {"n": n})
        launches, memory = prepare_launches([launch], request)
        report = model_kernel(
            *(listing, targets.find("gfx90a"), board, launches, memory), kernel="add", sizes={}
        )
        times.append(report.time_us.mid)
    assert times == sorted(times, reverse=True)


def test_a_report_is_kept_as_json(cache: CodeCache, toolchain: Toolchain) -> None:
    report = modelled(ADD, "gfx942", cache, toolchain, n=4096)
    assert report_json.read(report_json.write(report)) == report
    json.loads(report_json.write(report))


def test_it_is_the_same_each_time(cache: CodeCache, toolchain: Toolchain) -> None:
    first, second = (modelled(ADD, "gfx942", cache, toolchain, n=70_000) for _ in range(2))
    assert first == second


def test_stores_at_the_end_of_a_kernel_are_bytes_of_their_buffer() -> None:
    """Each thread reads a word and writes four, in four instructions that the look at a round of
    blocks does not reach: what is different is all of it, and comes no faster than memory is."""
    stores = "".join(
        f"\tglobal_store_dword v3, v2, s[6:7] offset:{offset}\n" for offset in (0, 256, 512, 768)
    )
    wide = "\tv_lshl_add_u32 v3, s2, 8, v0\n\tv_lshlrev_b32_e32 v3, 2, v3\n"
    listing = foreign.LISTING.replace("\tglobal_store_dword v1, v2, s[6:7]\n", wide + stores)
    listing = listing.replace("\tv_add_f32_e32 v2", "\ts_nop 0\n" * 40 + "\tv_add_f32_e32 v2")
    blocks, board = 65536, targets.boards("gfx942")[0]
    launch = {
        "grid": [blocks],
        "block": [64],
        "arguments": [{"buffer": "float32", "elements": 64 * n * blocks} for n in (1, 4)],
    }
    kernels = KernelFile("wide.s", listing, ("double",))
    text = read_launch(json.dumps(launch))
    report = model_file(kernels, targets.find("gfx942"), board, text)
    (one,) = report.launches
    assert one.sharing is not None
    assert one.sharing.distinct == one.sharing.asked == 64 * 4 * 5 * blocks
    assert one.time_us.mid > one.sharing.distinct / board.memory_bytes_per_s * 1e6
    assert not one.cut

    few = Limits(emulator=EmulatorLimits(calls=20))
    (one,) = model_file(kernels, targets.find("gfx942"), board, text, few).launches
    assert one.cut


def test_a_launch_of_nothing_is_left_out(cache: CodeCache, toolchain: Toolchain) -> None:
    report = modelled(ADD, "gfx942", cache, toolchain, n=0)
    assert report.launches == ()
    assert report.time_us.mid == 0


def test_a_target_without_figures_is_named(cache: CodeCache, toolchain: Toolchain) -> None:
    with pytest.raises(UserError, match="gfx1030: not modelled; known: gfx90a, gfx942"):
        modelled(ADD, "gfx1030", cache, toolchain, n=4096)
