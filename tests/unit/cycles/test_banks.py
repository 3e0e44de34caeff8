"""Bank conflicts of LDS: accesses whose conflicts are known beforehand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.cycles import banks
from tests.unit.cycles.accesses import access

CDNA3 = ("gfx90a", "gfx942")
RDNA = ("gfx1100", "gfx1201")


def factor(processor: str, addresses: list[int], width: int, *, reads: bool = True) -> float:
    return banks.access_cost(processor, access(addresses, width), reads=reads).factor


@pytest.mark.parametrize(
    ("words", "expected"), [(0, 1), (1, 1), (2, 2), (4, 4), (8, 8), (16, 16), (32, 32), (33, 1)]
)
@pytest.mark.parametrize("processor", [*CDNA3, *RDNA])
def test_strides_of_words(processor: str, words: int, expected: int) -> None:
    """As measured on an MI300X, W7900 and RX 9070 XT: twice the stride, twice the cycles, up to
    all 32 lanes of a group in one bank."""
    lanes = 32 if processor in RDNA else 64
    assert factor(processor, [4 * words * lane for lane in range(lanes)], 4) == expected


@pytest.mark.parametrize(
    ("words", "expected"), [(0, 1), (1, 1), (2, 2), (4, 4), (32, 32), (64, 64), (65, 1)]
)
def test_mi355x_reads_from_64_banks(words: int, expected: int) -> None:
    assert factor("gfx950", [4 * words * lane for lane in range(64)], 4) == expected


def test_mi355x_writes_meet_32_banks() -> None:
    apart = [4 * 32 * lane for lane in range(64)]
    assert factor("gfx950", apart, 4, reads=False) == 32
    assert factor("gfx942", apart, 4, reads=False) == 32


@pytest.mark.parametrize(
    ("width", "bytes_apart", "cycles"),
    [
        # "Empirical LDS measurements", MI300X: conflicts of a block of 64 reads, a read of them
        # and the cycles that it takes without any.
        *[(4, 4, 2), (4, 8, 2 + 2), (4, 16, 2 + 6), (4, 32, 2 + 14), (4, 64, 2 + 30)],
        *[(4, 128, 2 + 62), (4, 512, 2 + 62)],
        *[(8, 8, 4), (8, 16, 4 + 4), (8, 32, 4 + 12), (8, 64, 4 + 28), (8, 128, 4 + 60)],
        *[(16, 16, 8), (16, 32, 8 + 8), (16, 64, 8 + 24), (16, 128, 8 + 56), (16, 256, 8 + 56)],
    ],
)
def test_what_was_measured_on_an_mi300x(width: int, bytes_apart: int, cycles: int) -> None:
    found = banks.access_cost(
        "gfx942", access([bytes_apart * lane for lane in range(64)], width), reads=True
    )
    assert found.cycles == cycles


def test_wide_reads_go_by_their_own_groups_and_wide_writes_in_order() -> None:
    """Lanes 0-3 and 20-23 together: where just these eight meet the same banks, a read of 128 bits
    needs 8 cycles for them and a write does not."""
    together = {0, 1, 2, 3, 20, 21, 22, 23}
    # Each of them in a row of its own, all in the first 16 bytes of it.
    addresses = [
        128 * 8 * lane + (0 if lane in together else 16 * (lane % 8)) for lane in range(64)
    ]
    lanes = sorted(together)
    alone = access([addresses[lane] for lane in lanes], 16, lanes)
    assert banks.access_cost("gfx942", alone, reads=True).cycles == 8
    assert banks.access_cost("gfx942", alone, reads=False).cycles == 4 + 4
    assert banks.access_cost("gfx1100", alone, reads=True).cycles == 8
    assert banks.access_cost("gfx1201", alone, reads=True).cycles == 4 + 4


def rows(pitch: int, swizzle: bool = False) -> list[int]:
    """A wave's 128-bit reads of an operand of 16 rows: row = lane % 16, one of four chunks."""
    return [
        (lane % 16) * pitch + 16 * ((lane // 16) ^ (lane % 8 if swizzle else 0))
        for lane in range(64)
    ]


@pytest.mark.parametrize("processor", ["gfx90a", "gfx942", "gfx950"])
def test_swizzled_chunks_are_free(processor: str) -> None:
    assert factor(processor, rows(128, swizzle=True), 16) == 1


@pytest.mark.parametrize(
    ("pitch", "expected"),
    [(64, 2), (128, 4), (256, 4), (64 + 16, 2), (128 + 16, 2), (128 + 32, 1), (128 + 64, 2)],
)
def test_padded_rows(pitch: int, expected: float) -> None:
    """The usual 16 bytes of padding leave every second access in conflict."""
    assert factor("gfx942", rows(pitch), 16) == expected


def test_the_same_word_is_broadcast_also_within_wider_accesses() -> None:
    for width in (4, 8, 16):
        assert factor("gfx942", [0] * 64, width) == 1
    halves = [2 * (lane // 2) + 2 * (lane % 2) for lane in range(64)]  # two lanes a word
    assert factor("gfx942", halves, 2) == 1


def test_atomics_on_one_word_go_one_by_one() -> None:
    one = access([0] * 64, 4)
    assert banks.access_cost("gfx942", one, reads=True, atomic=True).cycles == 64


def test_both_addresses_count() -> None:
    first = access([8 * lane for lane in range(64)], 8)
    both = type(first)(first.addresses, first.lanes, 8, second=first.addresses + 512)
    assert banks.access_cost("gfx942", both, reads=True) == banks.BankCost(8, 8)


def test_lanes_that_are_off_do_not_conflict() -> None:
    assert banks.access_cost("gfx942", access([0, 128 * 5], 4, [0, 40]), reads=True).factor == 1
    assert banks.access_cost("gfx942", access([0, 128 * 5], 4, [0, 20]), reads=True).factor == 2
    assert banks.access_cost("gfx942", access([], 4), reads=True).cycles == 1


@given(st.lists(st.integers(0, 4095), min_size=64, max_size=64), st.sampled_from([4, 8, 16]))
def test_cycles_are_those_of_the_fullest_bank_of_each_group(words: list[int], width: int) -> None:
    """Against the rule, written down lane by lane."""
    addresses = [word * width for word in words]
    for processor in ("gfx942", "gfx950"):
        rule = banks.bank_rule(processor, width, reads=True)
        assert sorted(lane for group in rule.groups for lane in group) == list(range(64))
        expected = 0
        for group in rule.groups:
            held: dict[int, set[int]] = {}
            for lane in group:
                for word in range(width // 4):
                    number = addresses[lane] // 4 + word
                    held.setdefault(number % rule.banks, set()).add(number)
            expected += max(len(each) for each in held.values())
        given_addresses = np.array([addresses], np.int64)
        assert banks.cycles(processor, given_addresses, width, reads=True)[0] == expected


@pytest.mark.parametrize(
    ("words", "reads", "cycles"),
    [
        (1, True, 1),
        (1, False, 2),
        (32, True, 32),
        (32, False, 64),
        (64, True, 64),
        (64, False, 64),
    ],
)
def test_a_wave_of_mi355x_is_read_at_once_and_written_by_halves(
    words: int, reads: bool, cycles: int
) -> None:
    """64 banks give a wave's words in one cycle; those that are written meet 32."""
    one = access([4 * words * lane for lane in range(64)], 4)
    assert banks.access_cost("gfx950", one, reads=reads).cycles == cycles
