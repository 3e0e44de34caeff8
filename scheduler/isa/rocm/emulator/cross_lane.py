"""Vector instructions that move values between lanes, or use the lane's number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from scheduler.isa.rocm.emulator.alu.row import Type
from scheduler.isa.rocm.emulator.operands import Operands, RegisterFile
from scheduler.isa.rocm.emulator.sources import (
    UnreadableError,
    read_raw,
    read_scalar,
    row_of,
    write_result,
)
from scheduler.isa.rocm.emulator.state import Group, collapse, map_waves

Step = Callable[[Group], None]
Make = Callable[[Operands, int], Step]
Pattern = Callable[[Any], Any]
"""Returns the lane that each lane reads."""


MAKERS: dict[str, Make] = {}


def _makes(*names: str) -> Callable[[Make], Make]:
    """Register the function that makes the steps of these instructions."""

    def register(make: Make) -> Make:
        MAKERS.update(dict.fromkeys(names, make))
        return make

    return register


@_makes("v_readfirstlane_b32", "v_readlane_b32")
def _read_lane(operands: Operands, accumulation: int) -> Step:
    """Without a lane's number, read the first active lane, or lane 0."""
    target, source, *numbers = operands.operands
    if target.file is not RegisterFile.SCALAR:
        raise UnreadableError(target.text)
    bits = read_raw(source, 32, accumulation, Type.B32)
    number = read_scalar(numbers[0], 32) if numbers else None

    def step(g: Group) -> None:
        values = np.broadcast_to(bits(g), (g.count, g.lanes))
        lane = g.mask.argmax(axis=1) if number is None else np.array(number(g)) % g.lanes
        g.s[target.index] = collapse(values[np.arange(g.count), lane].tolist())

    return step


@_makes("v_writelane_b32")
def _write_lane(operands: Operands, accumulation: int) -> Step:
    target, source, lane = operands.operands[:3]
    row = row_of(target, accumulation)
    value, number = read_scalar(source, 32), read_scalar(lane, 32)

    def step(g: Group) -> None:
        g.v[row][np.arange(g.count), np.array(number(g)) % g.lanes] = value(g)

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


@_makes("v_swap_b32")
def _swap(operands: Operands, accumulation: int) -> Step:
    first, second = (row_of(operand, accumulation) for operand in operands.operands[:2])

    def step(g: Group) -> None:
        old = g.v[first].copy()
        np.copyto(g.v[first], g.v[second], where=g.mask)
        np.copyto(g.v[second], old, where=g.mask)

    return step


