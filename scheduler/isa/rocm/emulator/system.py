"""Scalar instructions that read machine state: clocks, hardware registers, the program's
address."""

from __future__ import annotations

from collections.abc import Callable

from scheduler.isa.rocm.emulator.operands import Operands
from scheduler.isa.rocm.emulator.scalar_unit import store_scalar
from scheduler.isa.rocm.emulator.state import Group

Step = Callable[[Group], None]
_CLOCKS = frozenset(["s_memtime", "s_memrealtime"])


def make(name: str, operands: Operands) -> Step | None:
    """Make a step; None for other instructions. A clock counts the accesses recorded so far, so it
    advances."""
    if name in _CLOCKS:
        store = store_scalar(operands.operands[0], 64)
        return lambda g: store(g, g.machine.ticks())
    if name == "s_getpc_b64":
        store = store_scalar(operands.operands[0], 64)
        return lambda g: store(g, 0)
    if name == "s_getreg_b32":
        store = store_scalar(operands.operands[0], 32)
        clock = any("SHADER_CYCLES" in operand.text for operand in operands.operands)
        return lambda g: store(g, g.machine.ticks() & 0xFFFF_FFFF if clock else 0)
    return None
