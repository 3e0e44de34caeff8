"""The sizes of attention's tiles in HIP, and their use of LDS and registers on each GPU.

The arithmetic is that of ``kiln/attention_cores.h`` (matrix instructions) and
``kiln/attention_plain.h`` (element types without matrix instructions on the GPU).
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.arithmetic import round_up
from scheduler.codegen.kernel import ConfigValue
from scheduler.codegen.template import Config
from scheduler.ir.dtypes import DType
from scheduler.matrix_instructions import COMMON_SIZE, WIDEST_STEP_K, MatrixInstruction
from scheduler.targets.model import HipHardware

_WIDE_ROWS = 32  # rows of the wider instructions for 16-bit elements
_HALF_BYTES = 2
_REGISTER_BYTES = 4
_LANE_READ_BYTES = 16  # at once
_MIN_KEYS = 32  # of a tile that shares LDS with the tile of values
# Above this, tiles of 32 rows and keys do not fit into 64 KiB.
_DEEP_HEAD_BYTES = 512
# For addresses, and operands being read from LDS.
_OTHER_REGISTERS = 48
_PREFETCH_REGISTERS = 16  # addresses of the next tile
# Accumulators of a lane without matrix instructions.
_MAX_PLAIN_ACCUMULATORS = 160


@dataclass(frozen=True)
class AttentionConfig:
    """A block of ``threads`` has ``block_m`` rows and walks the columns ``block_n`` at a time;
    ``splits`` blocks share the columns of the same rows, and a second kernel combines their
    results: for few rows of many columns."""

    block_m: int
    block_n: int
    threads: int
    splits: int = 1

    @property
    def one_tile(self) -> bool:
        """Whether values replace keys in LDS once the keys are multiplied."""
        return self.block_n < _MIN_KEYS

    def tile_pair_size(self, keys: int, values: int) -> int:
        """Return the combined LDS size of a tile of keys and a tile of values."""
        return max(keys, values) if self.one_tile else keys + values

    @staticmethod
    def create(config: Config) -> AttentionConfig:
        """Create from a candidate's mapping."""
        names = AttentionConfig.__dataclass_fields__
        return AttentionConfig(**{name: int(config[name]) for name in names})

    def items(self) -> dict[str, ConfigValue]:
        """Return the parameters, named as in the ledger."""
        return dict(vars(self))


