"""Closures that read a vector instruction's typed operands, and write its results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from scheduler.isa.rocm.emulator.alu.rounding import bfloat16_bits
from scheduler.isa.rocm.emulator.alu.row import Type
from scheduler.isa.rocm.emulator.constants import bit_width, constant_bits
from scheduler.isa.rocm.emulator.operands import (
    EXECZ,
    NULL,
    SCC,
    VCCZ,
    Operand,
    RegisterFile,
)
from scheduler.isa.rocm.emulator.state import Group, Value, map_waves

Read = Callable[[Group], npt.NDArray[Any]]
Write = Callable[[Group, Any], None]

DTYPES: dict[Type, type[np.generic]] = {
    Type.B16: np.uint16,
    Type.U16: np.uint16,
    Type.I16: np.int16,
    Type.F16: np.float16,
    Type.BF16: np.uint16,
    Type.B32: np.uint32,
    Type.U32: np.uint32,
    Type.I32: np.int32,
    Type.F32: np.float32,
    Type.B64: np.uint64,
    Type.U64: np.uint64,
    Type.I64: np.int64,
    Type.F64: np.float64,
}
FLOATS = frozenset([Type.F16, Type.BF16, Type.F32, Type.F64])
_UNSIGNED = {16: np.uint16, 32: np.uint32, 64: np.uint64}
_32 = np.uint64(32)


class UnreadableError(Exception):
    """An operand that this emulator does not know: the instruction counts as unknown."""


def row_of(operand: Operand, accumulation: int) -> int:
    """Return the row of a vector register; accumulation registers begin at ``accumulation``."""
    return operand.index + (accumulation if operand.file is RegisterFile.ACCUMULATION else 0)


def read_scalar(operand: Operand, bits: int, kind: Type = Type.B32) -> Callable[[Group], Value]:
    """Read a scalar operand as a number of that many bits."""
    if operand.file is RegisterFile.CONSTANT:
        constant = constant_bits(operand, kind) & ((1 << bits) - 1)
        return lambda _: constant
    if operand.file is not RegisterFile.SCALAR:
        raise UnreadableError(operand.text)
    index = operand.index
    if index == NULL:
        return lambda _: 0
    if index in (SCC, VCCZ, EXECZ):
        return _STATUS[index]
    if bits == 64:
        return lambda g: g.pair(index)
    if bits == 16:
        shift = 16 if operand.half == "h" else 0
        return lambda g: map_waves(lambda value: value >> shift & 0xFFFF, g.s[index])
    return lambda g: g.s[index]


_STATUS: dict[int, Callable[[Group], Value]] = {
    SCC: lambda g: g.scc,
    VCCZ: lambda g: map_waves(lambda value: int(value == 0), g.wide(106)),
    EXECZ: lambda g: map_waves(lambda value: int(value == 0), g.exec),
}


def read_raw(operand: Operand, bits: int, accumulation: int, kind: Type, half: int = 0) -> Read:
    """Read the operand's bits as unsigned integers of 16, 32 or 64 bits."""
    if operand.file in (RegisterFile.VECTOR, RegisterFile.ACCUMULATION):
        row = row_of(operand, accumulation)
        if bits == 32:
            return lambda g: g.v[row]
        if bits == 64:
            return lambda g: (g.v[row + 1].astype(np.uint64) << _32) | g.v[row]
        at = 1 if operand.half == "h" else half
        return lambda g: g.vh[row][:, at::2]
    if operand.file is RegisterFile.CONSTANT:
        number = constant_bits(operand, kind)
        if bits == 16 and half:
            number = constant_bits(operand, Type.B32) >> 16
        constant = np.array([[number & ((1 << bits) - 1)]], _UNSIGNED[bits])
        return lambda _: constant
    value = read_scalar(operand, bits, kind)
    dtype = _UNSIGNED[bits]
    if bits == 16 and half and not operand.half:
        index = operand.index
        value = lambda g: map_waves(lambda number: number >> 16, g.s[index])  # noqa: E731

    def read(g: Group) -> npt.NDArray[Any]:
        number = value(g)
        if isinstance(number, int):
            return np.array([[number]], dtype)
        return np.array(number, dtype)[:, None]

    return read


