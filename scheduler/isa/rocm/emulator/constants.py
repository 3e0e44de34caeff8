"""The bits of constants in instructions, by the type of their operand."""

from __future__ import annotations

import struct

from scheduler.isa.rocm.emulator.alu.row import Type
from scheduler.isa.rocm.emulator.operands import Operand

_16 = frozenset([Type.B16, Type.U16, Type.I16, Type.F16])
_64 = frozenset([Type.B64, Type.U64, Type.I64, Type.F64])
_M32, _M64 = 0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF


def bit_width(kind: Type) -> int:
    """Return the bits of an operand; a mask has one per lane."""
    if kind in _64:
        return 64
    return 16 if kind in _16 or kind is Type.BF16 else 32


def constant_bits(operand: Operand, kind: Type) -> int:
    """Return a constant's bits. Floats are in the operand's own format, integers sign-extended; a
    literal of a 64-bit float is its upper half, as in the encoding."""
    value = operand.value
    if isinstance(value, float):
        form = "<d" if kind in _64 else "<e" if kind in _16 else "<f"
        bits = int.from_bytes(struct.pack(form, value), "little")
        return bits >> 16 if kind is Type.BF16 else bits
    if kind is Type.F64 and operand.literal and 0 <= value <= _M32:
        return value << 32
    return value & (_M64 if kind in _64 else 0xFFFF if bit_width(kind) == 16 else _M32)