@dataclass(frozen=True)
class AttentionShape:
    """The actual depths of a head (``depth``, ``value_depth``), and the type of the tiles."""

    element: DType
    depth: int
    value_depth: int

    @property
    def padded_depth(self) -> int:
        """Return the depth padded with zeros, so that every target's steps divide it."""
        return round_up(self.depth, WIDEST_STEP_K)

    @property
    def padded_value_depth(self) -> int:
        """Return the value depth padded with zeros likewise."""
        return round_up(self.value_depth, WIDEST_STEP_K)

    @property
    def is_deep(self) -> bool:
        """Whether no tile of keys fits into LDS beside one of values."""
        return max(self.depth, self.value_depth) * self.element.itemsize > _DEEP_HEAD_BYTES

    @property
    def run(self) -> int:
        """Return the minimum number of neighbouring depths of the result per lane."""
        return _LANE_READ_BYTES // self.element.itemsize

    def has_matrix_instruction(self, gpu: HipHardware) -> bool:
        """Whether the GPU has matrix instructions for the tiles' type."""
        return gpu.matrix_instruction(self.element.label) is not None

    # ---- resources of a configuration

    def obstacle(self, config: AttentionConfig, gpus: tuple[HipHardware, ...]) -> str:
        """Return why one of the GPUs cannot run the configuration, or ""."""
        in_lds = self.queries_in_lds(config, gpus)
        for gpu in gpus:
            waves = config.threads // gpu.wavefront
            if waves == 0 or config.block_m % (waves * COMMON_SIZE):
                tiles = f"tiles of {COMMON_SIZE}"
                return f"{waves} waves cannot divide {config.block_m} rows into {tiles}"
            used, limit = self.lds_bytes(config, gpu, queries=in_lds), gpu.max_lds_per_block_bytes
            if used > limit:
                return f"{used} bytes of {gpu.words.shared} exceed the limit of {limit} per block"
            if self._matrix_instruction(config, gpu) is None:
                columns = config.block_n + self.padded_value_depth
                used, limit = config.block_m * columns // config.threads, _MAX_PLAIN_ACCUMULATORS
                kind = "accumulators"
            else:
                used = self.registers(config, gpu, queries=False, ahead=False)
                limit, kind = gpu.limits.attention_registers, "registers"
            if used > limit:
                return f"{used} {kind} per lane exceed the limit of {limit}"
        return ""

    def registers(
        self, config: AttentionConfig, gpu: HipHardware, *, queries: bool, ahead: bool
    ) -> int:
        """Return the registers per lane with matrix cores: output, scores, weights and the rest,
        with ``queries`` in registers, with the next tile ``ahead``."""
        instruction = self._matrix_instruction(config, gpu)
        if instruction is None:
            return 0
        size = self.element.itemsize
        rows = config.block_m * gpu.wavefront // config.threads
        sum_columns = self.padded_value_depth + config.block_n
        sum_bytes = rows * sum_columns * self.element.compute_dtype.itemsize
        operand_elements = rows * (config.block_n + (self.padded_depth if queries else 0))
        tile_elements = config.block_n * (self.padded_depth + self.padded_value_depth)
        register_bytes = (sum_bytes + operand_elements * size * instruction.copies) // gpu.wavefront
        register_bytes += tile_elements * size // config.threads if ahead else 0
        reserved = _OTHER_REGISTERS + (_PREFETCH_REGISTERS if ahead else 0)
        return register_bytes // _REGISTER_BYTES + reserved

    def has_ample_registers(self, config: AttentionConfig, gpu: HipHardware) -> bool:
        """Whether registers hold everything that is best kept in registers."""
        needed = self.registers(config, gpu, queries=True, ahead=True)
        return needed <= gpu.limits.ample_attention_registers

    def queries_in_lds(self, config: AttentionConfig, gpus: tuple[HipHardware, ...]) -> bool:
        """Whether registers of one of the GPUs are too few for the queries."""
        ahead = not config.one_tile
        return any(
            self.registers(config, gpu, queries=True, ahead=ahead) > gpu.limits.attention_registers
            for gpu in gpus
        )

    def ahead(self, config: AttentionConfig, gpus: tuple[HipHardware, ...]) -> bool:
        """Whether registers of all GPUs hold the next tile while one is multiplied."""
        return not config.one_tile and all(
            self.registers(config, gpu, queries=False, ahead=True) <= gpu.limits.attention_registers
            for gpu in gpus
        )

    def lds_bytes(self, config: AttentionConfig, gpu: HipHardware, *, queries: bool) -> int:
        """Return the LDS bytes of a block, with ``queries`` in LDS too."""
        itemsize = self.element.itemsize
        depth, value_depth = self.padded_depth, self.padded_value_depth
        m, n = config.block_m, config.block_n
        if self._matrix_instruction(config, gpu) is None:
            padding = _LANE_READ_BYTES // itemsize  # elements of a row
            tile_elements = config.tile_pair_size(
                n * (depth + padding), value_depth * (n + padding)
            )
            return (tile_elements + m * (depth + padding) + m * (n + padding)) * itemsize
        tile_elements = config.tile_pair_size(n * depth, n * value_depth)
        return (tile_elements + (m * depth if queries else 0)) * itemsize

    def _matrix_instruction(
        self, config: AttentionConfig, gpu: HipHardware
    ) -> MatrixInstruction | None:
        rows = config.block_m * gpu.wavefront // config.threads
        if self.element.itemsize == _HALF_BYTES and rows % _WIDE_ROWS == 0:
            wide = gpu.matrix_instruction(self.element.label, _WIDE_ROWS)
            if wide is not None:
                return wide
        return gpu.matrix_instruction(self.element.label)