def _permlane_swap(width: int) -> Make:
    """v_permlane16_swap, v_permlane32_swap: swap the odd rows of ``width`` lanes of the first
    register with the even rows of the second."""

    def make(operands: Operands, accumulation: int) -> Step:
        first, second = (row_of(operand, accumulation) for operand in operands.operands[:2])

        def step(g: Group) -> None:
            lane = np.arange(g.lanes)
            odd, even = lane[lane // width % 2 == 1], lane[lane // width % 2 == 0]
            old = g.v[first][:, odd]
            g.v[first][:, odd] = g.v[second][:, even]
            g.v[second][:, even] = old

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


@_makes("v_permlane64_b32")
def _permlane64(operands: Operands, accumulation: int) -> Step:
    """v_permlane64: swap the two halves of the wave."""
    target, source = operands.operands[:2]
    bits = read_raw(source, 32, accumulation, Type.B32)
    store = write_result(target, Type.B32, accumulation, 0, False)

    def step(g: Group) -> None:
        values = np.broadcast_to(bits(g), (g.count, g.lanes))
        store(g, np.roll(values, g.lanes // 2, axis=1) if g.lanes == 64 else values)

    return step


@_makes("v_pk_mov_b32")
def _packed_move(operands: Operands, accumulation: int) -> Step:
    """v_pk_mov_b32: the low result from the first source, the high one from the second."""
    target, *sources = operands.operands[:3]
    reads = []
    for source, half in zip(sources, (*operands.modifiers.get("op_sel", ()), 0, 0), strict=False):
        is_pair = source.file is not RegisterFile.CONSTANT and source.count >= 2
        operand = replace(source, index=source.index + half, count=1) if is_pair else source
        reads.append(read_raw(operand, 32, accumulation, Type.B32))
    row = row_of(target, accumulation)

    def step(g: Group) -> None:
        low, high = (np.array(read(g)) for read in reads)
        np.copyto(g.v[row], low, where=g.mask)
        np.copyto(g.v[row + 1], high, where=g.mask)

    return step


# -- through LDS's crossbar, without LDS ----------------------------------------------------------


def _addresses(g: Group, row: int, offset: int) -> Any:
    address: npt.NDArray[np.uint32] = g.v[row] + np.uint32(offset)
    return (address >> np.uint32(2)) % np.uint32(g.lanes)


@_makes("ds_bpermute_b32")
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


@_makes("ds_permute_b32")
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


@_makes("ds_swizzle_b32")
def _swizzle(operands: Operands, accumulation: int) -> Step:
    """ds_swizzle: a pattern within groups of 32 lanes (and, or, xor), or within four."""
    target, data = operands.operands[:2]
    row = row_of(data, accumulation)
    named = next((word for word in operands.words if word.startswith("offset:swizzle")), "")
    try:
        pattern = _named_pattern(named) if named else _numeric_pattern(operands.number("offset"))
    except (ValueError, IndexError):
        raise UnreadableError(named) from None
    store = write_result(target, Type.B32, accumulation, 0, False)

    def step(g: Group) -> None:
        values = g.v[row] if g.full else np.where(g.mask, g.v[row], np.uint32(0))
        store(g, values[:, pattern(np.arange(g.lanes))])

    return step


def _numeric_pattern(offset: int) -> Pattern:
    if offset >= 0xC000:  # rotation of 32 lanes
        by = offset >> 5 & 31
        sign = -1 if offset >> 10 & 1 else 1
        keep = offset & 31
        return lambda lane: (lane & ~31) | ((lane & keep) | ((lane + sign * by) & 31 & ~keep))
    if offset & 0x8000:
        return lambda lane: (lane & ~3) | (offset >> (2 * (lane & 3)) & 3)
    return _bit_pattern(offset & 31, offset >> 5 & 31, offset >> 10 & 31)


def _named_pattern(text: str) -> Pattern:
    """Parse ``swizzle(MODE, …)`` as assemblers write it."""
    mode, *arguments = [part.strip(' "') for part in text.partition("(")[2].strip(")").split(",")]
    if mode == "BITMASK_PERM":
        ands, ors, xors = (
            int("".join("1" if letter in ones else "0" for letter in arguments[0]), 2)
            for ones in ("pi", "1", "i")
        )
        return _bit_pattern(ands, ors, xors)
    numbers = [int(argument) for argument in arguments]
    if mode == "QUAD_PERM":
        quad = np.array(numbers[:4])
        return lambda lane: (lane & ~3) | quad[lane & 3]
    size = numbers[0]
    if mode == "BROADCAST":
        first = numbers[1]
        return lambda lane: (lane & ~(size - 1)) | first
    if mode in ("SWAP", "REVERSE"):
        mask = size if mode == "SWAP" else size - 1
        return lambda lane: lane ^ mask
    raise ValueError(mode)


def _bit_pattern(ands: int, ors: int, xors: int) -> Pattern:
    return lambda lane: (lane & ~31) | ((((lane & 31) & ands) | ors) ^ xors)


MAKERS |= {
    "v_mbcnt_lo_u32_b32": _mbcnt(0),
    "v_mbcnt_hi_u32_b32": _mbcnt(32),
    "v_permlane16_swap_b32": _permlane_swap(16),
    "v_permlane32_swap_b32": _permlane_swap(32),
    "v_permlane16_b32": _permlane16(False),
    "v_permlanex16_b32": _permlane16(True),
}
