"""The difference of listings: nothing is lost, nothing equal is missed, names do not matter."""

from __future__ import annotations

import re
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.build.flags import Flags
from scheduler.isa.diff import Change, DiffRow, count_changes, diff
from scheduler.isa.listing import Function
from scheduler.isa.rocm.reader import GPU
from tests.unit.build.sources import GEMM
from tests.unit.isa.conftest import ListingOf


def function_of(lines: list[str]) -> Function:
    text = "\t.type f,@function\nf:\n" + "".join(f"\t{line}\n" for line in lines)
    functions = GPU.parse(text).functions
    return functions[0] if functions else Function("f", 1, 1, (), {})


def test_registers_labels_and_addresses_do_not_count(listing_of: ListingOf) -> None:
    text = listing_of(GEMM, "product", "gfx942")
    renamed = re.sub(r"\bv(\d+)\b", lambda match: f"v{255 - int(match[1])}", text)
    renamed = renamed.replace(".LBB0_", ".LBB7_").replace("offset:16", "offset:48")
    (one,), (other,) = GPU.parse(text).functions, GPU.parse(renamed).functions
    found = count_changes(diff(one, other, (GPU, GPU)))
    assert found[Change.SAME] + found[Change.RENAMED] == len(one.instructions)
    assert found[Change.RENAMED] > 50
    assert count_changes(diff(one, one, (GPU, GPU))) == {
        **dict.fromkeys(Change, 0),
        Change.SAME: len(one.instructions),
    }


def test_what_is_normalized() -> None:
    (one,) = function_of(["global_load_dwordx4 v[4:7], v1, s[2:3] offset:4096"]).instructions
    (two,) = function_of(["global_load_dwordx4 v[8:11], v0, s[6:7] offset:16"]).instructions
    (wide,) = function_of(["global_load_dwordx4 v[8:9], v0, s[6:7] offset:16"]).instructions
    (kind,) = function_of(["global_load_dwordx4 a[8:11], v0, s[6:7] offset:16"]).instructions
    assert GPU.normalized(one) == GPU.normalized(two)
    assert len({GPU.normalized(two), GPU.normalized(wide), GPU.normalized(kind)}) == 3
    (add,) = function_of(["v_add_f32_e32 v0, 1.0, v1"]).instructions
    (other,) = function_of(["v_add_f32_e32 v0, 2.0, v1"]).instructions
    assert GPU.normalized(add) != GPU.normalized(other)


def test_one_instruction_more_is_one_row(listing_of: ListingOf) -> None:
    (one,) = GPU.parse(listing_of(GEMM, "product", "gfx1100")).functions
    instructions = list(one.instructions)
    middle = len(instructions) // 2
    longer = Function("f", 1, 1, (*instructions[:middle], *function_of(["s_sleep 7"]).instructions,
                                  *instructions[middle:]), {})  # fmt: skip
    rows = diff(one, longer, (GPU, GPU))
    assert [row for row in rows if row.change is not Change.SAME] == [
        DiffRow(Change.ADDED, None, middle)
    ]


def test_flags_make_a_difference_that_is_shown(listing_of: ListingOf) -> None:
    (one,) = GPU.parse(listing_of(GEMM, "product", "gfx942")).functions
    (other,) = GPU.parse(listing_of(GEMM, "product", "gfx942", Flags(("-O1",)))).functions
    found = count_changes(diff(one, other, (GPU, GPU)))
    assert found[Change.SAME] + found[Change.RENAMED] > 0
    assert found[Change.ADDED] + found[Change.REMOVED] + found[Change.CHANGED] > 0


LINES = ["v_nop", "s_nop 0", "s_nop 1", "ds_nop", "v_mov_b32 v0, 1", "v_mov_b32 v1, 1"]
sides = st.lists(st.sampled_from(LINES), max_size=9)


def longest_common(old: list[str], new: list[str]) -> int:
    """By trying every choice of the shorter side."""
    short, long = sorted((old, new), key=len)
    for size in range(len(short), 0, -1):
        for chosen in combinations(short, size):
            rest = iter(long)
            if all(any(each == line for line in rest) for each in chosen):
                return size
    return 0


def check(old: list[str], new: list[str], table_bits: int = 1 << 20) -> int:
    """Both sides are whole and in order, partners are equal; gives how many there are."""
    left, right = function_of(old), function_of(new)
    rows = diff(left, right, (GPU, GPU), table_bits)
    assert [row.left for row in rows if row.left is not None] == list(range(len(old)))
    assert [row.right for row in rows if row.right is not None] == list(range(len(new)))
    partners = [row for row in rows if row.change in (Change.SAME, Change.RENAMED)]
    for row in partners:
        assert row.left is not None
        assert row.right is not None
        one, other = left.instructions[row.left], right.instructions[row.right]
        assert GPU.normalized(one) == GPU.normalized(other)
        assert (row.change is Change.SAME) == (one.operands == other.operands)
    assert all(row.left is not None and row.right is not None
               for row in rows if row.change is Change.CHANGED)  # fmt: skip
    return len(partners)


@settings(max_examples=150)
@given(sides, sides)
def test_the_most_that_can_be_equal_is(old: list[str], new: list[str]) -> None:
    def plain(lines: list[str]) -> list[str]:
        return [GPU.normalized(each) for each in function_of(lines).instructions]

    assert check(old, new) == longest_common(plain(old), plain(new))


@settings(max_examples=100)
@given(st.lists(st.sampled_from(LINES), max_size=40), st.lists(st.sampled_from(LINES), max_size=40))
def test_listings_too_large_for_one_table_are_cut(old: list[str], new: list[str]) -> None:
    check(old, new, table_bits=16)
    assert check(old, old, table_bits=16) == len(old)
