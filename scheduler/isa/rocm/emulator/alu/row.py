"""What a row of the vector unit's table says of an instruction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

Bits = npt.NDArray[np.uint32]
"""Registers as they are: the last dimension is lanes, the others waves."""


class Type(StrEnum):
    """How an operand's bits are read. Of 64 bits: two registers, the lower half in the first.
    Of 16 bits: one half of a register (``op_sel``, ``.l`` and ``.h`` say which)."""

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
    """A bit of each lane (VCC, or a pair of scalar registers), as bool."""


@dataclass(frozen=True)
class Alu:
    """One instruction, whatever its encoding: ``name`` is its mnemonic in the oldest spelling,
    without ``_e32``, ``_e64``, ``_dpp``, ``_sdwa``.

    ``compute`` takes the sources as NumPy arrays of their types (F16 as float16, BF16 as float32,
    MASK as bool), negations and absolute values applied, and gives the results likewise, one or a
    tuple; clamp and output factors are the caller's. They are [waves, lanes], of scalars and
    constants [waves, 1] or [1, 1]; results broadcast to [waves, lanes]. ``accumulates``: the old
    result is the last source. ``selects``: ``op_sel`` is not the caller's but a keyword of
    ``compute``, as written. Lanes that are switched off are computed and dropped, so nothing may
    raise. Of packed instructions (``v_pk_``) the types are one element's, and all arrays have a
    dimension of two in front: the low elements, then the high ones.
    """

    name: str
    results: tuple[Type, ...]
    sources: tuple[Type, ...]
    compute: Callable[..., Any]
    accumulates: bool = False
    selects: bool = False


@dataclass(frozen=True)
class Matrix:
    """One matrix instruction, by the name with an underscore before the operands' type
    (``v_mfma_f32_16x16x16_f16``).

    ``compute`` takes the sources in the text's order as [registers, waves, lanes], a constant as
    [1, 1, 1], and the modifiers as written (a single number is a tuple of one); it gives
    [``result_registers``, waves, lanes]. ``accumulates``: the old result is one source more.
    """

    name: str
    result_registers: int
    compute: Callable[[tuple[Bits, ...], Mapping[str, tuple[int, ...]]], Bits]
    accumulates: bool = False
