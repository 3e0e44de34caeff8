"""Coalescing: accesses whose lines are known beforehand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.cycles.coalescing import Transfer, transfers
from tests.unit.cycles.accesses import access


def one(addresses: list[int], width: int, *, line: int = 128, stores: bool = False) -> Transfer:
    return transfers([access(addresses, width)], line=line, transfer=64, stores=stores)[0]


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_lanes_in_a_row_use_all_they_move(width: int) -> None:
    found = one([4096 + width * lane for lane in range(64)], width)
    assert found.requests == max(1, 64 * width // 128)
    assert found.bytes_used == 64 * width
    assert found.bytes_moved == max(128, 64 * width)
    assert found.pieces == max(1, 64 * width // 64)


def test_a_row_that_starts_within_a_line_touches_one_more() -> None:
    found = one([4096 + 64 + 4 * lane for lane in range(64)], 4)
    assert (found.requests, found.bytes_used, found.bytes_moved) == (3, 256, 384)


@pytest.mark.parametrize(("stride", "lines"), [(8, 4), (16, 8), (128, 64), (256, 64), (4096, 64)])
def test_strides(stride: int, lines: int) -> None:
    found = one([stride * lane for lane in range(64)], 4)
    assert (found.requests, found.bytes_used) == (lines, 256)
    assert found.bytes_moved == 128 * lines


def test_mi200_has_shorter_lines() -> None:
    found = one([128 * lane for lane in range(64)], 4, line=64)
    assert (found.requests, found.bytes_moved) == (64, 4096)


def test_one_address_for_all_lanes_is_one_request_of_a_word() -> None:
    assert one([512] * 64, 4) == Transfer((4,), 1, 4, 128)


def test_an_element_across_two_lines() -> None:
    assert one([120], 16) == Transfer((0, 1), 2, 16, 256)


def test_stores_move_pieces() -> None:
    found = one([2 * lane * 256 for lane in range(64)], 2, stores=True)
    assert (found.requests, found.bytes_used, found.bytes_moved) == (64, 128, 64 * 64)


def test_no_lane_moves_nothing() -> None:
    assert one([], 4) == Transfer((), 0, 0, 0)


@given(
    st.lists(st.integers(0, 5000), min_size=1, max_size=64),
    st.sampled_from([1, 2, 4, 8, 16]),
    st.sampled_from([64, 128]),
)
def test_it_is_a_count_of_bytes(addresses: list[int], width: int, line: int) -> None:
    touched = {byte for first in addresses for byte in range(first, first + width)}
    found = one(addresses, width, line=line)
    assert found.lines == tuple(sorted({byte // line for byte in touched}))
    assert found.bytes_used == len(touched)
    assert found.pieces == len({byte // 64 for byte in touched})


def test_the_order_is_kept() -> None:
    given_accesses = [access([0, 4], 4), access([1024], 8), access([256, 260], 4), access([], 4)]
    found = transfers(given_accesses, line=128, transfer=64, stores=False)
    assert [each.lines for each in found] == [(0,), (8,), (2,), ()]
