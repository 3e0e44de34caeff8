"""LDS loads and stores."""

from __future__ import annotations

import re
from collections.abc import Callable

from scheduler.isa.rocm.emulator.addresses import lds_address
from scheduler.isa.rocm.emulator.operands import Operands
from scheduler.isa.rocm.emulator.sources import row_of
from scheduler.isa.rocm.emulator.spaces import LDS
from scheduler.isa.rocm.emulator.state import Group
from scheduler.isa.rocm.emulator.transfers import Transfer, read_lanes, transfer_of, write_lanes
from scheduler.isa.rocm.emulator.vector_memory import load_step, store_step

Step = Callable[[Group], None]
_ONE = re.compile(r"ds_(read|write)_(\w+)")
_TWO = re.compile(r"ds_(read|write)2(st64)?_b(32|64)")


def make(name: str, operands: Operands, accumulation: int, index: int) -> Step | None:
    """Make plain loads and stores; None for other instructions."""
    two = _TWO.fullmatch(name)
    if two:
        return _pair(two, operands, accumulation, index)
    match = _ONE.fullmatch(name)
    transfer = transfer_of(match[2], match[1] == "read") if match else None
    if match is None or transfer is None or len(operands.operands) != 2:
        return None
    first, second = operands.operands
    data, address = (first, second) if match[1] == "read" else (second, first)
    at = lds_address(address, operands.number("offset"), accumulation)
    move = load_step if match[1] == "read" else store_step
    if transfer.size == 2 and data.half:
        transfer = Transfer(2, transfer.signed, 1 if data.half == "h" else 0)
    return move(LDS, at, row_of(data, accumulation), transfer, index)


def _pair(match: re.Match[str], operands: Operands, accumulation: int, index: int) -> Step:
    """Two addresses per lane, by offsets in units of the width (times 64)."""
    size = int(match[3]) // 8
    unit = size * (64 if match[2] else 1)
    offsets = [operands.number(name) * unit for name in ("offset0", "offset1")]
    transfer = Transfer(size)
    reads = match[1] == "read"
    if reads:
        target, address = operands.operands
        row = row_of(target, accumulation)
        rows = [row, row + transfer.words]
    else:
        address, *data = operands.operands
        first_row, second_row = (row_of(operand, accumulation) for operand in data)
        rows = [first_row, second_row]
    at = lds_address(address, 0, accumulation)

    def step(g: Group) -> None:
        start = at(g)
        places = [start + offset for offset in offsets]
        g.record(index, places[0], size, places[1])
        if reads:
            loaded = [LDS.load(g, index, place, transfer) for place in places]
            for row, values in zip(rows, loaded, strict=True):
                write_lanes(g, row, transfer, values)
        else:
            for row, place in zip(rows, places, strict=True):
                LDS.store(g, index, place, transfer, read_lanes(g, row, transfer))

    return step
