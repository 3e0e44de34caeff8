"""Kernels whose conflicts and cache lines are known come out with exactly those: hand-made ones,
and those of others that were designed to have none."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler import targets
from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.flags import Flags
from scheduler.build.model import Build, Toolchain
from scheduler.cycles.coalescing import transfers
from scheduler.cycles.kernel_file import read_kernels
from scheduler.cycles.launches.parser import read_launch
from scheduler.errors import UserError
from scheduler.isa.rocm.objects import disassembler
from tests.benchmarks.cycles.h200 import SHARED, STRIDED
from tests.support.kernels_of_others import DATA, FOLDER, conflicts, kernels_of, launch_of, ran

NAMES = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"]


@pytest.fixture(scope="module", params=NAMES)
def listings(
    request: pytest.FixtureRequest, cache: CodeCache, toolchain: Toolchain
) -> tuple[str, dict[str, Path]]:
    """A target and the listings of both sources for it."""
    target = targets.find(request.param)
    found = {}
    for name in ("shared_memory", "global_memory"):
        source = (FOLDER / f"{name}.hip").read_text()
        result = build(source, "none", target, toolchain, cache, Flags())
        assert isinstance(result, Build), result.detail
        found[name] = result.directory / "kernel.s"
    return target.name, found


@pytest.mark.long(but=3)
@pytest.mark.full
def test_reads_of_shared_memory_have_the_conflicts_they_were_made_with(
    listings: tuple[str, dict[str, Path]],
) -> None:
    """Lane i reads so many words at a stride: one of 2^n needs 2^n times as long, 33 is free."""
    name, files = listings
    target = targets.find(name)
    arguments = '[{"buffer": "float32", "elements": 4096}, 2]'
    for kernel in SHARED:
        stride = int(kernel.rpartition("_s")[2])
        text = read_launch(
            f'{{"function": "{kernel}", "grid": [4], "block": [256], "arguments": {arguments}}}'
        )
        program, found = ran(read_kernels(files["shared_memory"], target), target, text)
        assert not found.unknown
        reads = {
            index: factor
            for index, factor in conflicts(name, program.function, found.traces).items()
            if program.function.instructions[index].mnemonic.startswith(("ds_read", "ds_load"))
        }
        assert reads
        assert set(reads.values()) == {stride if stride != 33 else 1}, kernel


@pytest.mark.full(but=["gfx90a"])
def test_strided_loads_use_as_much_of_a_line_as_their_stride_leaves(
    listings: tuple[str, dict[str, Path]],
) -> None:
    name, files = listings
    target = targets.find(name)
    buffer = '{"buffer": "float32", "elements": 67108864}'
    for kernel in STRIDED:
        stride = int(kernel.rpartition("_s")[2])
        text = read_launch(
            f'{{"function": "{kernel}", "grid": [262144], "block": [256],'
            f' "arguments": [{buffer}, {buffer}]}}'
        )
        program, found = ran(read_kernels(files["global_memory"], target), target, text, (7,))
        assert not found.unknown
        loads = [
            access
            for trace in found.traces
            for position, access in trace.accesses.items()
            if program.function.instructions[int(trace.executed[position])].mnemonic.startswith(
                "global_load"
            )
        ]
        assert len(loads) == len(found.traces)
        for one in transfers(loads, line=128, transfer=64, stores=False):
            assert one.bytes_used * stride == one.bytes_moved, kernel


def needs_objects() -> None:
    pytest.importorskip("elftools")
    try:
        disassembler.require()
    except UserError as missing:
        pytest.skip(str(missing))


@pytest.mark.full(but=["row-gfx942"])
@pytest.mark.parametrize("name", ["gfx942", "gfx950"])
@pytest.mark.parametrize("order", ["row", "column"])
def test_tritons_product_has_no_conflicts(name: str, order: str) -> None:
    needs_objects()
    file = DATA / f"gemm-{order}-major-b-{name}.hsaco"
    kernels, target = kernels_of(file)
    program, found = ran(kernels, target, launch_of(file.stem, a5=256), (0, 3))
    assert not found.unknown
    assert not found.findings
    assert not found.cut
    factors = conflicts(name, program.function, found.traces)
    assert len(factors) > 16
    assert {index: factor for index, factor in factors.items() if factor != 1} == {}


@pytest.mark.full
@pytest.mark.parametrize("name", ["gfx942", "gfx950"])
def test_aiters_attention_has_no_conflicts(name: str) -> None:
    needs_objects()
    file = DATA / f"aiter-attention-causal-{name}.co"
    kernels, target = kernels_of(file)
    text = launch_of(file.stem, seq_len=1024, kv_seq_len=1024)
    program, found = ran(kernels, target, text, (1,))
    assert not found.unknown
    assert not found.findings
    factors = conflicts(name, program.function, found.traces)
    assert len(factors) > 100
    assert {index: factor for index, factor in factors.items() if factor != 1} == {}
