"""Default choice without measurements.

The aim is a full device: some blocks for every compute unit, each with enough to read. Where one
block a row does not fill it, rows are shared by blocks, or lie side by side.
"""

from __future__ import annotations

from dataclasses import replace

from scheduler.arithmetic import ceil_div
from scheduler.codegen.rocm.machine import compute_units
from scheduler.codegen.rocm.reduction.accumulators import finds_index
from scheduler.codegen.rocm.reduction.configs import (
    LANES,
    SPLITS,
    THREADS,
    Split,
    reject,
    reject_split,
)
from scheduler.codegen.rocm.reduction.estimate import fastest_split
from scheduler.codegen.rocm.reduction.problem import ReductionProblem
from scheduler.codegen.template import Config
from scheduler.targets import boards

# Shorter rows (a pooling window) are not worth sharing.
_MAX_SHORT_STEPS = 16
# More lanes wait for each other longer than for a second pack each (modelled on gfx942).
_MAX_WAITING_LANES = 512
_BLOCKS_PER_UNIT = 2
_STREAMING_BLOCKS_PER_UNIT = 8  # for rows whose packs are read once (measured on an H200)
# For columns that are read once, if a thread has enough steps left (measured on an H100).
_STREAMING_COLUMNS_PER_UNIT, _MIN_COLUMN_STEPS = 4, 32
# A row or column with fewer steps per thread is read in about the time of another launch.
_MIN_LONG_ROW, _MIN_LONG_COLUMN = 16, 64
_USUAL_VECTOR = 4
# For rows that are read twice and stay in a last-level cache meanwhile: one block per row is faster
# than a further launch if that share of the units has one (by scheduler/cycles).
_BUSY_UNIT_SHARE = 2 / 3
# Bytes that a loop over rows reads in a microsecond, with one NVIDIA block and with a full device;
# and the time of one more launch (measured on an H100 with softmax of 64 rows of 50257 f16: 12.4 µs
# with a block per row, 14.1 with the best shares).
_BLOCK_BYTES_PER_US, _DEVICE_BYTES_PER_US, _LAUNCH_US = 25e3, 2.8e6, 2.5
_MAX_COLUMN_LANES = 128  # one behind the other
_THREADS_ACROSS = 64  # threads side by side: with packs of 16 bytes, 1 KiB per read


def default_config(problem: ReductionProblem) -> Config:
    """Return the configuration for the example's sizes."""
    split = None
    if problem.steps > _MAX_SHORT_STEPS:
        split = _default_row_split(problem) if problem.along_rows else _default_columns(problem)
    if split is not None:
        return split.config()
    for vector in (problem.widest_vector, 1):
        widest = _default_lanes(problem, vector)
        for keep in (True, False):
            for lanes in (widest, *reversed([n for n in LANES if n < widest])):
                config: Config = {"lanes": lanes, "vector": vector, "keep": keep}
                if reject(problem, config) is None:
                    return config
                if keep:
                    break
    raise AssertionError("one thread per row is always legal")


def _default_lanes(problem: ReductionProblem, vector: int) -> int:
    """Return the threads that share a row of one block."""
    rows, steps = max(problem.rows, 1), max(problem.steps, 1)
    if rows >= 4 * THREADS and (steps <= _MAX_SHORT_STEPS or not problem.along_rows):
        return 1  # neighbouring threads take neighbouring rows, and nothing is combined
    packs_per_thread = 1  # with few rows more threads each, so that the device is full
    if rows * steps >= 1 << 16:
        # Twice as many if packs are streamed and threads hold a value with its index, which takes
        # longer to combine (measured on an H200).
        streams = bool(problem.streamed_buffers(keeps_shared=False))
        searches = any(finds_index(s.kind) for s in problem.nest.statements)
        packs_per_thread = 8 if searches and streams else 4
    useful_lanes = steps / (vector * packs_per_thread)
    lanes = next((lanes for lanes in LANES if lanes >= useful_lanes), LANES[-1])
    if lanes > _MAX_WAITING_LANES and packs_per_thread == 1 and problem.is_amd:
        return _MAX_WAITING_LANES
    return lanes


def _default_row_split(problem: ReductionProblem) -> Split | None:
    """Return how blocks share rows that are read along; None if a row has one block at most."""
    rows, steps, vector = max(problem.rows, 1), problem.steps, problem.widest_vector
    units = compute_units(problem.targets)
    if rows >= units or steps < _MIN_LONG_ROW * THREADS * max(vector, _USUAL_VECTOR):
        return None
    if rows >= _BUSY_UNIT_SHARE * units and problem.split_loops > 1 and len(problem.targets) == 1:
        board = next(iter(boards(problem.targets[0].name)), None)
        if board and rows * steps * problem.bytes_per_step <= board.last_level_bytes:
            return None
    if problem.is_amd:
        return fastest_split(problem)
    row_bytes = steps * problem.bytes_per_step
    if row_bytes / _BLOCK_BYTES_PER_US < _LAUNCH_US + rows * row_bytes / _DEVICE_BYTES_PER_US:
        return None  # one block's extra time is less than the launch that shares add to each loop
    blocks = _STREAMING_BLOCKS_PER_UNIT if problem.split_streams else _BLOCKS_PER_UNIT
    split = _max_split(problem, Split(THREADS, vector), blocks * units)
    return split if split.split > 1 else None


def _default_columns(problem: ReductionProblem) -> Split | None:
    """Return how threads share rows that lie side by side; None if rows do not."""
    if problem.column_axis is None:
        return None
    steps, width, units = problem.steps, problem.widest_columns, compute_units(problem.targets)
    # Threads one behind the other: none if rows fill the device, more if they are few.
    side_by_side, lanes = ceil_div(max(problem.rows, 1), width), 1
    if side_by_side < _BLOCKS_PER_UNIT * units * THREADS:
        lanes = THREADS // _THREADS_ACROSS
        while lanes < _MAX_COLUMN_LANES and THREADS // lanes >= 2 * side_by_side:
            lanes *= 2
        while lanes > 1 and lanes // 2 >= steps:
            lanes //= 2
    split = Split(lanes, 1, width)
    if steps < _MIN_LONG_COLUMN * lanes:
        return split
    few_blocks = _max_split(problem, split, _BLOCKS_PER_UNIT * units)
    if not problem.split_streams:
        return few_blocks
    more_blocks = _max_split(problem, split, _STREAMING_COLUMNS_PER_UNIT * units)
    has_enough_steps = steps >= _MIN_COLUMN_STEPS * more_blocks.lanes * more_blocks.split
    return more_blocks if has_enough_steps else few_blocks


def _max_split(problem: ReductionProblem, split: Split, max_blocks: int) -> Split:
    """Return the most valid blocks per row, up to ``most`` in all."""
    max_parts = max_blocks // max(ceil_div(problem.rows, split.rows_per_block), 1)
    for part_count in reversed(SPLITS):
        shared_split = replace(split, split=part_count)
        if part_count <= max_parts and reject_split(problem, shared_split) is None:
            return shared_split
    return split
