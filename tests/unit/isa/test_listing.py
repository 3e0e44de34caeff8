"""A listing is read whole: every instruction, where it comes from, how control flows."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from scheduler.build.rocm.metadata import parse_kernels
from scheduler.isa.instructions import Kind
from scheduler.isa.listing import Function, LineKind, Listing, count_kinds
from scheduler.isa.rocm.instruction_set.table import kind_of
from scheduler.isa.rocm.reader import GPU
from tests.unit.build.sources import ADD, GEMM
from tests.unit.isa.conftest import GPUS, ListingOf


def gemm(listing: Listing) -> Function:
    (function,) = listing.functions
    assert "gemm" in function.name
    return function


@pytest.mark.parametrize("name", GPUS)
def test_every_instruction_of_a_kernel_is_read_and_classified(
    name: str, listing_of: ListingOf
) -> None:
    text = listing_of(GEMM, "product", name)
    function = gemm(GPU.parse(text))
    lines = text.splitlines()
    code = lines[function.first_line : function.last_line]
    expected = [line.split()[0] for line in code if re.match(r"\t[a-z]\w+( |$)", line)]
    assert [each.mnemonic for each in function.instructions] == expected
    assert all(lines[each.line - 1].split()[0] == each.mnemonic for each in function.instructions)
    found = count_kinds(function.instructions)
    assert Kind.OTHER not in found
    assert sum(found.values()) == len(expected)
    matrix = sum(each.startswith(("v_mfma", "v_wmma")) for each in expected)
    assert found.get(Kind.MATRIX, 0) == matrix
    assert (matrix > 0) == (name != "gfx1030")
    assert found[Kind.LDS] == sum(each.startswith("ds_") for each in expected)
    assert function.instructions[-1].mnemonic == "s_endpgm"


@pytest.mark.parametrize("name", GPUS)
def test_every_instruction_has_its_line_of_the_source_or_is_the_compilers_own(
    name: str, listing_of: ListingOf
) -> None:
    source = GEMM.splitlines()
    function = gemm(GPU.parse(listing_of(GEMM, "product", name)))
    by_line: dict[int, set[str]] = {}
    for each in function.instructions:
        by_line.setdefault(each.source_line, set()).add(each.mnemonic)
        assert 0 <= each.source_line <= len(source)
    own = sum(each.source_line == 0 for each in function.instructions)
    assert own < len(function.instructions) / 2
    # Inlined from headers, they belong to the line that calls.
    multiply = next(n for n, line in enumerate(source, 1) if "tile.multiply" in line)
    barrier = [n for n, line in enumerate(source, 1) if "__syncthreads" in line]
    work = {"gfx1030": "fma"}.get(name, "mfma" if name.startswith("gfx9") else "wmma")
    assert any(work in each for each in by_line[multiply])
    assert any(each.startswith("s_barrier") for line in barrier for each in by_line[line])
    lds_writes = {
        n for n, names in by_line.items() if any("ds_write" in x or "ds_store" in x for x in names)
    }
    assert all("= T(0)" in source[n - 1] or "? " in source[n - 1] for n in lds_writes - {0})


@pytest.mark.parametrize("name", GPUS)
def test_the_blocks_hold_every_instruction_once_and_branches_lead_to_blocks(
    name: str, listing_of: ListingOf
) -> None:
    function = gemm(GPU.parse(listing_of(GEMM, "product", name)))
    assert function.blocks[0].first == 0
    assert all(one.end == other.first for one, other in pairwise(function.blocks))
    assert function.blocks[-1].end == len(function.instructions)
    starts = {block.first for block in function.blocks}
    for block in function.blocks:
        inside = function.instructions[block.first : block.end]
        assert all(each.kind is not Kind.BRANCH for each in inside[:-1])
        last = inside[-1]
        if last.target:
            goal = function.labels[last.target]
            assert goal in starts
            assert function.blocks[block.successors[-1]].first == goal
        assert len(block.successors) <= 2
        assert bool(block.successors) == (last.mnemonic != "s_endpgm")


@pytest.mark.parametrize("name", GPUS)
def test_loops_agree_with_the_compilers_own_comments(name: str, listing_of: ListingOf) -> None:
    text = listing_of(GEMM, "product", name)
    function = gemm(GPU.parse(text))
    # ".LBB0_3:  ; =>This Loop Header: Depth=1", continued on lines of their own
    commented = {
        f".L{label}": int(depth)
        for label, depth in re.findall(
            r"^\.L(\w+):[^\n]*(?:\n +;[^\n]*)*?=>\s*This (?:Inner )?Loop Header: Depth=(\d+)",
            text,
            re.MULTILINE,
        )
    }
    own = {function.blocks[loop.header].label: loop.depth for loop in function.loops}
    assert commented
    assert len(own) >= 2
    assert {label: depth for label, depth in own.items() if label in commented} == commented
    depths = function.depths
    assert len(depths) == len(function.instructions)
    assert max(depths) == max(own.values())


@pytest.mark.parametrize("name", ["gfx942", "gfx1100"])
def test_the_loop_where_the_time_goes_is_the_one_with_the_matrix_instructions(
    name: str, listing_of: ListingOf
) -> None:
    function = gemm(GPU.parse(listing_of(GEMM, "product", name)))
    loop = function.inner_loop()
    assert loop is not None
    found = count_kinds(function.loop_instructions(loop))
    assert found[Kind.MATRIX] == count_kinds(function.instructions)[Kind.MATRIX]
    assert found[Kind.LDS] > 0


def test_lines_have_kinds(listing_of: ListingOf) -> None:
    text = listing_of(ADD, "add_one", "gfx942")
    listing = GPU.parse(text)
    lines = text.splitlines()
    assert len(listing.kinds) == len(lines)
    by_kind = {
        kind: [line for line, each in zip(lines, listing.kinds, strict=True) if each is kind]
        for kind in LineKind
    }
    (function,) = listing.functions
    assert len(by_kind[LineKind.INSTRUCTION]) == len(function.instructions)
    assert all(line.strip().startswith((";", "#")) for line in by_kind[LineKind.COMMENT])
    assert all(":" in line for line in by_kind[LineKind.LABEL])
    assert not any(line.strip() for line in by_kind[LineKind.BLANK])
    assert function.name in parse_kernels(text)
    assert listing.function(function.name) == function
    assert listing.function("another") is None


def test_a_listing_for_the_host_is_read_too(listing_of: ListingOf) -> None:
    text = listing_of(ADD, "add_one", "cpu")
    function = GPU.parse(text).function("add_one")
    assert function is not None
    assert not parse_kernels(text)
    assert {each.source_line for each in function.instructions} & set(range(7, 13))
    assert function.blocks
    assert any(each.mnemonic.startswith("ret") for each in function.instructions)


@pytest.mark.parametrize("text", ["", "\n", "garbage", ".loc x", "\t.file\n\t.loc 1\nf:\n\tx"])
def test_nonsense_is_read_as_nothing(text: str) -> None:
    assert GPU.parse(text).functions == ()


def test_a_line_inlined_through_two_headers_is_that_of_the_innermost_call_in_the_source() -> None:
    text = (
        '\t.type f,@function\nf:\n\t.file 0 "." "source.hip"\n\t.file 1 "include" "a.h"\n'
        "\t.loc 1 9 2 ; include/a.h:9:2 @[ include/a.h:5:1"
        " @[ source.hip:7:3 @[ source.hip:20:1 ] ] ]\n"
        "\tv_nop\n\t.loc 0 0 0\n\tv_nop\n\t.loc 0 8 4 ; source.hip:8:4 @[ source.hip:20:1 ]\n"
        "\ts_endpgm\n.Lfunc_end0:\n"
    )
    (function,) = GPU.parse(text).functions
    assert [each.source_line for each in function.instructions] == [7, 0, 8]
    assert [each.callers for each in function.instructions] == [(20,), (), (20,)]


def test_classes() -> None:
    expected = {
        "v_mfma_f32_16x16x16_f16": Kind.MATRIX,
        "v_wmma_f32_16x16x16_f16": Kind.MATRIX,
        "v_add_f32_e32": Kind.VECTOR,
        "v_readfirstlane_b32": Kind.VECTOR,
        "s_load_dwordx4": Kind.SCALAR,
        "s_waitcnt": Kind.WAIT,
        "s_wait_loadcnt": Kind.WAIT,
        "s_barrier": Kind.WAIT,
        "ds_read_b128": Kind.LDS,
        "global_load_dwordx4": Kind.GLOBAL,
        "buffer_store_dword": Kind.GLOBAL,
        "scratch_store_dword": Kind.SCRATCH,
        "s_cbranch_vccnz": Kind.BRANCH,
        "s_endpgm": Kind.BRANCH,
        "movaps": Kind.OTHER,
        "jne": Kind.BRANCH,
        "callq": Kind.BRANCH,
    }
    assert {name: kind_of(name) for name in expected} == expected


@pytest.mark.parametrize("name", ["ds_read_" + "tr" * 100_000 + ".", "v_dot" + "2_" * 100_000])
def test_a_name_that_no_instruction_has_is_not_searched_for(name: str) -> None:
    """Patterns of the table take quadratic time on such a name: these would take hours."""
    function = GPU.parse(f"kernel:\n\t{name} v0, v1\n").function("kernel")
    assert function is None or function.instructions[0].mnemonic == name
    assert kind_of(name) in (Kind.LDS, Kind.VECTOR)
