"""Coalescing: how many cache lines a wave's memory access touches, and how much of their data it
uses.

The address unit merges the lanes' addresses into requests for cache lines (64 bytes on MI200, 128
on MI300 and later and on RDNA: ROCm Compute Profiler, "Vector L1 cache"; RDNA white paper). The
cache delivers ``transfer`` bytes per cycle, so an access occupies it for one cycle per piece of
that size. A store that fills its 64-byte pieces only partly writes them with a mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scheduler.isa.rocm.emulator.trace import Access

_STORE_UNIT = 64  # bytes of a write request: ROCm Compute Profiler, "L2 cache"


@dataclass(frozen=True, slots=True)
class Transfer:
    """One access of one wave. ``lines`` are numbers of cache lines, ``pieces`` the cycles in which
    the cache delivers data. The byte counts are those that the lanes touch (each once), and those
    of the lines (stores: of the pieces) that must be moved for them."""

    lines: tuple[int, ...]
    pieces: int
    bytes_used: int
    bytes_moved: int

    @property
    def requests(self) -> int:
        return len(self.lines)


def transfers(
    accesses: Sequence[Access], *, line: int, transfer: int, stores: bool
) -> list[Transfer]:
    """Return the transfer of each access of one instruction, in their order."""
    transfer_by_position: dict[int, Transfer] = {}
    alike: dict[tuple[int, int], list[int]] = {}
    for position, access in enumerate(accesses):
        alike.setdefault((len(access.addresses), access.bytes), []).append(position)
    for (lanes, width), positions in alike.items():
        if lanes == 0:
            transfer_by_position |= dict.fromkeys(positions, Transfer((), 0, 0, 0))
            continue
        addresses = np.sort(np.stack([accesses[at].addresses for at in positions]), axis=1)
        lines, is_line = _touched_units(addresses, width, line)
        _, is_piece = _touched_units(addresses, width, transfer)
        used = np.minimum(np.diff(addresses, axis=1), width).sum(axis=1) + width
        if stores:
            _, is_stored = _touched_units(addresses, width, _STORE_UNIT)
            moved = is_stored.sum(axis=1) * _STORE_UNIT
        else:
            moved = is_line.sum(axis=1) * line
        rows = zip(lines, is_line, is_piece.sum(axis=1), used, moved, strict=True)
        for position, (numbers, new, pieces, bytes_used, bytes_moved) in zip(
            positions, rows, strict=True
        ):
            transfer_by_position[position] = Transfer(
                tuple(numbers[new].tolist()), int(pieces), int(bytes_used), int(bytes_moved)
            )
    return [transfer_by_position[position] for position in range(len(accesses))]


def _touched_units(
    addresses: npt.NDArray[np.int64], width: int, unit: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return the numbers of the memory units that each access touches [n, m], and which of them
    occur for the first time in their row."""
    first, last = addresses // unit, (addresses + width - 1) // unit
    if (last > first).any():
        reach = int((last - first).max())
        pieces = [np.minimum(first + step, last) for step in range(reach + 1)]
        numbers = np.sort(np.concatenate(pieces, axis=1), axis=1)
    else:
        numbers = first
    new = np.ones(numbers.shape, np.bool_)
    new[:, 1:] = numbers[:, 1:] != numbers[:, :-1]
    return numbers, new
