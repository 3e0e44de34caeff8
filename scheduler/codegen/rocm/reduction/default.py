"""Default choice of reduction rows that are shared by blocks, or lie side by side, without
measurements.

The aim is a full device: some blocks for every compute unit, each with enough to read.
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.codegen.rocm.reduction.estimate import fastest_split
from scheduler.codegen.rocm.reduction.split import SPLITS, THREADS, SplitReduction
from scheduler.codegen.rocm.reduction.split_body import Split
from scheduler.targets import Target, boards
from scheduler.targets.amd import AmdHardware

# Compute units of a medium board, for targets without published figures, and for several targets
# that share their source.
_COMPUTE_UNITS = 128
_BLOCKS_A_UNIT = 2
_STREAMING_BLOCKS_A_UNIT = 8  # for rows whose packs are read once (measured on an H200)
# For columns that are read once, if a thread has enough steps left (measured on an H100).
_STREAMING_COLUMNS_A_UNIT, _FEWEST_COLUMN_STEPS = 4, 32
# A row or column with fewer steps per thread is read in about the time of another launch.
_LONG_ROW, _LONG_COLUMN = 16, 64
_USUAL_VECTOR = 4
# For rows that are read twice and stay in a last-level cache meanwhile: one block per row is faster
# than a further launch if that share of the units has one (by scheduler/cycles).
_BUSY_UNITS = 2 / 3
# Bytes that a loop over rows reads in a microsecond, with one NVIDIA block and with a full device;
# and the time of one more launch (measured on an H100 with softmax of 64 rows of 50257 f16: 12.4 µs
# with a block per row, 14.1 with the best shares).
_BLOCK_BYTES_US, _DEVICE_BYTES_US, _LAUNCH_US = 25e3, 2.8e6, 2.5
_FEW_STEPS = 16
_MOST_LANES = 128  # one behind the other
_ACROSS = 64  # threads side by side: with packs of 16 bytes, 1 KiB per read


def compute_units(targets: Sequence[Target]) -> int:
    """Return the compute units of the first board, if there is one target."""
    found = boards(targets[0].name) if len(targets) == 1 else ()
    return found[0].compute_units if found else _COMPUTE_UNITS


def is_amd(targets: Sequence[Target]) -> bool:
    """Whether all targets are AMD's GPUs, or emulate them: NVIDIA's defaults were measured, AMD's
    follow the cycle model."""
    return all(isinstance(target.hardware, AmdHardware) for target in targets)


def default_split(shared: SplitReduction, vector: int, *, along_rows: bool) -> Split | None:
    """Return the default shares for a reduction's sizes; None if a row has one block at most, which
    reads along it (``along_rows``: in packs of ``vector``)."""
    rows = max(shared.template.hint(shared.nest.outer_numel), 1)
    steps = shared.template.hint(shared.nest.inner_numel)
    if steps <= _FEW_STEPS:
        return None
    units = compute_units(shared.template.targets)
    if along_rows:
        if rows >= units or steps < _LONG_ROW * THREADS * max(vector, _USUAL_VECTOR):
            return None
        if rows >= _BUSY_UNITS * units and _is_reread_cached(shared, rows * steps):
            return None
        if is_amd(shared.template.targets):
            return fastest_split(shared, vector, shared.template.targets)
        if _is_single_block_faster(shared, rows, steps):
            return None
        blocks = _STREAMING_BLOCKS_A_UNIT if shared.streamed_pointers else _BLOCKS_A_UNIT
        shares = _most_split(shared, Split(THREADS, vector), blocks * units)
        return shares if shares.split > 1 else None
    if shared.columns_axis is None:
        return None
    width = shared.widest_columns
    shares = Split(_lanes(rows, width, steps, units), 1, width)
    if steps < _LONG_COLUMN * shares.lanes:
        return shares
    usual = _most_split(shared, shares, _BLOCKS_A_UNIT * units)
    if not shared.streamed_pointers:
        return usual
    more = _most_split(shared, shares, _STREAMING_COLUMNS_A_UNIT * units)
    enough = steps >= _FEWEST_COLUMN_STEPS * more.lanes * more.split
    return more if enough else usual


def _is_single_block_faster(shared: SplitReduction, rows: int, steps: int) -> bool:
    """Whether one block's extra time for a row's ``steps`` is less than the launch that shares add
    to each loop."""
    row = steps * shared.bytes_a_step
    return row / _BLOCK_BYTES_US < _LAUNCH_US + rows * row / _DEVICE_BYTES_US


def _is_reread_cached(shared: SplitReduction, elements: int) -> bool:
    """Whether the only target's first board has a cache behind L2 that holds the data that a
    further loop reads again."""
    if shared.loops == 1 or len(shared.template.targets) != 1:
        return False
    found = boards(shared.template.targets[0].name)
    return bool(found) and elements * shared.bytes_a_step <= found[0].last_level_bytes


def _lanes(rows: int, width: int, steps: int, units: int) -> int:
    """Return threads one behind the other: none if rows fill the device, more if they are few."""
    side_by_side = -(-rows // width)
    if side_by_side >= _BLOCKS_A_UNIT * units * THREADS:
        return 1
    lanes = THREADS // _ACROSS
    while lanes < _MOST_LANES and THREADS // lanes >= 2 * side_by_side:
        lanes *= 2
    while lanes > 1 and lanes // 2 >= steps:
        lanes //= 2
    return lanes


def _most_split(shared: SplitReduction, shares: Split, most: int) -> Split:
    """Return the most valid blocks per row, up to ``most`` in all."""
    blocks = shared.template.hint(shared.blocks(shares))
    enough = most // max(blocks, 1)
    for split in reversed(SPLITS):
        several = Split(shares.lanes, shares.vector, shares.columns, split)
        if split <= enough and shared.reject(several) is None:
            return several
    return shares
