"""The tiles of the matrix template configurations."""

from __future__ import annotations

from scheduler.ir.dtypes import DType

# (block_m, block_n, block_k, threads); divisible by waves of 64 lanes and by waves of 32.
TILES = (
    (256, 128, 32, 256),
    (256, 256, 32, 512),
    (256, 256, 64, 512),
    (128, 256, 32, 256),
    (128, 128, 16, 256),
    (128, 128, 32, 256),
    (128, 128, 64, 256),
    (128, 64, 32, 256),
    (128, 64, 64, 128),
    (64, 128, 32, 256),
    (64, 128, 64, 128),
    (64, 64, 16, 256),
    (64, 64, 32, 128),
    (64, 64, 64, 256),
    (64, 32, 64, 128),
    (32, 64, 64, 128),
    (32, 32, 128, 128),
    (16, 128, 64, 128),
    (128, 16, 64, 128),
    (16, 64, 128, 128),
    (16, 32, 128, 64),
)
# For 8-bit elements, whose rows have twice as many in the same number of bytes.
_BYTE_TILES = (
    (256, 256, 128, 512),
    (128, 128, 128, 256),
    (128, 64, 128, 128),
    (64, 128, 128, 128),
    (64, 64, 128, 128),
)
# With asynchronous copies a warp has up to 64x64 of the result, since the next tiles need no
# registers; the small ones are for results that few blocks share.
ASYNC_TILES = (
    (256, 128, 32, 256),
    (128, 256, 32, 256),
    (256, 128, 64, 256),
    (128, 256, 64, 256),
    (128, 128, 32, 128),
    (128, 128, 64, 128),
    (128, 128, 64, 256),
    (128, 64, 64, 128),
    (64, 128, 64, 128),
    (64, 64, 64, 128),
    (32, 64, 64, 128),
    (16, 128, 64, 128),
    (16, 64, 128, 128),
)
_ASYNC_BYTE_TILES = (
    (256, 128, 128, 256),
    (128, 256, 128, 256),
    (128, 128, 128, 128),
    (128, 128, 128, 256),
    (64, 64, 128, 128),
)
# Loaded into LDS directly, not through registers; many waves, since all waves of a block wait
# together.
DIRECT_TILES = (
    (256, 256, 32, 512),
    (256, 256, 64, 512),
    (256, 128, 64, 512),
    (128, 256, 64, 512),
    (128, 128, 64, 512),
    (128, 128, 64, 256),
    (128, 128, 32, 256),
    (128, 64, 64, 256),
    (64, 128, 64, 256),
    (64, 64, 64, 256),
)
# For few rows: a wave of 64 lanes sums a quarter of the columns, one of 32 an eighth.
GEMV_TILES = (
    (8, 1024, 256),
    (16, 256, 256),
    (16, 512, 256),
    (16, 1024, 256),
    (32, 256, 256),
    (32, 512, 256),
    (32, 1024, 256),
)
GEMV_ROWS = (1, 2, 4)
MAX_GEMV_ROWS = GEMV_ROWS[-1]


def tiles_for(element: DType, *, is_async: bool = False) -> tuple[tuple[int, int, int, int], ...]:
    """Return rows, columns and k of a block, and its threads; ``is_async``: those for asynchronous
    copies."""
    tiles, byte_tiles = (ASYNC_TILES, _ASYNC_BYTE_TILES) if is_async else (TILES, _BYTE_TILES)
    return (*tiles, *(byte_tiles if element.itemsize == 1 else ()))
