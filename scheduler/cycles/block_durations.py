"""Estimates the length of every block of a launch from a few that were run.

If blocks differ (the rows of a causal attention), their length depends on their position along one
axis of the grid, that is, on a division of the block number. Of all divisions, the one that fits
every block that was run is used; without one, each block takes the length of the nearest run block.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from sympy import divisors

UNIFORM_TOLERANCE = 0.03  # blocks that differ by less count as equal
_FIT_TOLERANCE = 0.02  # relative to the range of lengths
_GOLDEN = 0.6180339887498949

Durations = npt.NDArray[np.float64]


def sample_blocks(blocks: int, count: int) -> list[int]:
    """Return the blocks to run: the first, the last, and ``count`` between them, spread so that
    they do not all lie at one position of a grid axis."""
    spread = {int((number * _GOLDEN) % 1 * blocks) for number in range(1, count + 1)}
    return sorted({0, blocks - 1, *spread})


def is_uniform(durations_by_block: Mapping[int, float]) -> bool:
    """Whether blocks of these lengths are equal."""
    return min(durations_by_block.values()) >= (1 - UNIFORM_TOLERANCE) * max(
        durations_by_block.values()
    )


def representative_blocks(durations_by_block: Mapping[int, float], blocks: int) -> set[int]:
    """Return which run blocks represent the others: all, or all but the last if only that one
    differs, cut off by the end of the data."""
    inside = {
        number: length for number, length in durations_by_block.items() if number != blocks - 1
    }
    if inside and not is_uniform(durations_by_block) and is_uniform(inside):
        return set(inside)
    return set(durations_by_block)


def block_durations(durations_by_block: Mapping[int, float], blocks: int) -> tuple[Durations, bool]:
    """Return the length of all blocks, and whether a division of their numbers explains it."""
    if is_uniform(durations_by_block):
        return np.full(blocks, sum(durations_by_block.values()) / len(durations_by_block)), True
    numbers = np.array(sorted(durations_by_block), np.int64)
    values = np.array([durations_by_block[number] for number in numbers.tolist()])
    every = np.arange(blocks)
    best: tuple[float, Durations] | None = None
    for period in divisors(blocks)[1:]:  # that may be an axis of the grid
        for place, along in (
            (numbers % period, every % period),
            (numbers // period, every // period),
        ):
            if len(set(place.tolist())) < min(3, len(numbers)):
                continue
            slope, start = np.polyfit(place, values, 1)
            off = float(np.abs(start + slope * place - values).max())
            if best is None or off < best[0]:
                best = off, np.maximum(start + slope * along, values.min() / 2)
    if best is not None and best[0] <= _FIT_TOLERANCE * float(np.ptp(values)):
        return best[1], True
    nearest = np.abs(every[:, None] - numbers[None, :]).argmin(axis=1)
    return values[nearest], False
