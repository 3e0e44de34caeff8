"""The addresses of each lane: closures that return [waves, lanes] bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from scheduler.isa.rocm.emulator.alu.row import Type
from scheduler.isa.rocm.emulator.memory import Addresses
from scheduler.isa.rocm.emulator.operands import (
    PRIVATE_APERTURE,
    SHARED_APERTURE,
    Operand,
    RegisterFile,
)
from scheduler.isa.rocm.emulator.sources import UnreadableError, read_raw, read_scalar, row_of
from scheduler.isa.rocm.emulator.spaces import GLOBAL, LDS, SCRATCH, Space
from scheduler.isa.rocm.emulator.state import Group, Mask

Step = Callable[[Group], None]
AddressFunction = Callable[[Group], Addresses]


def global_address(
    address: Operand, base: Operand, offset: int, accumulation: int
) -> AddressFunction:
    """A 64-bit address per lane, or a scalar one plus 32 bits per lane."""
    if base.file is RegisterFile.OFF:
        pair = read_raw(address, 64, accumulation, Type.U64)
        if offset:
            return lambda g: pair(g).view(np.int64) + offset
        return lambda g: pair(g).view(np.int64)
    start = read_scalar(base, 64)
    if address.file is RegisterFile.OFF:
        return lambda g: np.broadcast_to(g.wide_vector(start(g)) + offset, (g.count, g.lanes))
    word = read_raw(address, 32, accumulation, Type.U32)
    return lambda g: word(g).astype(np.int64) + (g.wide_vector(start(g)) + offset)


def scratch_address(
    address: Operand, base: Operand, offset: int, accumulation: int
) -> AddressFunction:
    """Byte addresses in the lane's scratch memory."""
    parts = [
        read_raw(operand, 32, accumulation, Type.U32)
        for operand in (address, base)
        if operand.file is not RegisterFile.OFF
    ]

    def at(g: Group) -> Addresses:
        total = np.full((g.count, g.lanes), offset, np.int64)
        for part in parts:
            total = total + part(g).astype(np.int32)
        return total

    return at


def lds_address(operand: Operand, offset: int, accumulation: int) -> AddressFunction:
    """Byte addresses in the block's LDS."""
    if operand.file not in (RegisterFile.VECTOR, RegisterFile.ACCUMULATION):
        raise UnreadableError(operand.text)
    row = row_of(operand, accumulation)
    if offset:
        return lambda g: g.v[row].astype(np.int64) + offset
    return lambda g: g.v[row].astype(np.int64)


@contextmanager
def restrict_lanes(g: Group, lanes: Mask) -> Iterator[None]:
    """Restrict the active lanes to these for one access."""
    full, mask = g.full, g.mask
    g.mask = mask & lanes
    g.full = bool(g.mask.all())
    try:
        yield
    finally:
        g.full, g.mask = full, mask


def select_by_aperture(at: AddressFunction, move: Callable[[Space, AddressFunction], Step]) -> Step:
    """Split a generic address by its upper half: LDS, scratch, or global memory."""
    spaces: tuple[tuple[int, Space], ...] = ((SHARED_APERTURE, LDS), (PRIVATE_APERTURE, SCRATCH))
    address_stack: list[Addresses] = []
    steps = [
        (upper, move(space, lambda _: address_stack[-1] & 0xFFFF_FFFF)) for upper, space in spaces
    ]
    plain = move(GLOBAL, lambda _: address_stack[-1])

    def step(g: Group) -> None:
        addresses = at(g)
        upper = addresses >> 32
        address_stack.append(addresses)
        for aperture, step_in_space in steps:
            here = (upper == aperture) & g.mask
            if here.any():
                with restrict_lanes(g, here):
                    step_in_space(g)
        rest = (upper != SHARED_APERTURE) & (upper != PRIVATE_APERTURE)
        if (rest & g.mask).any():
            with restrict_lanes(g, rest):
                plain(g)
        address_stack.pop()

    return step
