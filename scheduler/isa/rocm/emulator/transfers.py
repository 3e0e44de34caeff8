"""The data of loads and stores: bytes per lane, the half of the register, the extension."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scheduler.isa.rocm.emulator.state import Group
from scheduler.isa.rocm.instruction_set.memory import DATA_SIZES

_SIZES = {name: size for *names, size in DATA_SIZES for name in names if size <= 16}
_NAME = re.compile(r"([a-z]+\d*?(?:x\d)?|[bui]\d+)(_d16(?:_hi)?)?")
_16 = np.uint32(16)


@dataclass(frozen=True)
class Transfer:
    """``size`` bytes per lane; ``signed``: values smaller than a register are sign-extended.
    ``half``: the half of the register that is written while the other is kept, or None."""

    size: int
    signed: bool = False
    half: int | None = None

    @property
    def words(self) -> int:
        return max(1, self.size // 4)


def transfer_of(name: str, loads: bool) -> Transfer | None:
    """Return the transfer of the last part of a mnemonic (``dwordx2``, ``ubyte_d16_hi``,
    ``b64``)."""
    match = _NAME.fullmatch(name)
    if not match or match[1] not in _SIZES:
        return None
    size = _SIZES[match[1]]
    half = None
    if match[2]:
        half = 1 if match[2].endswith("_hi") else 0
        half = half if loads or half else None
    return Transfer(size, match[1][0] in "si" and size < 4, half)


def extend_values(values: npt.NDArray[np.uint32], transfer: Transfer) -> npt.NDArray[np.uint32]:
    """Extend values of 1 or 2 bytes to the register (or its half)."""
    if not transfer.signed:
        return values
    sign = np.uint32(1 << (8 * transfer.size - 1))
    return (values ^ sign) - sign


def write_lanes(g: Group, row: int, transfer: Transfer, values: npt.NDArray[np.uint32]) -> None:
    """Write [words, n] values to the registers of the active lanes, in their order."""
    if transfer.half is not None:
        target, number = g.vh[row][:, transfer.half :: 2], values[0].astype(np.uint16)
        if g.full:
            target[:] = number.reshape(target.shape)
        else:
            target[g.mask] = number
        return
    for word, value in enumerate(values):
        if g.full:
            g.v[row + word] = value.reshape(g.count, g.lanes)
        else:
            g.v[row + word][g.mask] = value


def read_lanes(g: Group, row: int, transfer: Transfer) -> npt.NDArray[np.uint32]:
    """Read [words, n] from the active lanes."""
    registers = g.v[row : row + transfer.words]
    values = registers.reshape(transfer.words, -1) if g.full else registers[:, g.mask]
    if transfer.half:
        values = values >> _16
    return values
