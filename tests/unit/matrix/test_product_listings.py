"""What the product's code objects do, by their own instructions: banks, widths, size."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest

from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.model import Build, Toolchain
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.cycles.kernel_model import model_kernel
from scheduler.cycles.launch_inputs import prepare_launches
from scheduler.cycles.report import LaunchReport
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.isa.rocm.emulator.program import program_of
from scheduler.targets import boards, find
from tests.unit.codegen.loopnest import run
from tests.unit.matrix.contractions import matmul, shared_input
from tests.unit.matrix.running import Runner, random_values, tolerance

KEYS = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "THREADS", "STAGES")
LARGE = (256, 256, 32, 512, 2)
SPREAD = (128, 128, 64, 256, 1)  # what is read and loaded stands among products
WEIGHTS = matmul(256, 256, 128, DType.F16, b_transposed=True)
ROW_MAJOR = matmul(256, 256, 128, DType.F16)
BIASED = matmul(256, 256, 64, DType.F16, b_transposed=True, bias=[256])
COLUMN_MAJOR = matmul(256, 256, 128, DType.F16, a_stride=(1, 256))


def configured(schedule: Schedule, target: str, *config: int) -> TemplateCaller:
    template = ROCmCPPScheduling(schedule, (find(target),)).template(schedule.nodes[0])
    chosen = dict(zip(KEYS, config, strict=True))
    return template.generate({**template.default_config(), "SPLIT_K": 1, **chosen})


def listing(
    schedule: Schedule, target: str, toolchain: Toolchain, cache: CodeCache, *config: int
) -> tuple[str, LaunchReport]:
    """The listing, and what its only launch does."""
    caller = configured(schedule, target, *config)
    made = build(caller.kernel.source, caller.name, find(target), toolchain, cache)
    assert isinstance(made, Build), f"{made.reason}\n{made.detail}"
    assert all(one["vgpr_spills"] == 0 for one in made.resources.values())
    text = (made.directory / "kernel.s").read_text()
    request = caller.benchmark_request(target, {})
    launches, memory = prepare_launches(caller.kernel.launches, request, workspace_bytes=0)
    report = model_kernel(
        *(text, find(target), boards(target)[0], launches, memory), kernel=caller.name, sizes={}
    )
    return text, report.launches[0]


CASES = {
    "weights, gfx942": (WEIGHTS, 32, "gfx942"),
    "weights, gfx1100": (WEIGHTS, 32, "gfx1100"),
    "column-major, gfx942": (COLUMN_MAJOR, 64, "gfx942"),
    "row-major, gfx942": (ROW_MAJOR, 32, "gfx942"),
    "row-major, gfx950": (ROW_MAJOR, 64, "gfx950"),
}


@pytest.mark.full(but=["weights, gfx942"])
@pytest.mark.parametrize(("schedule", "block_k", "target"), CASES.values(), ids=CASES)
def test_no_access_to_lds_meets_a_bank_twice(
    schedule: Schedule, block_k: int, target: str, toolchain: Toolchain, cache: CodeCache
) -> None:
    """Neither what is written along k, nor what is turned on its way, nor what is read."""
    config = (128, 128, block_k, 256, 1)
    _, launch = listing(schedule, target, toolchain, cache, *config)
    found = [one.conflict for one in launch.instructions if one.conflict is not None]
    assert len(found) > 8
    assert max(found) == 1


@pytest.mark.full
@pytest.mark.parametrize(
    ("target", "schedule", "config"),
    [
        ("gfx942", BIASED, (128, 128, 32, 256, 2)),
        ("gfx1100", BIASED, (128, 128, 32, 256, 2)),
        ("gfx942", ROW_MAJOR, SPREAD),
    ],
    ids=["biased, gfx942", "biased, gfx1100", "nothing fused, gfx942"],
)
def test_neighbours_are_stored_sixteen_bytes_at_once(
    target: str,
    schedule: Schedule,
    config: tuple[int, ...],
    toolchain: Toolchain,
    cache: CodeCache,
) -> None:
    text, launch = listing(schedule, target, toolchain, cache, *config)
    instructions = program_of(text, launch.function, target).function.instructions
    stored = {
        instructions[one.index].mnemonic
        for one in launch.instructions
        if one.executed and instructions[one.index].mnemonic.startswith("global_store")
    }
    assert stored == {"global_store_dwordx4" if target == "gfx942" else "global_store_b128"}


@pytest.mark.parametrize("schedule", [WEIGHTS, ROW_MAJOR], ids=["weights", "row-major"])
def test_a_product_stands_between_two_loads_of_the_loop(
    schedule: Schedule, toolchain: Toolchain, cache: CodeCache
) -> None:
    """All loads of a tile at once fill the queue of vector memory, and the products wait."""
    text, launch = listing(schedule, "gfx942", toolchain, cache, *SPREAD)
    function = program_of(text, launch.function, "gfx942").function
    body = max(
        (
            [
                one.mnemonic
                for number in loop.blocks
                for one in function.instructions[
                    function.blocks[number].first : function.blocks[number].end
                ]
            ]
            for loop in function.loops
        ),
        key=lambda names: sum(name.startswith("v_mfma") for name in names),
    )
    kinds = [name[:6] for name in body if name.startswith(("v_mfma", "buffer_load"))]
    assert kinds.count("buffer") == 8
    assert all(a != "buffer" or b != "buffer" for a, b in pairwise(kinds))


@pytest.mark.full(but=["weights"])
@pytest.mark.parametrize("b_transposed", [True, False], ids=["weights", "row-major"])
def test_products_among_loads_are_right_by_their_own_instructions(
    rng: np.random.Generator, b_transposed: bool
) -> None:
    """With edges along m and n, and a tail along k."""
    m, n, k = 136, 144, 200
    schedule = matmul(m, n, k, DType.F16, bias=[n], b_transposed=b_transposed)
    x, w, b = (random_values(rng, size, DType.F16) for size in ((m, k), (k, n), (n,)))
    given = {"arg0": x, "arg1": w.T if b_transposed else w, "bias": b}
    memory = {name: np.ascontiguousarray(each, np.float16).ravel() for name, each in given.items()}
    caller = configured(schedule, "gfx942", *SPREAD)
    out = run(caller, memory, target="isa:gfx942")["buf0"].reshape(m, n)
    assert np.abs(out - (x @ w + b)).max() <= tolerance(k, DType.F16, magnitude=4.0)


def test_a_large_epilogue_leaves_room_in_the_instruction_cache(
    toolchain: Toolchain, cache: CodeCache
) -> None:
    """A lane has 128 results, and the code of what is stored is there once for a row of them."""
    schedule = matmul(4096, 4096, 4096, DType.F16, b_transposed=True, bias=[4096], relu=True)
    caller = configured(schedule, "gfx942", *LARGE)
    made = build(caller.kernel.source, caller.name, find("gfx942"), toolchain, cache)
    assert isinstance(made, Build)
    lines = (made.directory / "kernel.s").read_text().splitlines()
    instructions = sum(bool(re.match(r"\s+[sv]_|\s+(ds|global|buffer)_", line)) for line in lines)
    assert instructions * 8 < 32 * 1024


@pytest.mark.full(but=["cpu-(256, 256, 32, 512, 2)-264-272-200"])
@pytest.mark.parametrize(
    ("target", "config", "m", "n", "k"),
    [
        ("cpu", LARGE, 264, 272, 200),
        ("cpu", (256, 256, 64, 512, 1), 70, 259, 96),
        ("cpu-gfx950", (256, 256, 64, 512, 2), 264, 272, 200),
    ],
    ids=str,
)
def test_the_largest_tiles_are_right(
    cache: CodeCache,
    toolchain: Toolchain,
    rng: np.random.Generator,
    target: str,
    config: tuple[int, ...],
    m: int,
    n: int,
    k: int,
) -> None:
    """With edges, a tail along k, and rows that do not start at multiples of 16 bytes."""
    x, w, b = (random_values(rng, size, DType.F16) for size in ((m, k), (n, k), (n,)))
    schedule = matmul(m, n, k, DType.F16, bias=[n], b_transposed=True)
    out = Runner(cache, toolchain, target)(
        configured(schedule, target, *config), {"arg0": x, "arg1": w, "bias": b}
    )
    assert np.abs(out["buf0"] - (x @ w.T + b)).max() <= tolerance(k, DType.F16, magnitude=4.0)


@pytest.mark.full(but=["(40, 16, 96)"])
@pytest.mark.parametrize("columns", [(40, 16, 96), (41, 16, 95)], ids=str)
def test_parts_are_added_for_runs_and_for_single_results(
    runner: Runner, rng: np.random.Generator, columns: tuple[int, ...]
) -> None:
    schedule = shared_input(50, columns, 1040, DType.F16)
    template = ROCmCPPScheduling(schedule, (find("cpu"),)).template(schedule.nodes[0])
    caller = template.generate({**template.default_config(), "BLOCK_K": 32, "SPLIT_K": 16})
    x = random_values(rng, (50, 1040), DType.F16)
    weights = [random_values(rng, (n, 1040), DType.F16) for n in columns]
    biases = [random_values(rng, (n,), DType.F16) for n in columns]
    inputs = {"x": x}
    for i in range(3):
        inputs |= {f"w{i}": weights[i], f"bias{i}": biases[i]}
    out = runner(caller, inputs)
    for i in range(3):
        error = np.abs(out[f"y{i}"] - (x @ weights[i].T + biases[i])).max()
        assert error <= tolerance(1040, DType.F16, magnitude=4.0)


@pytest.mark.parametrize("target", ["cpu", "cpu-gfx950", "cpu-gfx1100"])
def test_every_block_has_a_tile_of_its_own(
    target: str, toolchain: Toolchain, cache: CodeCache
) -> None:
    """Whatever the number of blocks, dies and rows of tiles."""
    source = """
#include <hip/hip_runtime.h>
#include <kiln/block_order.h>
constexpr bool permutes(int m, int n) {
  bool seen[4096] = {};
  for (int block = 0; block < m * n; ++block) {
    const auto tile = kiln::tile_place<8>(kiln::block_place(block, m * n), m, n);
    if (tile.m < 0 || tile.m >= m || tile.n < 0 || tile.n >= n) return false;
    bool& here = seen[tile.m * n + tile.n];
    if (here) return false;
    here = true;
  }
  return true;
}
constexpr bool all() {
  for (int m = 1; m < 20; m += 3)
    for (int n = 1; n < 12; n += 2)
      if (!permutes(m, n)) return false;
  return true;
}
static_assert(all());
static_assert(permutes(33, 31));
extern "C" PT_EXPORT int permuted() { return 0; }
"""
    made = build(source, "permuted", find(target), toolchain, cache)
    assert isinstance(made, Build), made.detail
