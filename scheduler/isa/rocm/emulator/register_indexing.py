"""Registers with computed numbers: GFX9's index mode, RDNA's relative moves.

GFX9: between ``s_set_gpr_idx_on`` and ``s_set_gpr_idx_off`` the lower byte of M0 is added to the
numbers of the registers that the mode selects; only moves are supported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from scheduler.isa.listing import Instruction
from scheduler.isa.rocm.emulator.operands import M0, Operand, Operands, RegisterFile
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
        return _set_index(operands.operands[0])
    if name == _MODE:
        return _no_op
    relative = _RELATIVE.get(name, mode if name == "v_mov_b32" else 0)
    if not relative:
        return None
    target, source = operands.operands[:2]
    if source.file is not RegisterFile.VECTOR and relative & _SOURCE:
        raise UnreadableError(name)
    return _move(target, source, accumulation, relative, vector_registers)


def _no_op(_: Group) -> None:
    """Do nothing: the mode is evaluated at the instructions that it affects."""


def _set_index(operand: Operand) -> Step:
    read = read_scalar(operand, 32)

    def step(g: Group) -> None:
        g.s[M0] = map_waves(lambda old, new: (old & ~0xFF) | (new & 0xFF), g.s[M0], read(g))

    return step


def _move(target: Operand, source: Operand, accumulation: int, relative: int, count: int) -> Step:
    to, plain = row_of(target, accumulation), source.file is not RegisterFile.VECTOR
    start = 0 if plain else row_of(source, accumulation)
    number = read_scalar(source, 32) if plain else None

    def step(g: Group) -> None:
        index = g.vector(g.s[M0])[:, 0].astype(np.int64) & 0xFF
        index = np.broadcast_to(index, (g.count,))
        waves = np.arange(g.count)
        if number is not None:
            value: npt.NDArray[np.uint32] = np.broadcast_to(g.vector(number(g)), (g.count, g.lanes))
        else:
            rows = np.minimum(start + (index if relative & _SOURCE else 0), count - 1)
            value = g.v[np.broadcast_to(rows, (g.count,)), waves]
        places = np.minimum(to + (index if relative & _DESTINATION else 0), count - 1)
        places = np.broadcast_to(places, (g.count,))
        g.v[places, waves] = np.where(g.mask, value, g.v[places, waves])

    return step


def has_computed_index(instructions: Sequence[Instruction]) -> bool:
    """Whether any register's number is computed, so that any register may be accessed."""
    return any(each.mnemonic in (_ON, *_RELATIVE) for each in instructions)
