"""The rows of the vector unit's table: one describes one instruction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from scheduler.isa.rocm.instruction_set.table import find_opcode
from scheduler.targets.amd import Feature

Bits = npt.NDArray[np.uint32]
"""Raw registers: the last dimension is lanes, the others waves."""

Lanes = npt.NDArray[Any]
"""Values of one operand, of its type, in the shape of ``Bits``."""

Modifiers = Mapping[str, tuple[int, ...]]
"""The modifiers after the operands: ``op_sel:[0,1]`` is (0, 1), ``cbsz:2`` is (2,); words
(``src0_sel:BYTE_1``) are left out."""


class Type(StrEnum):
    """How an operand's bits are interpreted. 64 bits: two registers, the lower half in the first.
    16 bits: one half of a register (selected by ``op_sel``, ``.l`` and ``.h``)."""

    B16 = "b16"
    U16 = "u16"
    I16 = "i16"
    F16 = "f16"
    BF16 = "bf16"
    B32 = "b32"
    U32 = "u32"
    I32 = "i32"
    F32 = "f32"
    B64 = "b64"
    U64 = "u64"
    I64 = "i64"
    F64 = "f64"
    MASK = "mask"
    """One bit per lane (VCC, or a pair of scalar registers), as bool."""


@dataclass(frozen=True)
class AluRow:
    """One instruction, whatever its encoding: ``name`` is its mnemonic in the oldest spelling,
    without ``_e32``, ``_e64``, ``_dpp``, ``_sdwa``.

    ``compute`` takes the sources as NumPy arrays of their types (F16 as float16, BF16 as float32,
    MASK as bool), with negations and absolute values applied, and returns the results likewise, one
    or a tuple; the caller applies clamp and output factors. Arrays are [waves, lanes], scalars and
    constants [waves, 1] or [1, 1]; results broadcast to [waves, lanes]. Inactive lanes are computed
    and discarded, so nothing may raise: the caller has NumPy ignore floating-point errors.

    ``packed``: the types are one element's, and all arrays have a leading dimension of two: the low
    elements (``op_sel``, ``neg_lo``), then the high ones (``op_sel_hi``, ``neg_hi``); elements are
    the halves of a register, or for 32 bits the registers of a pair. ``mixed``: each source is a
    register or, if its bit of ``op_sel_hi`` is set, the half that ``op_sel`` selects, widened from
    f16; ``neg_lo`` negates, ``neg_hi`` takes the absolute value. ``needs``: only GPUs with this
    feature have it; None: all.
    """

    name: str
    results: tuple[Type, ...]
    sources: tuple[Type, ...]
    compute: Callable[..., Any]
    packed: bool = False
    mixed: bool = False
    needs: Feature | None = None

    @property
    def accumulates(self) -> bool:
        """Whether the old result is the last source."""
        return find_opcode(self.name).row.accumulates


Compute = TypeVar("Compute", bound=Callable[..., Any])


def computes(
    rows: list[AluRow], name: str, results: tuple[Type, ...], sources: tuple[Type, ...]
) -> Callable[[Compute], Compute]:
    """Add the row that a function computes to a table."""

    def add(compute: Compute) -> Compute:
        rows.append(AluRow(name, results, sources, compute))
        return compute

    return add


@dataclass(frozen=True)
class BlockRow:
    """One instruction over whole registers: a matrix product, a conversion of several elements.

    ``compute(*blocks, modifiers)`` takes, for each source, as many registers as ``sources`` says,
    uint32 [waves, registers, lanes], and returns the ``results`` registers likewise. An inline
    float constant is repeated in every register. ``reads_old``: the old result is the last block.
    ``needs`` as in ``AluRow``.
    """

    name: str
    results: int
    sources: tuple[int, ...]
    compute: Callable[..., Bits]
    reads_old: bool = False
    needs: Feature | None = None
