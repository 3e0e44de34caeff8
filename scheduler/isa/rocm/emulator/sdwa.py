"""Sub-dword addressing (GFX9): a byte or a half of an operand, and of the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from scheduler.isa.rocm.emulator.operands import Operands

_BITS = {"DWORD": (0, 32), "WORD_0": (0, 16), "WORD_1": (16, 16)}
_BITS |= {f"BYTE_{n}": (8 * n, 8) for n in range(4)}


def _selector(operands: Operands, name: str, default: str) -> str:
    return next(
        (word.partition(":")[2] for word in operands.words if word.startswith(name + ":")), default
    )


def select(operands: Operands, number: int, extended: bool) -> Callable[[Any], Any] | None:
    """Return the selection from source ``number``'s register; None: the whole register is read."""
    shift, bits = _BITS.get(_selector(operands, f"src{number}_sel", "DWORD"), (0, 32))
    if bits == 32:
        return None
    low, mask = np.uint32(shift), np.uint32((1 << bits) - 1)
    sign = np.uint32(1 << (bits - 1))
    if extended:
        return lambda value: (((value >> low) & mask) ^ sign) - sign
    return lambda value: (value >> low) & mask


def place_result(operands: Operands) -> Callable[[Any, Any], Any] | None:
    """Return a function of result and old value for the register's new value; None: the result is
    the whole register."""
    shift, bits = _BITS.get(_selector(operands, "dst_sel", "DWORD"), (0, 32))
    if bits == 32:
        return None
    unused = _selector(operands, "dst_unused", "UNUSED_PAD")
    low, mask = np.uint32(shift), np.uint32((1 << bits) - 1)
    kept = np.uint32(~(((1 << bits) - 1) << shift) & 0xFFFF_FFFF)
    sign = np.uint32(1 << (bits - 1))

    def place(result: Any, old: Any) -> Any:
        chosen = result & mask
        if unused == "UNUSED_PRESERVE":
            return (old & kept) | (chosen << low)
        if unused == "UNUSED_SEXT":
            return ((chosen ^ sign) - sign) << low
        return chosen << low

    return place
