"""gfx950's arbitrary functions of three bits, by truth table (CDNA4 ISA, V_BITOP3_B32)."""

from __future__ import annotations

import numpy as np

from scheduler.isa.rocm.emulator.alu.row import Bits, BlockRow, Modifiers


def _apply_truth_table(a: Bits, b: Bits, c: Bits, truth: int) -> Bits:
    result = np.zeros(np.broadcast_shapes(a.shape, b.shape, c.shape), np.uint32)
    for case in range(8):
        if truth >> case & 1:
            chosen = [
                each if case >> place & 1 else ~each for each, place in ((a, 2), (b, 1), (c, 0))
            ]
            result |= chosen[0] & chosen[1] & chosen[2]
    return result


def _bitop_b32(a: Bits, b: Bits, c: Bits, *, modifiers: Modifiers) -> Bits:
    return _apply_truth_table(a, b, c, modifiers.get("bitop3", (0,))[0])


def _bitop_b16(a: Bits, b: Bits, c: Bits, old: Bits, *, modifiers: Modifiers) -> Bits:
    """Use the halves that ``op_sel`` selects; the destination's other half is unchanged."""
    select = (*modifiers.get("op_sel", ()), 0, 0, 0, 0)[:4]
    one, other, third = (
        each >> np.uint32(16 * place) for each, place in zip((a, b, c), select[:3], strict=True)
    )
    truth = modifiers.get("bitop3", (0,))[0]
    found = _apply_truth_table(one, other, third, truth) & np.uint32(0xFFFF)
    at = np.uint32(16 * select[3])
    result: Bits = (old & ~(np.uint32(0xFFFF) << at)) | (found << at)
    return result


BLOCK_ROWS = (
    BlockRow("v_bitop3_b32", 1, (1, 1, 1), _bitop_b32),
    BlockRow("v_bitop3_b16", 1, (1, 1, 1), _bitop_b16, reads_old=True),
)
