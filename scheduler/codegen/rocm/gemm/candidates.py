"""The configurations of the matrix templates, including invalid ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from scheduler.codegen.rocm.gemm.config import GemmConfig, waves_along_m
from scheduler.codegen.rocm.gemm.problem import GemmProblem, vector_widths
from scheduler.codegen.rocm.gemm.tiles import (
    DIRECT_TILES,
    GEMV_ROWS,
    GEMV_TILES,
    TILES,
    tiles_for,
)
from scheduler.codegen.rocm.machine import machine_of
from scheduler.ir.dtypes import DType
from scheduler.matrix_instructions import OTHER_SIZES
from scheduler.targets import Target

_ASYNC_STAGES = (3, 4)
_ASYNC_SPLITS = (1, 4, 8)
_DIRECT_STAGES, _USUAL_STAGES = (2, 3, 4), 3
_DIRECT_SPLITS = (1, 2, 4)
_MAX_DIRECT_SPLIT_AREA = 128 * 128
_MAX_SPLIT_AREA = 64 * 128  # maximum area of a tile if k is split
_SPLITS = (1, 2, 4, 8)
_MORE_SPLITS = (16, 32)  # for tiles of few rows or columns
_FEW_ROWS = 32
_STAGES = (1, 2)
GROUP_SIZES = (1, 8)
_MEDIUM_BOARD_UNITS = 128  # compute units of a medium board: several targets share their source
_BLOCKS_PER_UNIT = (1, 2)


def all_configs(problem: GemmProblem) -> Iterator[GemmConfig]:
    """Yield every configuration in a fixed order; loads wider than the problem allows once each.

    The instruction does not change how the tiles are best walked: instructions of other sizes are
    combined only with the default's ``group_m``.
    """
    a, b = problem.widest_loads()
    yield from common_configs(problem, GROUP_SIZES)
    yield from other_size_configs(problem)
    yield from async_configs(problem)
    yield from gemv_configs(problem)
    yield from direct_configs(problem)
    plain = GemmConfig(*TILES[0], 1, 1, 1, a, b)
    for width in vector_widths(problem.element):
        if width > a:
            yield replace(plain, vector_a=width)
        if width > b:
            yield replace(plain, vector_b=width)


def common_configs(problem: GemmProblem, groups: tuple[int, ...]) -> Iterator[GemmConfig]:
    """Yield those of the instruction size that every target supports."""
    a, b = problem.widest_loads()
    tiles = tiles_for(problem.element)
    for tile, stages, group, tf32 in product(tiles, _STAGES, groups, problem.tf32_options):
        for split in (*_SPLITS, *(_MORE_SPLITS if min(tile[:2]) < _FEW_ROWS else ())):
            yield GemmConfig(*tile, stages, group, split, a, b, allow_tf32=tf32)


def other_size_configs(problem: GemmProblem) -> Iterator[GemmConfig]:
    """Yield those of other instruction sizes, which only some targets have."""
    a, b = problem.widest_loads()
    for size, lanes in OTHER_SIZES:
        tiles = (
            tile
            for tile in tiles_for(problem.element)
            if waves_along_m(*tile[:2], tile[3] // lanes, size)
        )
        for tile, stages, split, tf32 in product(tiles, _STAGES, _SPLITS, problem.tf32_options):
            yield GemmConfig(*tile, stages, GROUP_SIZES[-1], split, a, b, size, allow_tf32=tf32)


def async_configs(problem: GemmProblem) -> Iterator[GemmConfig]:
    """Yield those with asynchronous copies, which only some targets have."""
    a, b = problem.widest_loads()
    tiles = tiles_for(problem.element, is_async=True)
    combinations = product(tiles, _ASYNC_STAGES, _ASYNC_SPLITS, problem.tf32_options)
    for tile, stages, split, tf32 in combinations:
        if split == 1 or tile[0] * tile[1] <= _MAX_SPLIT_AREA:
            yield GemmConfig(
                *(*tile, stages, GROUP_SIZES[-1], split, a, b), async_copies=1, allow_tf32=tf32
            )


def stream_k_blocks(targets: Sequence[Target], element: DType) -> tuple[int, ...]:
    """Return how many blocks may run at once, with one or two per compute unit."""
    units = machine_of(targets[0], element).units if len(targets) == 1 else _MEDIUM_BOARD_UNITS
    return tuple(blocks_per_unit * units for blocks_per_unit in _BLOCKS_PER_UNIT)


def stream_k_configs(problem: GemmProblem, blocks: tuple[int, ...]) -> Iterator[GemmConfig]:
    """Yield those of Stream-K: ``blocks``, as many as run at once, divide all steps along k among
    them (``kiln/stream_k.h``).

    With one block per tile, compute units are idle if there are few tiles, or slightly more than
    the units run at once. Here each block has the same number of whole tiles and an equal share of
    the steps of the remaining tiles; a second launch adds those partial tiles, always in the same
    order (docs/adr/0029-reductions-shared-by-blocks.md explains why no counter or atomic sum
    replaces it).
    """
    a, b = problem.widest_loads()
    for tile, stages, block_count in product(tiles_for(problem.element), _STAGES, blocks):
        yield GemmConfig(*tile, stages, GROUP_SIZES[-1], 1, a, b, stream_k=block_count)
    tiles = tiles_for(problem.element, is_async=True)
    for tile, stages, block_count in product(tiles, _ASYNC_STAGES, blocks):
        yield GemmConfig(
            *tile, stages, GROUP_SIZES[-1], 1, a, b, async_copies=1, stream_k=block_count
        )


def direct_configs(problem: GemmProblem) -> Iterator[GemmConfig]:
    """Yield those whose loads write directly to LDS, which only some targets have."""
    a, b = problem.widest_loads()
    for tile, stages, split in product(DIRECT_TILES, _DIRECT_STAGES, _DIRECT_SPLITS):
        if split > 1 and tile[0] * tile[1] > _MAX_DIRECT_SPLIT_AREA:
            continue
        for priority in (0, 1) if stages == _USUAL_STAGES else (1,):
            yield GemmConfig(
                *(*tile, stages, GROUP_SIZES[-1], split, a, b), direct_to_lds=1, setprio=priority
            )


def gemv_configs(problem: GemmProblem) -> Iterator[GemmConfig]:
    """Yield those for a few rows, if the problem has no more."""
    rows = next((max_rows for max_rows in GEMV_ROWS if problem.m <= max_rows), None)
    if rows is None or not problem.along_k:
        return
    width = min(problem.widest_loads())
    for tile in GEMV_TILES:
        yield GemmConfig(rows, *tile, 1, GROUP_SIZES[0], 1, width, width, gemv=1)
