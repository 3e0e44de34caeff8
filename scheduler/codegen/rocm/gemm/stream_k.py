"""Stream-K: as many blocks as run at once divide all steps along k (``kiln/stream_k.h``).

With one block per tile, compute units are idle if there are few tiles, or slightly more than the
units run at once. Here each block has the same number of whole tiles and an equal share of the
steps of the remaining tiles; a second launch adds those partial tiles, always in the same order
(docs/adr/0029-reductions-shared-by-blocks.md explains why no counter or atomic sum replaces it).
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy

from scheduler.codegen.kernel import Launch
from scheduler.codegen.names import PLACEHOLDER
from scheduler.codegen.rocm.gemm.config import GemmConfig
from scheduler.codegen.rocm.machine import machine_of
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import Mod, as_expr
from scheduler.targets import Target

SUM_BLOCKS = 4  # that add the parts of a tile
_UNITS = 128  # compute units of a medium board: several targets share their source
_BLOCKS_A_UNIT = (1, 2)


def stream_k_blocks(targets: Sequence[Target], element: DType) -> tuple[int, ...]:
    """Return how many blocks may run at once, with one or two per compute unit."""
    units = machine_of(targets[0], element).units if len(targets) == 1 else _UNITS
    return tuple(each * units for each in _BLOCKS_A_UNIT)


def stream_k_launches(
    config: GemmConfig, tiles: Expr, names: tuple[str, ...]
) -> tuple[Launch, ...]:
    """Return the launch of the products, and that of the sums; ``tiles`` are those of the
    result."""
    one, blocks = sympy.Integer(1), sympy.Integer(config.stream_k)
    block, names = (config.threads, 1, 1), (*names, "workspace")
    sums = SUM_BLOCKS * _leftover_tiles(config, tiles)
    return (
        Launch(f"{PLACEHOLDER}_tiles", (blocks, one, one), block, 0, names),
        Launch(f"{PLACEHOLDER}_sum", (sums, one, one), block, 0, names),
    )


def partials_bytes(config: GemmConfig, tiles: Expr, itemsize: int) -> Expr:
    """Return the workspace bytes: there are fewer parts than blocks plus shared tiles, each of a
    tile's accumulators of ``itemsize`` bytes."""
    parts = config.stream_k + _leftover_tiles(config, tiles)
    return parts * (config.block_m * config.block_n * itemsize)


def _leftover_tiles(config: GemmConfig, tiles: Expr) -> Expr:
    return Mod(as_expr(tiles), as_expr(config.stream_k))
