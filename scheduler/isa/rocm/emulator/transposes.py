"""Transposing LDS loads (GFX950): ``ds_read_b64_tr_b16`` and similar ones.

Sixteen lanes load a matrix of sixteen columns, whose rows are consecutive in the lanes; each lane
gets a column. Sources: AMD's CDNA4 ISA reference ("LDS read with transpose"); Triton's and
Modular's descriptions of the instruction.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from scheduler.isa.rocm.emulator.addresses import lds_address
from scheduler.isa.rocm.emulator.memory import Words
from scheduler.isa.rocm.emulator.operands import Operands
from scheduler.isa.rocm.emulator.sources import row_of
from scheduler.isa.rocm.emulator.spaces import LDS
from scheduler.isa.rocm.emulator.state import Group
from scheduler.isa.rocm.emulator.transfers import Transfer, write_lanes

Step = Callable[[Group], None]
_NAME = re.compile(r"ds_read_b(64|96)_tr_b(16|8|6|4)")
_COLUMNS = 16


def make(name: str, operands: Operands, accumulation: int, index: int) -> Step | None:
    """Make a step; None for other instructions."""
    match = _NAME.fullmatch(name)
    if not match or len(operands.operands) != 2:
        return None
    target, address = operands.operands
    row = row_of(target, accumulation)
    at = lds_address(address, operands.number("offset"), accumulation)
    bits = int(match[2])
    transfer = Transfer(int(match[1]) // 8)

    def step(g: Group) -> None:
        addresses = at(g)
        g.record(index, addresses, transfer.size)
        whole = np.zeros((transfer.words, g.count, g.lanes), np.uint32)
        whole[:, g.mask] = LDS.load(g, index, addresses, transfer)
        write_lanes(g, row, transfer, transpose(whole, bits)[:, g.mask])

    return step


def transpose(words: Words, bits: int) -> Words:
    """Transpose [words, waves, lanes] with elements of that many bits."""
    count, waves, lanes = words.shape
    octets = np.ascontiguousarray(words.transpose(1, 2, 0)).view(np.uint8)
    flags = np.unpackbits(octets.reshape(waves, lanes, -1), axis=2, bitorder="little")
    held = flags.shape[2] // bits  # elements per lane
    rows = flags.reshape(waves, lanes // _COLUMNS, -1, _COLUMNS, bits)
    columns = np.ascontiguousarray(rows.swapaxes(2, 3)).reshape(waves, lanes, held * bits)
    packed = np.packbits(columns, axis=2, bitorder="little")
    return (
        np.ascontiguousarray(packed).view(np.uint32).transpose(2, 0, 1).reshape(count, waves, lanes)
    )
