"""A matrix product, as the rules and estimates of its configurations see it."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.ir.dtypes import DType
from scheduler.matrix_instructions import COMMON_SIZE, MatrixInstruction
from scheduler.targets.model import HipHardware

_FMA_STEP_K = 4  # of ``kiln::mma::Tile`` without matrix instructions


@dataclass(frozen=True)
class GemmProblem:
    """The inputs of the rules: the element type, sizes at the hints, and possible load widths.

    ``obstacles_a`` gives for each width (elements per load) why it is not possible, or "".
    ``masked_a``: elements are computed or masked, each with indices of its own. ``copy_obstacle``
    is why operands cannot be copied to shared memory unchanged, or ""; ``direct_obstacle`` why they
    cannot be loaded into LDS without going through registers. ``along_k``: neighbours along k are
    contiguous in memory, in both operands. ``allow_tf32``: f32 elements may be rounded.
    ``distinct_a``: the distinct share of A's m x k elements in memory, less than 1 if windows
    overlap.
    """

    element: DType
    batches: int
    m: int
    n: int
    k: int
    obstacles_a: tuple[tuple[int, str], ...]
    obstacles_b: tuple[tuple[int, str], ...]
    masked_a: bool = False
    masked_b: bool = False
    copy_obstacle: str = ""
    along_k: bool = False
    direct_obstacle: str = ""
    allow_tf32: bool = False
    distinct_a: float = 1.0
    distinct_b: float = 1.0

    @property
    def tf32_options(self) -> tuple[int, ...]:
        """Return the possible values of a configuration's ``allow_tf32``."""
        return (1, 0) if self.allow_tf32 else (0,)

    def widest_loads(self) -> tuple[int, int]:
        """Return the maximum elements per load of A and of B."""
        a, b = (
            max(width for width, obstacle in obstacles if not obstacle)
            for obstacles in (self.obstacles_a, self.obstacles_b)
        )
        return a, b


def vector_widths(element: DType) -> tuple[int, ...]:
    """Return the elements in loads of 16 bytes, of 8 bytes, and of one element."""
    return tuple(dict.fromkeys((16 // element.itemsize, max(1, 8 // element.itemsize), 1)))


def matrix_instruction(
    element: DType, gpu: HipHardware, size: int = COMMON_SIZE, *, allow_tf32: bool = False
) -> MatrixInstruction | None:
    """Return the instruction that a GPU multiplies tiles of ``size`` rows and columns with; None:
    plain FMA, and with ``allow_tf32`` no instruction of its own."""
    return gpu.matrix_instruction("tf32" if allow_tf32 else element.label, size)


def step_k(
    element: DType, gpu: HipHardware, size: int = COMMON_SIZE, *, allow_tf32: bool = False
) -> int:
    """Return the elements along k that one step of ``kiln::mma::Tile`` takes."""
    instruction = matrix_instruction(element, gpu, size, allow_tf32=allow_tf32)
    return _FMA_STEP_K if instruction is None else instruction.step_k
