"""LDS loads and stores."""

from __future__ import annotations

import re
from collections.abc import Callable

from scheduler.isa.rocm.emulator.addresses import AddressFunction, lds_address
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
    one = _ONE.fullmatch(name)
    transfer = transfer_of(one[2], one[1] == "read") if one else None
    if one is None or transfer is None or len(operands.operands) != 2:
        return None
    first, second = operands.operands
    data, address = (first, second) if one[1] == "read" else (second, first)
    at = lds_address(address, operands.number("offset"), accumulation)
    move = load_step if one[1] == "read" else store_step
    if transfer.size == 2 and data.half:
        transfer = Transfer(2, transfer.signed, 1 if data.half == "h" else 0)
    return move(LDS, at, row_of(data, accumulation), transfer, index)


def _pair(match: re.Match[str], operands: Operands, accumulation: int, index: int) -> Step:
    """Two addresses per lane, by offsets in units of the width (times 64)."""
    size = int(match[3]) // 8
    unit = size * (64 if match[2] else 1)
    offsets = [operands.number(name) * unit for name in ("offset0", "offset1")]
    transfer = Transfer(size)
    if match[1] == "read":
        target, address = operands.operands
        at = lds_address(address, 0, accumulation)
        return _load_two(at, offsets, row_of(target, accumulation), transfer, index)
    address, one, other = operands.operands
    at = lds_address(address, 0, accumulation)
    rows = [row_of(one, accumulation), row_of(other, accumulation)]
    return _store_two(at, offsets, rows, transfer, index)


def _load_two(
    at: AddressFunction, offsets: list[int], row: int, transfer: Transfer, index: int
) -> Step:
    def step(g: Group) -> None:
        start = at(g)
        first, second = start + offsets[0], start + offsets[1]
        g.record(index, first, transfer.size, second)
        values = LDS.load(g, index, first, transfer)
        others = LDS.load(g, index, second, transfer)
        write_lanes(g, row, transfer, values)
        write_lanes(g, row + transfer.words, transfer, others)

    return step


def _store_two(
    at: AddressFunction, offsets: list[int], rows: list[int], transfer: Transfer, index: int
) -> Step:
    def step(g: Group) -> None:
        start = at(g)
        first, second = start + offsets[0], start + offsets[1]
        g.record(index, first, transfer.size, second)
        LDS.store(g, index, first, transfer, read_lanes(g, rows[0], transfer))
        LDS.store(g, index, second, transfer, read_lanes(g, rows[1], transfer))

    return step
