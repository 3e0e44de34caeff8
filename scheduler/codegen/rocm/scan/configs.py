"""The configurations of scans, which are valid, and the default without measurements.

``lanes`` threads share a row, each with ``items`` neighbouring steps at a time, or have
``columns`` neighbouring rows each; ``split`` blocks share a row.
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.arithmetic import ceil_div
from scheduler.codegen.legality import illegal
from scheduler.codegen.loops.alignment import VECTORS, Packs, reject_wide
from scheduler.codegen.rocm.machine import compute_units
from scheduler.codegen.rocm.reduction.configs import Split
from scheduler.codegen.rocm.scan.problem import LONG_ROW, ScanProblem
from scheduler.codegen.template import Config
from scheduler.errors import Rejected

THREADS = 256
COLUMN_THREADS = 64  # of a block: each has columns of its own, and nothing is shared
_LANES = (1, 8, 32, 64, 128, 256, 512, 1024)
_SPLITS = (1, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_COLUMN_SPLITS = (4, 16, 64, 128)
_MIN_STEPS = 4  # of a block that shares a row
_MAX_BLOCKS = 4096
_BLOCKS_PER_UNIT = 8
_MIN_LONG_COLUMN = 64  # steps of a thread: longer than another launch takes


def configs() -> Sequence[Config]:
    """Return every configuration: rows, then columns."""
    return [
        _row_config(lanes, items, split)
        for split in _SPLITS
        for items in VECTORS
        for lanes in _LANES
        if split == 1 or lanes == THREADS
    ] + [
        {"lanes": 1, "columns": columns, "split": split}
        for columns in VECTORS
        for split in _COLUMN_SPLITS
    ]


def _row_config(lanes: int, items: int, split: int = 1) -> Config:
    config = {"lanes": lanes}
    if items > 1:
        config["items"] = items
    if split > 1:
        config["split"] = split
    return config


def parse_config(config: Config) -> Split:
    """Return how a configuration divides rows."""
    items, columns, split = config.get("items", 1), config.get("columns", 0), config.get("split", 1)
    return Split(int(config["lanes"]), int(items), int(columns), int(split))


def reject(problem: ScanProblem, config: Config) -> Rejected | None:
    """Return why a configuration is invalid, or None."""
    split = parse_config(config)
    if split.columns:
        if problem.column_axis is None:
            return illegal("rows are not adjacent in memory")
        packs = problem.column_packs[split.columns]
        return _reject_short(problem, split) or _reject_packs(problem, packs)
    steps = problem.nest.inner_numel
    if steps.is_Integer and split.lanes > 1 and split.lanes // 2 * split.vector >= int(steps):
        lanes = f"{split.lanes} lanes of {split.vector}"
        return illegal(f"{lanes} for {steps} elements: half would be idle")
    rejected = _reject_vector(problem, split.vector)
    if rejected or split.split == 1:
        return rejected
    blocks = problem.rows * split.split
    rejected = _reject_short(problem, split)
    if not rejected and blocks > _MAX_BLOCKS:
        return illegal(f"{blocks} blocks are more than the device needs")
    return rejected


def _reject_short(problem: ScanProblem, split: Split) -> Rejected | None:
    part_count, steps = split.split, problem.steps
    if steps < part_count * split.lanes * split.vector * _MIN_STEPS:
        return illegal(
            f"{part_count} parts of {steps} elements have fewer than {_MIN_STEPS} steps each"
        )
    return None


def _reject_vector(problem: ScanProblem, items: int) -> Rejected | None:
    return _reject_packs(problem, problem.row_packs[items], cut=problem.cuts_always(items))


def _reject_packs(problem: ScanProblem, packs: Packs, *, cut: bool = False) -> Rejected | None:
    if packs.width == 1:
        return None
    if not cut and not problem.can_align(packs):
        return illegal(f"not every access has {packs.width} aligned, consecutive elements")
    return reject_wide(problem.nest, problem.nest.accesses, packs.width)


def default_config(problem: ScanProblem) -> Config:
    """Return the configuration for the example's sizes."""
    rows, steps = problem.rows, problem.steps
    columns = _default_columns(problem)
    if columns is not None:
        return columns
    items = next(n for n in reversed(VECTORS) if _reject_vector(problem, n) is None)
    units = compute_units(problem.targets)
    if rows < units and steps >= LONG_ROW * THREADS * items:
        for split in reversed(_SPLITS[1:]):
            config = _row_config(THREADS, items, split)
            if split * rows <= _BLOCKS_PER_UNIT * units and reject(problem, config) is None:
                return config
    # With enough rows to fill the device, one thread per row needs no combining at all.
    if items == 1 and rows >= 1 << 16:
        return _row_config(1, 1)
    useful_lanes = 1 if steps <= 4 else min(steps // (4 * items), THREADS if items > 1 else steps)
    fitting_configs = [_row_config(n, items) for n in _LANES if n <= max(useful_lanes, 1)]
    return [config for config in fitting_configs if reject(problem, config) is None][-1]


def _default_columns(problem: ScanProblem) -> Config | None:
    """Return packs of columns, with about as many blocks as keep the device busy; None for short
    columns, which one launch processes sooner."""
    if problem.steps < _MIN_LONG_COLUMN:
        return None
    max_blocks = _BLOCKS_PER_UNIT * compute_units(problem.targets)
    for columns in reversed(VECTORS):
        for split in reversed(_COLUMN_SPLITS):
            config: Config = {"lanes": 1, "columns": columns, "split": split}
            are_few = ceil_div(problem.rows, columns * COLUMN_THREADS) * split <= max_blocks
            if (are_few or split == _COLUMN_SPLITS[0]) and reject(problem, config) is None:
                return config
    return None
