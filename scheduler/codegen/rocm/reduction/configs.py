"""The configurations of reductions, and which are valid.

``lanes`` threads share a row. With ``keep``, elements that several loops read stay in registers.
With ``split``, blocks share a row; with ``columns``, neighbouring threads take neighbouring rows,
which are contiguous in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduler.arithmetic import ceil_div
from scheduler.codegen.legality import illegal
from scheduler.codegen.loops.alignment import VECTORS, reject_wide
from scheduler.codegen.rocm.reduction.accumulators import accumulator_bytes
from scheduler.codegen.rocm.reduction.problem import MIN_CUTTING_LANES, ReductionProblem
from scheduler.codegen.template import Config
from scheduler.errors import Rejected

LANES = (1, 8, 32, 64, 128, 256, 512, 1024)
THREADS = 256
SPLITS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_COLUMN_LANES = (1, 4, 8, 16, 32, 64, 128)
# Registers of a thread for elements kept between the loops.
_MAX_KEPT_ELEMENTS = 32
_MAX_LDS_BYTES = 48 * 1024  # available to a block on every target without a request for more
# Minimum steps per thread of a block's part of a row; there are no more blocks than keep every
# device busy, since more only add work to combine.
_MIN_STEPS = 4
_MAX_BLOCKS = 4096


@dataclass(frozen=True)
class Split:
    """How a row's steps are divided.

    ``lanes`` threads of a block and ``split`` blocks share a row; a thread takes ``vector``
    neighbouring steps at a time. With ``columns`` the threads of a block that are side by side take
    that many neighbouring rows each instead, and ``lanes`` threads, one behind the other, share
    those; 0 without. With ``cut`` rows begin anywhere, and are cut at aligned packs; with
    ``strided`` a thread's columns are spaced by the number of threads side by side: elements that
    no pack can read are read by neighbouring threads.
    """

    lanes: int
    vector: int = 1
    columns: int = 0
    split: int = 1
    cut: bool = False
    strided: bool = False

    @property
    def slots(self) -> int:
        """Return the workspace slots for each row's result: one per part, plus one for the total
        with columns."""
        return self.split + 1 if self.columns else self.split

    @property
    def rows_per_block(self) -> int:
        """Return the rows of which a block of a shared reduction has a part."""
        return THREADS // self.lanes * (self.columns or 1)

    def config(self) -> Config:
        config: dict[str, int | bool] = {"lanes": self.lanes, "vector": self.vector, "keep": False}
        if self.columns:
            config["columns"] = self.columns
        if self.split > 1 or not self.columns:
            config["split"] = self.split
        return config


def parse_split(config: Config) -> Split | None:
    """Return how rows are shared by blocks, or lie side by side; None if neither."""
    if "columns" not in config and "split" not in config:
        return None
    return Split(
        int(config["lanes"]),
        int(config["vector"]),
        int(config.get("columns", 0)),
        int(config.get("split", 1)),
    )


def configs() -> Sequence[Config]:
    """Return every configuration: a block per row, then rows by split, then columns."""
    splits = [Split(THREADS, vector, 0, split) for split in SPLITS[1:] for vector in VECTORS]
    splits += [
        Split(lanes, 1, columns, split)
        for split in SPLITS
        for columns in VECTORS
        for lanes in _COLUMN_LANES
    ]
    return [
        {"lanes": lanes, "vector": vector, "keep": keep}
        for keep in (False, True)
        for vector in VECTORS
        for lanes in LANES
    ] + [split.config() for split in splits]


def reject(problem: ReductionProblem, config: Config) -> Rejected | None:
    """Return why a configuration is invalid, or None."""
    split = parse_split(config)
    if split is not None:
        rejected = _reject_vector(problem, split.vector) if split.vector > 1 else None
        return rejected or reject_split(problem, split)
    lanes, vector = int(config["lanes"]), int(config["vector"])
    steps = problem.nest.inner_numel
    if steps.is_Integer and lanes > 1 and (lanes // 2) * vector >= int(steps):
        return illegal(f"{lanes} lanes of {vector} for {steps} elements: half would be idle")
    if vector > 1:
        rejected = _reject_vector(problem, vector)
        if rejected:
            return rejected
        if lanes < MIN_CUTTING_LANES and problem.cuts_always(vector):
            return illegal(f"unaligned rows need {MIN_CUTTING_LANES} or more lanes")
    return _reject_keep(problem, lanes, vector) if config["keep"] else None


def _reject_vector(problem: ReductionProblem, vector: int) -> Rejected | None:
    movable = problem.movable(vector)
    if not movable:
        return illegal(f"no access has {vector} aligned, consecutive elements along the reduction")
    return reject_wide(problem.nest, movable, vector, problem.targets[0].words.lane)


def kept_steps(problem: ReductionProblem, lanes: int, vector: int) -> int:
    """Return the steps of a thread whose elements stay in registers."""
    steps = problem.nest.inner_numel
    if steps.is_Integer:
        return ceil_div(int(steps), lanes * vector)
    return max(_MAX_KEPT_ELEMENTS // vector, 1)


def _reject_keep(problem: ReductionProblem, lanes: int, vector: int) -> Rejected | None:
    steps = problem.nest.inner_numel
    if steps == 0:
        return illegal("empty rows have nothing to keep in registers")
    shared_loads = problem.shared_loads(vector, cut=problem.cuts_always(vector))
    if not shared_loads:
        return illegal("no two loops share a load")
    if not steps.is_Integer:
        return None
    elements = kept_steps(problem, lanes, vector) * vector
    widest_bytes = max(load.dtype.itemsize for load in shared_loads)
    elements_per_register = 2 if vector > 1 and widest_bytes <= 2 else 1
    if elements > _MAX_KEPT_ELEMENTS * elements_per_register:
        return illegal(
            f"{elements} elements per thread exceed the limit of {_MAX_KEPT_ELEMENTS} registers"
        )
    return None


def reject_split(problem: ReductionProblem, split: Split) -> Rejected | None:
    """Return why rows cannot be shared by blocks, or lie side by side, that way, or None."""
    if split.split > 1 and problem.steps < split.split * split.lanes * split.vector * _MIN_STEPS:
        return illegal(
            f"{split.split} parts of {problem.steps} elements have fewer than {_MIN_STEPS} steps "
            f"for each of {split.lanes} lanes of {split.vector}"
        )
    blocks = ceil_div(problem.rows, split.rows_per_block) * split.split
    if split.split > 1 and blocks > _MAX_BLOCKS:
        return illegal(f"{blocks} blocks are more than the device needs")
    if split.columns:
        return _reject_columns(problem, split)
    return _reject_narrow(split.vector, problem.widest_vector)


def _reject_columns(problem: ReductionProblem, split: Split) -> Rejected | None:
    lanes, columns = split.lanes, split.columns
    if problem.column_axis is None:
        return illegal("rows are not adjacent in memory")
    side_by_side = ceil_div(problem.rows, columns)
    if lanes > 32 and THREADS // lanes * 2 <= side_by_side:
        return illegal(f"{lanes} lanes are too many for {side_by_side} adjacent threads")
    if lanes > 1 and lanes // 2 >= max(problem.steps, 1):
        return illegal(f"{lanes} lanes for {problem.steps} elements: half would be idle")
    if columns > 1:
        aligned = problem.column_packs[columns].aligned
        if not aligned:
            return illegal(f"no access has {columns} aligned, adjacent rows")
        rejected = reject_wide(problem.nest, aligned, columns)
        if rejected:
            return rejected
    rejected = _reject_narrow(columns, problem.widest_columns)
    if rejected:
        return rejected
    lds_bytes = combine_lds_bytes(problem, split)
    if lds_bytes > _MAX_LDS_BYTES:
        shared = problem.targets[0].words.shared
        return illegal(f"{lds_bytes} bytes of {shared} exceed the limit of {_MAX_LDS_BYTES}")
    return None


def _reject_narrow(width: int, max_width: int) -> Rejected | None:
    """Reject narrow packs: such a kernel only reads."""
    if 2 * width < max_width:
        return illegal(
            f"vectors of {width} elements are narrow: {max_width} elements can be read at once"
        )
    return None


def combine_lds_bytes(problem: ReductionProblem, split: Split) -> int:
    """Return LDS bytes to combine the widest value over a block's lanes; waves count as 32 lanes,
    so that the size is the same on every target."""
    stages = problem.split_stages
    widest_bytes = max((accumulator_bytes(s, g) for g in stages for s in g.reductions), default=0)
    if split.columns:
        return THREADS * split.columns * widest_bytes if split.lanes > 1 else 0
    return THREADS // 32 * widest_bytes if split.lanes > 32 else 0
