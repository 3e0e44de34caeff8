"""How long blocks are that were not run."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.cycles.block_durations import (
    block_durations,
    is_uniform,
    representative_blocks,
    sample_blocks,
)


def test_equal_blocks_are_equal() -> None:
    found, clear = block_durations({0: 100.0, 7: 101.0, 63: 99.0}, 64)
    assert clear
    assert found.tolist() == [100.0] * 64


@pytest.mark.parametrize("along", ["fastest", "slowest"])
def test_rows_of_a_causal_attention(along: str) -> None:
    """Blocks along one axis of the grid take longer and longer."""
    every = np.arange(64 * 16)
    axis = every % 64 if along == "fastest" else every // 16
    whole = 1000.0 + 250.0 * axis
    run = sample_blocks(len(every), 3)
    found, clear = block_durations({place: float(whole[place]) for place in run}, len(every))
    assert clear
    assert found == pytest.approx(whole, rel=1e-6)


def test_without_an_axis_the_nearest_counts_and_that_is_said() -> None:
    run = {0: 10.0, 20: 900.0, 40: 30.0, 70: 500.0, 99: 20.0}
    found, clear = block_durations(run, 100)
    assert not clear
    assert {int(place): float(found[place]) for place in run} == run


def test_places_are_on_no_axis_together() -> None:
    run = sample_blocks(4096, 3)
    assert {0, 4095} < set(run)
    assert len({place % 64 for place in run}) == len(run)
    assert sample_blocks(1, 3) == [0]


def test_the_last_block_alone_may_be_cut_off() -> None:
    assert representative_blocks({0: 100.0, 40: 100.0, 99: 30.0}, 100) == {0, 40}
    assert representative_blocks({0: 100.0, 40: 60.0, 99: 30.0}, 100) == {0, 40, 99}
    assert representative_blocks({0: 100.0}, 1) == {0}


@pytest.mark.parametrize(("shortest", "equal"), [(100.0, True), (97.0, True), (96.9, False)])
def test_blocks_that_differ_by_more_than_three_parts_in_a_hundred_are_not_equal(
    shortest: float, equal: bool
) -> None:
    found = {0: 100.0, 20: shortest, 63: 100.0}
    assert is_uniform(found) is equal
    every, _ = block_durations(found, 64)
    assert (len(set(every.tolist())) == 1) is equal
    assert representative_blocks({0: 100.0, 20: shortest, 63: 30.0}, 64) == (
        {0, 20} if equal else {0, 20, 63}
    )
