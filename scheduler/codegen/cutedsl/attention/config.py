"""Configurations of attention for Hopper: tile sizes, and the SM resources that they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduler.codegen.template import Config

_WARPGROUP_THREADS = 128
_WGMMA_ROWS = 64  # of a warpgroup's matrix instruction
_BARRIERS_BYTES = 1024  # the tiles after them begin at multiples of this
_ITEMSIZE = 2
_MIN_STAGES = 2
SPLITS = (1, 4, 16)
# Maximum registers of a thread for scores, weights and output: the remainder of those that
# setmaxregister gives a thread, for two warpgroups (240) and for three (160). With 8 more, ptxas
# spills or serializes the matrix instructions.
_MAX_REGISTERS = {1: 184, 2: 184, 3: 128}


@dataclass(frozen=True)
class AttentionConfig:
    """``warpgroups`` of 64 rows each take ``block_n`` columns at a time, of which ``stages`` tiles
    are in shared memory. With ``pingpong`` the warpgroups take turns: one multiplies while the
    others exponentiate. ``splits`` blocks share the columns of the same rows, and a second kernel
    combines their results: for few rows of many columns."""

    warpgroups: int
    block_n: int
    stages: int
    pingpong: bool
    splits: int

    @staticmethod
    def create(config: Config) -> AttentionConfig:
        return AttentionConfig(
            int(config["block_m"]) // _WGMMA_ROWS,
            int(config["block_n"]),
            int(config["stages"]),
            bool(config["pingpong"]),
            int(config["splits"]),
        )

    @property
    def block_m(self) -> int:
        """Return the rows of a block."""
        return _WGMMA_ROWS * self.warpgroups

    @property
    def threads(self) -> int:
        """Return the threads of the consumers and of the producer's warpgroup."""
        return _WARPGROUP_THREADS * (self.warpgroups + 1)

    @property
    def producer_registers(self) -> int:
        """Return the registers per thread that the producer's warpgroup keeps."""
        return {1: 56, 2: 24, 3: 32}[self.warpgroups]

    @property
    def consumer_registers(self) -> int:
        """Return the registers per thread available to the consumers."""
        return {1: 240, 2: 240, 3: 160}[self.warpgroups]

    def shared_bytes(self, depth: int, value_depth: int) -> int:
        """Return the bytes of the barriers, the queries (the output reuses their space), and the
        keys and values of each stage. The depths are the tiles'."""
        query_elements = self.block_m * max(depth, value_depth)
        stage_elements = self.stages * self.block_n * (depth + value_depth)
        return _BARRIERS_BYTES + (query_elements + stage_elements) * _ITEMSIZE

    def registers(self, value_depth: int) -> int:
        """Return the registers of a thread for scores, weights (two per register) and output."""
        return self.block_n // 2 + self.block_n // 4 + value_depth // 2

    @property
    def max_registers(self) -> int:
        """Return the maximum of those registers."""
        return _MAX_REGISTERS[self.warpgroups]


def all_configs() -> Sequence[Config]:
    """Return every configuration, in the order in which they are tried."""
    return [
        {
            "block_m": block_m,
            "block_n": block_n,
            "stages": stages,
            "pingpong": pingpong,
            "splits": splits,
        }
        for block_m in (128, 192, 64)
        for block_n in (128, 64)
        for stages in (2, 3)
        for pingpong in ((True, False) if block_m > _WGMMA_ROWS else (False,))
        for splits in (SPLITS if block_m == _WGMMA_ROWS and stages == _MIN_STAGES else (1,))
    ]
