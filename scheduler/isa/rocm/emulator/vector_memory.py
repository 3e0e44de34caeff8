"""Global, flat and scratch loads and stores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from scheduler.isa.rocm.emulator.addresses import (
    AddressFunction,
    global_address,
    scratch_address,
    select_by_aperture,
)
from scheduler.isa.rocm.emulator.operands import Operand, Operands, RegisterFile
from scheduler.isa.rocm.emulator.sources import UnreadableError, row_of
from scheduler.isa.rocm.emulator.spaces import GLOBAL, LDS, SCRATCH, Space
from scheduler.isa.rocm.emulator.state import Group
from scheduler.isa.rocm.emulator.transfers import Transfer, read_lanes, transfer_of, write_lanes

Step = Callable[[Group], None]
_VECTOR = (RegisterFile.VECTOR, RegisterFile.ACCUMULATION)


def load_step(space: Space, at: AddressFunction, row: int, transfer: Transfer, index: int) -> Step:
    size = transfer.size

    def step(g: Group) -> None:
        addresses = at(g)
        g.record(index, addresses, size)
        write_lanes(g, row, transfer, space.load(g, index, addresses, transfer))

    return step


def store_step(space: Space, at: AddressFunction, row: int, transfer: Transfer, index: int) -> Step:
    size = transfer.size

    def step(g: Group) -> None:
        addresses = at(g)
        g.record(index, addresses, size)
        space.store(g, index, addresses, transfer, read_lanes(g, row, transfer))

    return step


def load_to_lds_step(at: AddressFunction, offset: int, transfer: Transfer, index: int) -> Step:
    """Load each lane's value into LDS: at M0's base, in lane order."""

    def step(g: Group) -> None:
        addresses = at(g)
        g.record(index, addresses, transfer.size)
        values = GLOBAL.load(g, index, addresses, transfer)
        lane = np.arange(g.lanes, dtype=np.int64)[None] * max(4, transfer.size)
        target = (g.vector(g.m0) & np.uint32(0xFFFF)).astype(np.int64) + offset + lane
        target = np.broadcast_to(target, (g.count, g.lanes))
        whole = transfer if transfer.size >= 4 else Transfer(4)
        LDS.store(g, index, target, whole, values)

    return step


def make(name: str, operands: Operands, accumulation: int, index: int) -> Step | None:
    """Make ``global_load_dword`` and similar ones; None for other instructions."""
    space, _, rest = name.partition("_")
    verb, _, kind = rest.partition("_")
    if space not in ("global", "flat", "scratch") or verb not in ("load", "store"):
        return None
    to_lds = kind.startswith("lds_")
    transfer = transfer_of(kind.removeprefix("lds_"), verb == "load")
    if transfer is None:
        return None
    remaining = list(operands.operands)
    offset = operands.number("offset")
    if space == "flat" and len(remaining) == 2:
        remaining.append(Operand(RegisterFile.OFF, text="off"))
    if to_lds or "lds" in operands.words:
        address, base = remaining[-2:]
        return load_to_lds_step(
            global_address(address, base, offset, accumulation), offset, transfer, index
        )
    if len(remaining) != 3:
        raise UnreadableError(name)
    data, address = (remaining[0], remaining[1]) if verb == "load" else (remaining[1], remaining[0])
    if data.file not in _VECTOR:
        raise UnreadableError(data.text)
    row = row_of(data, accumulation)
    if transfer.half is None and data.half and transfer.size == 2:
        transfer = Transfer(2, transfer.signed, 1 if data.half == "h" else 0)
    move = load_step if verb == "load" else store_step
    if space == "scratch":
        at = scratch_address(address, remaining[2], offset, accumulation)
        return move(SCRATCH, at, row, transfer, index)
    at = global_address(address, remaining[2], offset, accumulation)
    if space == "global":
        return move(GLOBAL, at, row, transfer, index)
    return select_by_aperture(at, lambda where, to: move(where, to, row, transfer, index))
