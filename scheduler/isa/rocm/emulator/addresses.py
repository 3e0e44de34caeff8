"""Where each lane reaches: closures that give [waves, lanes] bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from scheduler.isa.rocm.emulator.alu.row import Type
from scheduler.isa.rocm.emulator.memory import Addresses
from scheduler.isa.rocm.emulator.operands import (
    PRIVATE_APERTURE,
    SHARED_APERTURE,
    File,
    Operand,
)
from scheduler.isa.rocm.emulator.sources import UnreadableError, raw, row_of, scalar
from scheduler.isa.rocm.emulator.spaces import GLOBAL, LDS, SCRATCH, Space
from scheduler.isa.rocm.emulator.state import Group, Mask

Step = Callable[[Group], None]
At = Callable[[Group], Addresses]


def global_address(address: Operand, base: Operand, offset: int, accumulation: int) -> At:
    """A 64-bit address of each lane, or a scalar one and 32 bits of each."""
    if base.file is File.OFF:
        pair = raw(address, 64, accumulation, Type.U64)
        if offset:
            return lambda g: pair(g).view(np.int64) + offset
        return lambda g: pair(g).view(np.int64)
    start = scalar(base, 64)
    if address.file is File.OFF:
        return lambda g: np.broadcast_to(g.wide_vector(start(g)) + offset, (g.count, g.lanes))
    word = raw(address, 32, accumulation, Type.U32)
    return lambda g: word(g).astype(np.int64) + (g.wide_vector(start(g)) + offset)


def scratch_address(address: Operand, base: Operand, offset: int, accumulation: int) -> At:
    """Bytes of the lane's own."""
    parts = [
        raw(each, 32, accumulation, Type.U32)
        for each in (address, base)
        if each.file is not File.OFF
    ]

    def at(g: Group) -> Addresses:
        total = np.full((g.count, g.lanes), offset, np.int64)
        for part in parts:
            total = total + part(g).astype(np.int32)
        return total

    return at


def lds_address(operand: Operand, offset: int, accumulation: int) -> At:
    """Bytes within the block's LDS."""
    if operand.file not in (File.VECTOR, File.ACCUMULATION):
        raise UnreadableError(operand.text)
    row = row_of(operand, accumulation)
    if offset:
        return lambda g: g.v[row].astype(np.int64) + offset
    return lambda g: g.v[row].astype(np.int64)


@contextmanager
def only(g: Group, lanes: Mask) -> Iterator[None]:
    """Only these of the lanes that are on, for one access."""
    full, mask = g.full, g.mask
    g.mask = mask & lanes
    g.full = bool(g.mask.all())
    try:
        yield
    finally:
        g.full, g.mask = full, mask


def by_aperture(at: At, move: Callable[[Space, At], Step]) -> Step:
    """A generic address: in LDS, in scratch, or in memory, by its upper half."""
    spaces: tuple[tuple[int, Space], ...] = ((SHARED_APERTURE, LDS), (PRIVATE_APERTURE, SCRATCH))
    found: list[Addresses] = []
    steps = [(upper, move(space, lambda _: found[-1] & 0xFFFF_FFFF)) for upper, space in spaces]
    plain = move(GLOBAL, lambda _: found[-1])

    def step(g: Group) -> None:
        addresses = at(g)
        upper = addresses >> 32
        found.append(addresses)
        for aperture, each in steps:
            here = (upper == aperture) & g.mask
            if here.any():
                with only(g, here):
                    each(g)
        rest = (upper != SHARED_APERTURE) & (upper != PRIVATE_APERTURE)
        if (rest & g.mask).any():
            with only(g, rest):
                plain(g)
        found.pop()

    return step
