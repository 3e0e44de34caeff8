"""Table of matrix instructions: shape, types, and the layout of the operands in a wave.

``kiln/matrix_instructions.h`` is generated from this table, for kernels and for the CPU emulation
(``python -m scheduler.build.matrix_header``); kernel configurations are derived from it too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Literal, TypeAlias

Source: TypeAlias = Literal["lane", "value"]

# Rows and columns of a tile that every target supports: with plain FMA if it has no instruction.
COMMON_SIZE = 16
# Maximum bytes that a lane reads from LDS at once.
_MAX_READ_BYTES = 16
_ELEMENT_BYTES = {"f64": 8, "f32": 4, "tf32": 4, "xf32": 4, "f16": 2, "bf16": 2}  # 1 for all others


class MatrixSet(StrEnum):
    """Instructions that a GPU has all of, or none."""

    MFMA = "MFMA of f32, f16, bf16 and f64"
    MFMA_I8_K16 = "MFMA of i8 with 16 k"
    MFMA_I8_K32 = "MFMA of i8 with 32 k"
    MFMA_XF32 = "MFMA of xf32"  # LLVM's feature xf32-insts
    MFMA_CDNA4 = "MFMA of CDNA 4"  # LLVM's feature gfx950-insts
    WMMA_RDNA3 = "WMMA of RDNA 3"
    WMMA_RDNA4 = "WMMA of RDNA 4"
    MMA = "NVIDIA's, since Ampere"


# How a builtin is called: A, B and C unchanged, or A and B as words; then that many zeros.
# "iu8": a signedness flag precedes each. "fp8", "bf8": the formats' numbers, and scales of 0.
Call: TypeAlias = Literal["0", "3", "words_0", "words_3", "iu8", "fp8", "bf8"]


@dataclass(frozen=True)
class Digit:
    """``stride * (source // divisor % modulus)``: one term of a coordinate."""

    source: Source
    divisor: int
    modulus: int
    stride: int

    def evaluate(self, lane: int, value: int) -> int:
        index = lane if self.source == "lane" else value
        return self.stride * (index // self.divisor % self.modulus)


Coordinate: TypeAlias = tuple[Digit, ...]


@dataclass(frozen=True)
class Layout:
    """The element of a matrix that each lane holds in each of its values: (lane, value) → (row,
    column). Each coordinate is a sum of digits."""

    row: Coordinate
    column: Coordinate

    def evaluate(self, lane: int, value: int) -> tuple[int, int]:
        return (
            sum(digit.evaluate(lane, value) for digit in self.row),
            sum(digit.evaluate(lane, value) for digit in self.column),
        )

    @property
    def transposed(self) -> Layout:
        return Layout(self.column, self.row)


@dataclass(frozen=True)
class MatrixInstruction:
    """D = A B + C, computed by ``lanes`` lanes: A [m, k], B [k, n], C and D [m, n].

    ``name`` is the builtin's name without ``__builtin_amdgcn_``; for NVIDIA, the name of the
    function in ``nvidia/mma.h`` that wraps the PTX instruction. ``element`` (A and B) and
    ``accumulator`` (C and D) are dtype labels, or "tf32": f32 that the function rounds to 10 bits
    of mantissa, to nearest, ties away from zero; "xf32": f32 of which the instruction reads only
    10 bits of mantissa, so that it is rounded before. ``copies`` is the number of lanes that hold
    each element of A and B. ``call`` says what the builtin takes besides A, B and C.
    ``bits``: the builtin takes its operands' bits as 16-bit integers; ``word``: as one or several
    C++ integers of this type. ``source`` names the document that gives shape and layouts.
    """

    name: str
    matrix_set: MatrixSet
    m: int
    n: int
    k: int
    lanes: int
    element: str
    accumulator: str
    a: Layout
    b: Layout
    d: Layout
    source: str
    copies: int = 1
    call: Call = "0"
    bits: bool = False
    word: Literal["", "int", "long"] = ""

    @property
    def family(self) -> str:
        """The family: mfma, wmma or mma."""
        return self.name.partition("_")[0]

    @property
    def register_type(self) -> str:
        """The label of the dtype that registers of A and B hold."""
        return "f32" if self.compute_type == "tf32" else self.element

    @property
    def compute_type(self) -> str:
        """The element type to select by; "tf32" for f32 that may be rounded."""
        return "tf32" if self.element == "xf32" else self.element

    @property
    def a_values(self) -> int:
        """Elements of A per lane."""
        return self.m * self.k * self.copies // self.lanes

    @property
    def b_values(self) -> int:
        """Elements of B per lane."""
        return self.k * self.n * self.copies // self.lanes

    @property
    def d_values(self) -> int:
        """Elements of C and of D per lane."""
        return self.m * self.n // self.lanes

    @property
    def d_columns(self) -> int:
        """The number of distinct columns of D in which a lane has values.

        Value v is in the lane's row v // ``d_columns`` and column v % ``d_columns``. Raises
        ``ValueError`` for a layout with another order of values.
        """
        coordinates = [self.d.evaluate(0, value) for value in range(self.d_values)]
        rows = list(dict.fromkeys(row for row, _ in coordinates))
        columns = list(dict.fromkeys(column for _, column in coordinates))
        if coordinates != [(row, column) for row in rows for column in columns]:
            raise ValueError(f"{self.name}: a lane's results are no grid of rows and columns")
        return len(columns)

    @cached_property
    def a_rows(self) -> int:
        """The number of distinct rows of A in which a lane has values, at the same k in each."""
        return len({self.a.evaluate(0, value)[0] for value in range(self.a_values)})

    @property
    def repeats(self) -> int:
        """The number of consecutive instructions that one LDS read per lane and row of A feeds."""
        return max(
            1,
            _MAX_READ_BYTES // (self.a_values // self.a_rows * _ELEMENT_BYTES.get(self.element, 1)),
        )

    @cached_property
    def step_k(self) -> int:
        """Elements along k per step of ``kiln::mma::Tile``."""
        return self.k * self.repeats


@lru_cache(maxsize=256)
def select(
    sets: tuple[MatrixSet, ...], element: str, m: int = COMMON_SIZE
) -> MatrixInstruction | None:
    """Return the instruction with ``m`` rows and the largest k, of a GPU that has these sets.

    Returns None if it has none for the dtype; products are then plain FMA. "tf32" selects f32 that
    may be rounded.
    """
    return _best(instructions_of(sets), element, m)


@lru_cache(maxsize=32)
def instructions_of(sets: tuple[MatrixSet, ...]) -> tuple[MatrixInstruction, ...]:
    """Return all instructions of the sets, in table order."""
    return tuple(instruction for instruction in INSTRUCTIONS if instruction.matrix_set in sets)


def best_instructions(instructions: Sequence[MatrixInstruction]) -> tuple[MatrixInstruction, ...]:
    """Return the best of one GPU's instructions for each element type and number of rows."""
    kinds = dict.fromkeys((instruction.compute_type, instruction.m) for instruction in instructions)
    best = (_best(instructions, element, m) for element, m in kinds)
    return tuple(instruction for instruction in best if instruction is not None)


def _best(
    instructions: Sequence[MatrixInstruction], element: str, m: int
) -> MatrixInstruction | None:
    candidates = (
        instruction
        for instruction in instructions
        if (instruction.compute_type, instruction.m) == (element, m)
    )
    return max(candidates, key=lambda instruction: instruction.k, default=None)


# ---- the table

_ACCUMULATORS = {"f64": "f64", "i8": "i32"}  # f32 for all others


def _operand_layout(rows: int, lanes: int, values: int) -> Layout:
    """The layout of A: lane L holds row L % ``rows``, with one run of consecutive k.

    On RDNA3 a run is all of k, so that all lanes of a row hold the same.
    """
    return Layout(
        (Digit("lane", 1, rows, 1),),
        (Digit("lane", rows, lanes // rows, values), Digit("value", 1, values, 1)),
    )


def _mfma_row(
    name: str,
    size: int,
    k: int,
    element: str,
    matrix_set: MatrixSet = MatrixSet.MFMA,
    *,
    bits: bool = False,
    call: Call = "3",
    word: Literal["", "int", "long"] = "",
) -> MatrixInstruction:
    groups = 64 // size  # groups of lanes, each with all columns
    a = _operand_layout(size, 64, k // groups)
    if call in ("fp8", "bf8"):
        a = _split_operand_layout(size, k)
    is_f64 = element == "f64"
    adjacent_rows = 1 if is_f64 else 4  # rows in a lane's adjacent values
    d_values = size * size // 64
    document = "AMD CDNA3 ISA, 7.1.4; AMD Matrix Instruction Calculator (CDNA 1 to 3)"
    if matrix_set is MatrixSet.MFMA_CDNA4:
        document = "AMD CDNA4 ISA, dense matrix layouts"
    rows = (
        Digit("value", adjacent_rows, d_values // adjacent_rows, adjacent_rows * groups),
        Digit("lane", size, groups, adjacent_rows),
        Digit("value", 1, adjacent_rows, 1),
    )
    return MatrixInstruction(
        f"mfma_{name}",
        matrix_set,
        *(size, size, k, 64, element, _ACCUMULATORS.get(element, "f32")),
        *(a, a.transposed, Layout(rows, (Digit("lane", 1, size, 1),))),
        source=document,
        call=call,
        bits=bits,
        word=word,
    )


def _split_operand_layout(size: int, k: int) -> Layout:
    """The layout of A if a lane's 32 values of 8 bits form two runs along k.

    Each run is adjacent to the other lanes' runs.
    """
    groups = 64 // size
    return Layout(
        (Digit("lane", 1, size, 1),),
        (
            Digit("value", 16, 2, k // 2),
            Digit("lane", size, groups, 16),
            Digit("value", 1, 16, 1),
        ),
    )


def _wmma_row(
    name: str, element: str, matrix_set: MatrixSet, call: Call = "0"
) -> MatrixInstruction:
    """A WMMA instruction of RDNA3 or RDNA4.

    RDNA3: both halves of the wave hold all of A and B, and alternate rows of D. RDNA4: each half
    holds one half of k and of D's rows.
    """
    is_rdna3 = matrix_set is MatrixSet.WMMA_RDNA3
    a = Layout((Digit("lane", 1, 16, 1),), (Digit("value", 1, 16, 1),))
    rows = (Digit("value", 1, 8, 2), Digit("lane", 16, 2, 1))
    if not is_rdna3:
        a = _operand_layout(16, 32, 8)
        rows = (Digit("lane", 16, 2, 8), Digit("value", 1, 8, 1))
    return MatrixInstruction(
        f"wmma_{name}" if is_rdna3 else f"wmma_{name}_gfx12",
        matrix_set,
        *(16, 16, 16, 32, element, _ACCUMULATORS.get(element, "f32")),
        *(a, a.transposed, Layout(rows, (Digit("lane", 1, 16, 1),))),
        source="AMD RDNA3 ISA, 7.9" if is_rdna3 else "AMD RDNA4 ISA, 7.12",
        copies=2 if is_rdna3 else 1,
        call=call,
        bits=element == "bf16",
        word="" if call == "0" else "int",
    )


def _mma_row(element: str) -> MatrixInstruction:
    """NVIDIA, since sm_80: a lane holds two rows of A and D, and two adjacent columns of D."""
    group, in_group = Digit("lane", 4, 8, 1), Digit("lane", 1, 4, 2)
    rows, pair = Digit("value", 2, 2, 8), Digit("value", 1, 2, 1)
    return MatrixInstruction(
        f"mma_m16n8k16_f32_{element}",
        MatrixSet.MMA,
        *(16, 8, 16, 32, element, "f32"),
        a=Layout((group, rows), (in_group, pair, Digit("value", 4, 2, 8))),
        b=Layout((in_group, pair, rows), (group,)),
        d=Layout((group, rows), (in_group, pair)),
        source="PTX ISA: matrix fragments for mma.m16n8k16 with floating point type",
    )


def _mma_i8_row() -> MatrixInstruction:
    """NVIDIA's 8-bit integer instruction: four adjacent k where 16-bit types have two.

    8-bit floats (since sm_89) are not in the table: Ada and Hopper accumulate them with 13 bits of
    mantissa (Zhang et al., "SageAttention2", 2024; DeepSeek-V3's report, 3.5.2), not in f32.
    """
    group, in_group = Digit("lane", 4, 8, 1), Digit("lane", 1, 4, 4)
    adjacent_k = Digit("value", 1, 4, 1)
    return MatrixInstruction(
        "mma_m16n8k32_i32_i8",
        MatrixSet.MMA,
        *(16, 8, 32, 32, "i8", "i32"),
        a=Layout(
            (group, Digit("value", 4, 2, 8)), (in_group, adjacent_k, Digit("value", 8, 2, 16))
        ),
        b=Layout((in_group, adjacent_k, Digit("value", 4, 2, 16)), (group,)),
        d=_mma_row("f16").d,
        source="PTX ISA: matrix fragments for mma.m16n8k32 with integer type",
    )


def _mma_tf32_row() -> MatrixInstruction:
    """NVIDIA's instruction for f32 that ``float32_matmul_precision`` allows to be rounded."""
    group, in_group = Digit("lane", 4, 8, 1), Digit("lane", 1, 4, 1)
    f16_row = _mma_row("f16")
    return MatrixInstruction(
        "mma_m16n8k8_f32_tf32",
        MatrixSet.MMA,
        *(16, 8, 8, 32, "tf32", "f32"),
        a=Layout((group, Digit("value", 1, 2, 8)), (in_group, Digit("value", 2, 2, 4))),
        b=Layout((in_group, Digit("value", 1, 2, 4)), (group,)),
        d=f16_row.d,
        source="PTX ISA: matrix fragments for mma.m16n8k8; cvt.rna.tf32.f32",
    )


INSTRUCTIONS = (
    _mfma_row("f32_16x16x4f32", 16, 4, "f32"),
    _mfma_row("f32_32x32x2f32", 32, 2, "f32"),
    _mfma_row("f32_16x16x16f16", 16, 16, "f16"),
    _mfma_row("f32_32x32x8f16", 32, 8, "f16"),
    _mfma_row("f32_16x16x16bf16_1k", 16, 16, "bf16", bits=True),
    _mfma_row("f32_32x32x8bf16_1k", 32, 8, "bf16", bits=True),
    _mfma_row("f64_16x16x4f64", 16, 4, "f64"),
    _mfma_row("f32_16x16x32_f16", 16, 32, "f16", MatrixSet.MFMA_CDNA4),
    _mfma_row("f32_32x32x16_f16", 32, 16, "f16", MatrixSet.MFMA_CDNA4),
    _mfma_row("f32_16x16x32_bf16", 16, 32, "bf16", MatrixSet.MFMA_CDNA4),
    _mfma_row("f32_32x32x16_bf16", 32, 16, "bf16", MatrixSet.MFMA_CDNA4),
    _mfma_row("f32_16x16x8_xf32", 16, 8, "xf32", MatrixSet.MFMA_XF32),
    _mfma_row("f32_32x32x4_xf32", 32, 4, "xf32", MatrixSet.MFMA_XF32),
    _mfma_row("i32_16x16x16i8", 16, 16, "i8", MatrixSet.MFMA_I8_K16, call="words_3", word="int"),
    _mfma_row("i32_16x16x32_i8", 16, 32, "i8", MatrixSet.MFMA_I8_K32, call="words_3", word="long"),
    _mfma_row("i32_16x16x64_i8", 16, 64, "i8", MatrixSet.MFMA_CDNA4, call="words_3", word="int"),
    _mfma_row(
        "f32_16x16x128_f8f6f4_fp8",
        16,
        128,
        "f8e4m3fn",
        MatrixSet.MFMA_CDNA4,
        call="fp8",
        word="int",
    ),
    _mfma_row(
        "f32_16x16x128_f8f6f4_bf8", 16, 128, "f8e5m2", MatrixSet.MFMA_CDNA4, call="bf8", word="int"
    ),
    _wmma_row("f32_16x16x16_f16_w32", "f16", MatrixSet.WMMA_RDNA3),
    _wmma_row("f32_16x16x16_bf16_w32", "bf16", MatrixSet.WMMA_RDNA3),
    _wmma_row("f32_16x16x16_f16_w32", "f16", MatrixSet.WMMA_RDNA4),
    _wmma_row("f32_16x16x16_bf16_w32", "bf16", MatrixSet.WMMA_RDNA4),
    _wmma_row("i32_16x16x16_iu8_w32", "i8", MatrixSet.WMMA_RDNA3, "iu8"),
    _wmma_row("i32_16x16x16_iu8_w32", "i8", MatrixSet.WMMA_RDNA4, "iu8"),
    _wmma_row("f32_16x16x16_fp8_fp8_w32", "f8e4m3fn", MatrixSet.WMMA_RDNA4, "words_0"),
    _wmma_row("f32_16x16x16_bf8_bf8_w32", "f8e5m2", MatrixSet.WMMA_RDNA4, "words_0"),
    _mma_row("f16"),
    _mma_row("bf16"),
    _mma_i8_row(),
    _mma_tf32_row(),
)
# Rows (= columns) and lanes of the other square results, which only some targets have.
OTHER_SIZES = tuple(
    sorted({(row.m, row.lanes) for row in INSTRUCTIONS if row.m == row.n != COMMON_SIZE})
)
# Along k: a multiple of every target's step of a tile of the common size, for elements of at least
# 16 bits.
WIDEST_STEP_K = max(
    row.step_k for row in INSTRUCTIONS if row.m == COMMON_SIZE and row.element in _ELEMENT_BYTES
)
