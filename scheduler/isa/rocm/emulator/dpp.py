"""Data-parallel primitives: an operand read from other lanes.

Source: AMD's ISA references (CDNA3 6.2.8 "DPP", RDNA3 and RDNA4 "DPP").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from scheduler.isa.rocm.emulator.operands import Operands

_ROW = 16
_BANKS = 4
Lanes = npt.NDArray[Any]
Control = Callable[[Lanes, tuple[int, ...]], Lanes]


@dataclass(frozen=True)
class Dpp:
    """``lanes`` [lanes] is the lane that each lane reads, ``valid`` whether it exists, ``written``
    whether the lane's result is written (row and bank masks). ``zero``: invalid lanes read 0, else
    they are not written. ``inactive``: inactive lanes may be read."""

    lanes: Lanes
    valid: npt.NDArray[np.bool_]
    written: npt.NDArray[np.bool_]
    zero: bool
    inactive: bool


def dpp_of(operands: Operands, lanes: int) -> Dpp | None:
    """Return the effect of the modifiers; None without any."""
    lane = np.arange(lanes)
    for name, function in _CONTROLS.items():
        if name in operands.modifiers:
            chosen = function(lane, operands.modifiers[name])
            break
    else:
        if "row_mirror" in operands.words:
            chosen = lane ^ 15
        elif "row_half_mirror" in operands.words:
            chosen = lane ^ 7
        else:
            return None
    valid = (chosen >= 0) & (chosen < lanes)
    row_mask = operands.number("row_mask", 15)
    bank_mask = operands.number("bank_mask", 15)
    written = (row_mask >> (lane // _ROW) & 1).astype(bool)
    written &= (bank_mask >> (lane % _ROW // _BANKS) & 1).astype(bool)
    if "row_bcast" in operands.modifiers:  # only the following rows are written
        written &= valid
    inactive = operands.number("fi") != 0 or "dpp8" in operands.modifiers
    zero = "bound_ctrl" in operands.modifiers  # 0 was an older way to write 1
    return Dpp(np.where(valid, chosen, 0), valid, written, zero, inactive)


def _permute(size: int) -> Control:
    """Lanes chosen within groups of that size."""

    def permute(lane: Lanes, choice: tuple[int, ...]) -> Lanes:
        source_lanes: Lanes = (lane & -size) | np.array([*choice, *[0] * size][:size])[
            lane & (size - 1)
        ]
        return source_lanes

    return permute


def _row_shift(sign: int) -> Control:
    def shift(lane: Lanes, by: tuple[int, ...]) -> Lanes:
        within = lane % _ROW + sign * by[0]
        return np.where((within >= 0) & (within < _ROW), lane + sign * by[0], -1)

    return shift


def _broadcast(lane: Lanes, last: tuple[int, ...]) -> Lanes:
    """row_bcast:15 gives each row the last lane of the previous row; row_bcast:31 gives rows 2 and
    3 lane 31."""
    if last[0] == 15:
        return np.where((lane // _ROW) % 2 == 1, (lane & ~15) - 1, -1)
    return np.where(lane >= 32, 31, -1)


_CONTROLS: dict[str, Control] = {
    "quad_perm": _permute(4),
    "dpp8": _permute(8),
    "row_shl": _row_shift(1),
    "row_shr": _row_shift(-1),
    "row_ror": lambda lane, by: (lane & ~15) | ((lane - by[0]) & 15),
    "wave_shl": lambda lane, _: np.where(lane + 1 < len(lane), lane + 1, -1),
    "wave_shr": lambda lane, _: lane - 1,
    "wave_rol": lambda lane, _: (lane + 1) % len(lane),
    "wave_ror": lambda lane, _: (lane - 1) % len(lane),
    "row_bcast": _broadcast,
    "row_newbcast": lambda lane, at: (lane & ~15) | (at[0] & 15),
    "row_share": lambda lane, at: (lane & ~15) | (at[0] & 15),
    "row_xmask": lambda lane, by: lane ^ (by[0] & 15),
}