def reinterpret(bits: Read, kind: Type) -> Read:
    """Reinterpret unsigned integers as values of the type."""
    if kind is Type.BF16:
        return lambda g: (bits(g).astype(np.uint32) << np.uint32(16)).view(np.float32)
    dtype = DTYPES[kind]
    if dtype in (np.uint16, np.uint32, np.uint64):
        return bits
    if bit_width(kind) == 16:
        return lambda g: np.ascontiguousarray(bits(g)).view(dtype)
    return lambda g: bits(g).view(dtype)


def apply_modifiers(read: Read, operand: Operand, kind: Type) -> Read:
    """Apply negation and absolute value: for floats by the sign bit, as the hardware does."""
    if not operand.negative and not operand.absolute:
        return read
    bits = bit_width(kind)
    dtype = _UNSIGNED[bits]
    sign, rest = dtype(1 << (bits - 1)), dtype((1 << (bits - 1)) - 1)
    if operand.absolute and operand.negative:
        return lambda g: (read(g) | sign).astype(dtype, copy=False)
    if operand.absolute:
        return lambda g: (read(g) & rest).astype(dtype, copy=False)
    return lambda g: (read(g) ^ sign).astype(dtype, copy=False)


def read_source(operand: Operand, kind: Type, accumulation: int, half: int = 0) -> Read:
    """Read a typed operand with all its modifiers."""
    if kind is Type.MASK:
        return read_mask(operand)
    plain = not operand.negative and not operand.absolute
    if plain and operand.file in (RegisterFile.VECTOR, RegisterFile.ACCUMULATION):
        row = row_of(operand, accumulation)
        if kind is Type.F32:
            return lambda g: g.vf[row]
        if kind is Type.I32:
            return lambda g: g.vi[row]
    if operand.file is RegisterFile.CONSTANT:
        bits = apply_modifiers(read_raw(operand, bit_width(kind), 0, kind, half), operand, kind)
        value = reinterpret(bits, kind)(None)  # type: ignore[arg-type] # it ignores the state
        return lambda _: value
    read = read_raw(operand, bit_width(kind), accumulation, kind, half)
    return reinterpret(apply_modifiers(read, operand, kind), kind)


def read_mask(operand: Operand) -> Read:
    """Read a mask in scalar registers as booleans of lanes."""
    if operand.file is not RegisterFile.SCALAR:
        raise UnreadableError(operand.text)
    index = operand.index
    return lambda g: g.mask_at(index)


# -- results --------------------------------------------------------------------------------------


def write_result(operand: Operand, kind: Type, accumulation: int, half: int, keeps: bool) -> Write:
    """Write a result to active lanes. For 16 bits ``half`` says which half of the register is
    written, ``keeps`` whether the other one is unchanged (or becomes zero)."""
    if operand.file is RegisterFile.SCALAR and operand.index == NULL:
        return lambda *_: None
    if kind is Type.MASK and operand.file is RegisterFile.SCALAR:
        index = operand.index
        return lambda g, result: g.set_mask(index, result)
    if kind is Type.MASK or operand.file not in (RegisterFile.VECTOR, RegisterFile.ACCUMULATION):
        raise UnreadableError(operand.text)
    row = row_of(operand, accumulation)
    bits = bit_width(kind)
    if kind is Type.F32:
        return lambda g, result: _assign(g, g.vf[row], result)
    if bits == 32:

        def write_word(g: Group, result: Any) -> None:
            is_word = result.dtype.itemsize == 4
            _assign(g, g.v[row], result.view(np.uint32) if is_word else result)

        return write_word
    if bits == 64:

        def write_pair(g: Group, result: Any) -> None:
            number = result.view(np.uint64)
            _assign(g, g.v[row], number)
            _assign(g, g.v[row + 1], number >> _32)

        return write_pair
    at = {"l": 0, "h": 1}.get(operand.half, half)
    if keeps or operand.half:
        return lambda g, result: _assign(g, g.vh[row][:, at::2], half_bits(result, kind))
    return lambda g, result: _assign(g, g.v[row], half_bits(result, kind))


def _assign(g: Group, register: npt.NDArray[Any], result: npt.NDArray[Any]) -> None:
    """Write the active lanes of a register."""
    if g.full:
        register[...] = result
    else:
        np.copyto(register, result, casting="unsafe", where=g.mask)


def half_bits(result: Any, kind: Type) -> npt.NDArray[np.uint16]:
    """Return 16-bit results as bits."""
    if kind is Type.BF16:
        return bfloat16_bits(np.asarray(result, np.float32))
    return np.ascontiguousarray(result, DTYPES[kind]).view(np.uint16)
