"""Vector instructions that move values between lanes, or use the lane's number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from scheduler.isa.rocm.emulator.alu.row import Type
from scheduler.isa.rocm.emulator.operands import Operand, Operands, RegisterFile
from scheduler.isa.rocm.emulator.sources import (
    UnreadableError,
    read_raw,
    read_scalar,
    row_of,
    write_result,
)
from scheduler.isa.rocm.emulator.state import Group, Value, collapse, map_waves

Step = Callable[[Group], None]
Make = Callable[[Operands, int], Step]


def _destination(operand: Operand) -> int:
    if operand.file is not RegisterFile.SCALAR:
        raise UnreadableError(operand.text)
    return operand.index


def _read_first_lane(operands: Operands, accumulation: int) -> Step:
    target, source = operands.operands[:2]
    index = _destination(target)
    bits = read_raw(source, 32, accumulation, Type.B32)

    def step(g: Group) -> None:
        values = np.broadcast_to(bits(g), (g.count, g.lanes))
        # without active lanes, lane 0
        first = 0 if g.full else g.mask.argmax(axis=1)
        found = values[np.arange(g.count), first]
        g.s[index] = collapse(found.tolist())

    return step


def _lane(operand: Operand) -> Callable[[Group], Value]:
    return read_scalar(operand, 32)


def _read_lane(operands: Operands, accumulation: int) -> Step:
    target, source, lane = operands.operands[:3]
    index = _destination(target)
    bits = read_raw(source, 32, accumulation, Type.B32)
    number = _lane(lane)

    def step(g: Group) -> None:
        values = np.broadcast_to(bits(g), (g.count, g.lanes))
        at = number(g)
        if isinstance(at, int):
            found = values[:, at % g.lanes]
        else:
            found = values[np.arange(g.count), np.array(at) % g.lanes]
        g.s[index] = collapse(found.tolist())

    return step


def _write_lane(operands: Operands, accumulation: int) -> Step:
    target, source, lane = operands.operands[:3]
    row = row_of(target, accumulation)
    value, number = read_scalar(source, 32), _lane(lane)

    def step(g: Group) -> None:
        new, at = value(g), number(g)
        if isinstance(at, int):
            g.v[row][:, at % g.lanes] = new
        else:
            g.v[row][np.arange(g.count), np.array(at) % g.lanes] = new

    return step


def _mbcnt(first: int) -> Make:
    """Count the bits of a mask below the lane, for lanes ``first`` to ``first`` + 31, plus a
    base."""

    def make(operands: Operands, accumulation: int) -> Step:
        target, source, base = operands.operands[:3]
        bits = read_raw(source, 32, accumulation, Type.B32)
        start = read_raw(base, 32, accumulation, Type.U32)
        store = write_result(target, Type.U32, accumulation, 0, False)

        def step(g: Group) -> None:
            lane = np.arange(g.lanes) - first
            below = np.where(lane >= 32, 0xFFFF_FFFF, (1 << np.clip(lane, 0, 31)) - 1)
            counted = np.bitwise_count(bits(g) & below.astype(np.uint32)).astype(np.uint32)
            store(g, counted + start(g))

        return step

    return make


def _swap(operands: Operands, accumulation: int) -> Step:
    one, other = (row_of(each, accumulation) for each in operands.operands[:2])

    def step(g: Group) -> None:
        kept = g.v[one].copy()
        np.copyto(g.v[one], g.v[other], where=g.mask)
        np.copyto(g.v[other], kept, where=g.mask)

    return step


def _permlane_swap(width: int) -> Make:
    """v_permlane16_swap, v_permlane32_swap: swap the odd rows of ``width`` lanes of the first
    register with the even rows of the second."""

    def make(operands: Operands, accumulation: int) -> Step:
        one, other = (row_of(each, accumulation) for each in operands.operands[:2])

        def step(g: Group) -> None:
            lane = np.arange(g.lanes)
            odd, even = lane[lane // width % 2 == 1], lane[lane // width % 2 == 0]
            kept = g.v[one][:, odd]
            g.v[one][:, odd] = g.v[other][:, even]
            g.v[other][:, even] = kept

        return step

    return make


def _permlane16(crossing: bool) -> Make:
    """v_permlane16, v_permlanex16: each lane of a row reads the lane that its four bits of two
    scalars select, from its own row or from the other row of the pair."""

    def make(operands: Operands, accumulation: int) -> Step:
        target, source, low, high = operands.operands[:4]
        bits = read_raw(source, 32, accumulation, Type.B32)
        choice = (read_scalar(low, 32), read_scalar(high, 32))
        store = write_result(target, Type.B32, accumulation, 0, False)

        def step(g: Group) -> None:
            names = map_waves(lambda a, b: a | b << 32, choice[0](g), choice[1](g))
            numbers = np.array([names] if isinstance(names, int) else names, np.uint64)
            lane = np.arange(g.lanes)
            chosen = numbers[:, None] >> (4 * (lane % 16)).astype(np.uint64) & np.uint64(15)
            row = (lane & ~15) ^ (16 if crossing else 0)
            values = np.broadcast_to(bits(g), (g.count, g.lanes))
            at = np.broadcast_to(chosen.astype(np.int64) + row, values.shape)
            store(g, np.take_along_axis(values, at, axis=1))

        return step

    return make


def _permlane64(operands: Operands, accumulation: int) -> Step:
    """v_permlane64: swap the two halves of the wave."""
    target, source = operands.operands[:2]
    bits = read_raw(source, 32, accumulation, Type.B32)
    store = write_result(target, Type.B32, accumulation, 0, False)

    def step(g: Group) -> None:
        values = np.broadcast_to(bits(g), (g.count, g.lanes))
        store(g, np.roll(values, g.lanes // 2, axis=1) if g.lanes == 64 else values)

    return step


def _packed_move(operands: Operands, accumulation: int) -> Step:
    """v_pk_mov_b32: the low result from the first source, the high one from the second."""
    target, first, second = operands.operands[:3]
    select = (*operands.modifiers.get("op_sel", ()), 0, 0)[:2]
    parts = [
        read_raw(_pair_half(each, place), 32, accumulation, Type.B32)
        for each, place in ((first, select[0]), (second, select[1]))
    ]
    row = row_of(target, accumulation)

    def step(g: Group) -> None:
        low, high = (np.array(each(g)) for each in parts)
        np.copyto(g.v[row], low, where=g.mask)
        np.copyto(g.v[row + 1], high, where=g.mask)

    return step


def _pair_half(operand: Operand, place: int) -> Operand:
    if operand.file is RegisterFile.CONSTANT or operand.count < 2:
        return operand
    return replace(operand, index=operand.index + place, count=1)


# -- through LDS's crossbar, without LDS ----------------------------------------------------------


def _addresses(g: Group, row: int, offset: int) -> Any:
    address: npt.NDArray[np.uint32] = g.v[row] + np.uint32(offset)
    return (address >> np.uint32(2)) % np.uint32(g.lanes)


def _bpermute(operands: Operands, accumulation: int) -> Step:
    """ds_bpermute: each lane reads the lane that its byte address selects; inactive lanes give
    zeros."""
    target, address, data = operands.operands[:3]
    at, row = row_of(address, accumulation), row_of(data, accumulation)
    offset = operands.number("offset")
    store = write_result(target, Type.B32, accumulation, 0, False)

    def step(g: Group) -> None:
        values = g.v[row] if g.full else np.where(g.mask, g.v[row], np.uint32(0))
        chosen = _addresses(g, at, offset).astype(np.int64)
        store(g, np.take_along_axis(values, chosen, axis=1))

    return step


def _permute(operands: Operands, accumulation: int) -> Step:
    """ds_permute: each lane sends its value to a lane; lanes that receive none get zeros."""
    target, address, data = operands.operands[:3]
    at, row = row_of(address, accumulation), row_of(data, accumulation)
    offset = operands.number("offset")
    store = write_result(target, Type.B32, accumulation, 0, False)

    def step(g: Group) -> None:
        chosen = _addresses(g, at, offset)
        result = np.zeros((g.count, g.lanes), np.uint32)
        waves, lanes = np.nonzero(g.mask)
        result[waves, chosen[waves, lanes]] = g.v[row][waves, lanes]
        store(g, result)

    return step


def _swizzle(operands: Operands, accumulation: int) -> Step:
    """ds_swizzle: a pattern within groups of 32 lanes (and, or, xor), or within four."""
    target, data = operands.operands[:2]
    row = row_of(data, accumulation)
    pattern = _pattern(operands)
    store = write_result(target, Type.B32, accumulation, 0, False)

    def step(g: Group) -> None:
        lane = np.arange(g.lanes)
        chosen = pattern(lane)
        values = g.v[row] if g.full else np.where(g.mask, g.v[row], np.uint32(0))
        store(g, values[:, chosen])

    return step


def _pattern(operands: Operands) -> Callable[[Any], Any]:
    named = next((word for word in operands.words if word.startswith("offset:swizzle")), "")
    if named:
        return _named_pattern(named)
    offset = operands.number("offset")
    if offset & 0x8000 and offset < 0xC000:
        return lambda lane: (lane & ~3) | (offset >> (2 * (lane & 3)) & 3)
    if offset >= 0xC000:  # rotation of 32 lanes
        by = offset >> 5 & 31
        sign = -1 if offset >> 10 & 1 else 1
        keep = offset & 31
        return lambda lane: (lane & ~31) | ((lane & keep) | ((lane + sign * by) & 31 & ~keep))
    ands, ors, xors = offset & 31, offset >> 5 & 31, offset >> 10 & 31
    return lambda lane: (lane & ~31) | ((((lane & 31) & ands) | ors) ^ xors)


def _named_pattern(text: str) -> Callable[[Any], Any]:
    """Parse ``swizzle(MODE, …)`` as assemblers write it."""
    inside = text.partition("(")[2].rstrip(")")
    mode, *rest = [part.strip().strip('"') for part in inside.split(",")]
    try:
        if mode == "QUAD_PERM":
            quad = np.array([int(each) for each in rest[:4]])
            return lambda lane: (lane & ~3) | quad[lane & 3]
        if mode == "BITMASK_PERM":
            return _bit_pattern(rest[0])
        size = int(rest[0])
        if mode == "BROADCAST":
            which = int(rest[1])
            return lambda lane: (lane & ~(size - 1)) | which
        if mode == "SWAP":
            return lambda lane: lane ^ size
        if mode == "REVERSE":
            return lambda lane: lane ^ (size - 1)
    except (ValueError, IndexError):
        pass
    raise UnreadableError(text)


def _bit_pattern(text: str) -> Callable[[Any], Any]:
    ands = int("".join("1" if each in "pi" else "0" for each in text), 2)
    ors = int("".join("1" if each == "1" else "0" for each in text), 2)
    xors = int("".join("1" if each == "i" else "0" for each in text), 2)
    return lambda lane: (lane & ~31) | ((((lane & 31) & ands) | ors) ^ xors)


MAKERS: dict[str, Make] = {
    "v_readfirstlane_b32": _read_first_lane,
    "v_readlane_b32": _read_lane,
    "v_writelane_b32": _write_lane,
    "v_mbcnt_lo_u32_b32": _mbcnt(0),
    "v_mbcnt_hi_u32_b32": _mbcnt(32),
    "v_swap_b32": _swap,
    "v_permlane16_swap_b32": _permlane_swap(16),
    "v_permlane32_swap_b32": _permlane_swap(32),
    "v_permlane16_b32": _permlane16(False),
    "v_permlanex16_b32": _permlane16(True),
    "v_permlane64_b32": _permlane64,
    "v_pk_mov_b32": _packed_move,
    "ds_bpermute_b32": _bpermute,
    "ds_permute_b32": _permute,
    "ds_swizzle_b32": _swizzle,
}
