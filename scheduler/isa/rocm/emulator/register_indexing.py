"""Registers with computed numbers: GFX9's index mode, RDNA's relative moves.

GFX9: between ``s_set_gpr_idx_on`` and ``s_set_gpr_idx_off`` the lower byte of M0 is added to the
numbers of the registers that the mode selects; only moves are supported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from scheduler.isa.listing import Instruction
from scheduler.isa.rocm.emulator.operands import M0, Operands, RegisterFile
from scheduler.isa.rocm.emulator.sources import UnreadableError, read_scalar, row_of
from scheduler.isa.rocm.emulator.state import Group, map_waves

Step = Callable[[Group], None]
_ON, _OFF, _INDEX, _MODE = (
    "s_set_gpr_idx_on",
    "s_set_gpr_idx_off",
    "s_set_gpr_idx_idx",
    "s_set_gpr_idx_mode",
)
_LOOK_BACK = 64
_SOURCE, _DESTINATION = 1, 2
_RELATIVE = {
    "v_movrels_b32": _SOURCE,
    "v_movreld_b32": _DESTINATION,
    "v_movrelsd_b32": _SOURCE | _DESTINATION,
}


def mode_at(instructions: Sequence[Instruction], index: int) -> int:
    """Return which registers are indexed at an instruction: bits for the first source, the
    result."""
    for at in range(index - 1, max(-1, index - _LOOK_BACK), -1):
        mnemonic = instructions[at].mnemonic
        if mnemonic == _OFF:
            return 0
        if mnemonic in (_ON, _MODE):
            words = instructions[at].operands
            return (_SOURCE if "SRC0" in words else 0) | (_DESTINATION if "DST" in words else 0)
    return 0


def make(
    name: str, operands: Operands, accumulation: int, mode: int, vector_registers: int
) -> Step | None:
    """Make indexed moves, and the instructions that set the index; None for other instructions."""
    if name in (_ON, _INDEX):
        read = read_scalar(operands.operands[0], 32)

        def set_index(g: Group) -> None:
            g.s[M0] = map_waves(lambda old, new: (old & ~0xFF) | (new & 0xFF), g.s[M0], read(g))

        return set_index
    if name == _MODE:  # evaluated at the instructions that it affects
        return lambda _: None
    relative = _RELATIVE.get(name, mode if name == "v_mov_b32" else 0)
    if not relative:
        return None
    target, source = operands.operands[:2]
    is_vector = source.file is RegisterFile.VECTOR
    if not is_vector and relative & _SOURCE:
        raise UnreadableError(name)
    first_target, last = row_of(target, accumulation), vector_registers - 1
    first_source = row_of(source, accumulation) if is_vector else 0
    scalar = None if is_vector else read_scalar(source, 32)

    def move(g: Group) -> None:
        index = g.vector(g.s[M0])[:, 0].astype(np.int64) & 0xFF
        index = np.broadcast_to(index, (g.count,))
        waves = np.arange(g.count)
        if scalar is not None:
            value: npt.NDArray[np.uint32] = np.broadcast_to(g.vector(scalar(g)), (g.count, g.lanes))
        else:
            rows = np.minimum(first_source + (index if relative & _SOURCE else 0), last)
            value = g.v[np.broadcast_to(rows, (g.count,)), waves]
        rows = np.minimum(first_target + (index if relative & _DESTINATION else 0), last)
        rows = np.broadcast_to(rows, (g.count,))
        g.v[rows, waves] = np.where(g.mask, value, g.v[rows, waves])

    return move


def has_computed_index(instructions: Sequence[Instruction]) -> bool:
    """Whether any register's number is computed, so that any register may be accessed."""
    return any(instruction.mnemonic in (_ON, *_RELATIVE) for instruction in instructions)
