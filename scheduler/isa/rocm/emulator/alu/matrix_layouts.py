"""Maps the elements of a matrix instruction's operands to items and lanes.

MFMA: AMD CDNA3 ISA 7.1.4 and CDNA4 ISA 7.1.4, 7.1.5 (general input and output layout; 8 bits and
smaller). WMMA: RDNA3 ISA 7.9, RDNA4 ISA 7.12.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scheduler.targets.amd import Feature

Places = npt.NDArray[np.intp]


@dataclass(frozen=True)
class InputPlaces:
    """``item`` and ``lane`` [blocks, rows, k] of A (for B: columns instead of rows)."""

    item: Places
    lane: Places


@dataclass(frozen=True)
class ResultPlaces:
    """``block``, ``row``, ``column`` [items, lanes] of the element stored there."""

    block: Places
    row: Places
    column: Places


def mfma_input(rows: int, k: int, blocks: int, run: int | None = None) -> InputPlaces:
    """``run`` is how many k are contiguous in a lane, before those of the other lanes; default: all
    the lane's k."""
    block, row, at = np.meshgrid(np.arange(blocks), np.arange(rows), np.arange(k), indexing="ij")
    per_lane = k * rows * blocks // 64
    run = run or per_lane
    groups = per_lane and (k // per_lane)
    group = at // run % groups
    item = at % run + run * (at // (run * groups))
    return InputPlaces(item, row + rows * (block + blocks * group))


def mfma_result(m: int, n: int, blocks: int, height: int) -> ResultPlaces:
    """``height`` is the number of rows in a lane's consecutive items: 1 for f64, otherwise 4."""
    in_item = -(-64 // (n * m // height))
    across = 64 // in_item // n
    groups = m // (height * across)
    shape = (m * n * blocks // 64, 64)
    places = ResultPlaces(*(np.zeros(shape, np.intp) for _ in range(3)))
    b, i, j = np.meshgrid(np.arange(blocks), np.arange(m), np.arange(n), indexing="ij")
    item = i % height + height * (i // (height * across) + groups * (b // in_item))
    lane = j + n * (i // height % across + across * (b % in_item))
    places.block[item, lane], places.row[item, lane], places.column[item, lane] = b, i, j
    return places


def wmma_input(k: int, lanes: int, wmma: Feature) -> InputPlaces:
    """RDNA3: every group of 16 lanes has all of k; RDNA4: each has a part."""
    _, row, at = np.meshgrid(np.arange(1), np.arange(16), np.arange(k), indexing="ij")
    if wmma is Feature.WMMA_RDNA3:
        return InputPlaces(at, row)
    per_lane = k * 16 // lanes
    return InputPlaces(at % per_lane, row + 16 * (at // per_lane))


def wmma_result(lanes: int, wmma: Feature) -> ResultPlaces:
    """RDNA3: rows alternate over the groups of 16 lanes; RDNA4: each group has consecutive rows."""
    groups = lanes // 16
    item, lane = np.meshgrid(np.arange(16 // groups), np.arange(lanes), indexing="ij")
    group = lane // 16
    row = item * groups + group if wmma is Feature.WMMA_RDNA3 else group * (16 // groups) + item
    return ResultPlaces(np.zeros_like(row), row, lane % 16)
