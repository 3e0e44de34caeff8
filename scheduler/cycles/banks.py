"""Conflicts in LDS: how many cycles its banks need for one access of a wave.

A bank gives one 4-byte word a cycle. An access goes in groups of lanes, as many as fill the banks
at its width; lanes of a group that touch different words of one bank wait for each other, lanes
that touch the same word do not (it is broadcast). Which lanes are a group depends on the
instruction: 128-bit reads of CDNA 3 take lanes 0-3 with 20-23, and so on.

Groups: "AMDGPU Kernel Optimization Guide" and "Empirical LDS measurements" of the IREE project
(measured on MI300X, MI350X, W7900, RX 9070 XT), Composable Kernel's documentation ("Understanding
AMD GPU LDS and bank conflicts"), HipKittens' phases of ds_read_b64, b96, b128 and ds_write_b64 on
MI355X (of which 64 banks are seen by 32-, 64- and 128-bit reads, 32 by the rest), Triton's
"Refine segment computation to support DS_READ_B128". CDNA 2 is taken to have the groups of CDNA 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from scheduler.isa.rocm.emulator.trace import Access

_WORD = 4
_BANKS = 32
_NOTHING = -1  # no word: a lane that is switched off

Groups = tuple[tuple[int, ...], ...]
Addresses = npt.NDArray[np.int64]


@dataclass(frozen=True)
class BankRule:
    """How LDS serves one kind of access: the lanes that go together, and how many banks they
    meet."""

    groups: Groups
    banks: int


def _consecutive_groups(lanes: int, together: int) -> Groups:
    return tuple(tuple(range(first, first + together)) for first in range(0, lanes, together))


def _quads(*firsts: int) -> tuple[int, ...]:
    return tuple(first + lane for first in firsts for lane in range(4))


def _both_halves(half: Groups) -> Groups:
    return half + tuple(tuple(32 + lane for lane in group) for group in half)


_CDNA3_WIDE = (_quads(0, 20), _quads(4, 16), _quads(8, 28), _quads(12, 24))
_CDNA4_WIDE = (_quads(0, 12, 20, 24), _quads(4, 8, 16, 28))


@lru_cache(maxsize=256)
def bank_rule(processor: str, width: int, reads: bool) -> BankRule:
    """How an access of ``width`` bytes a lane is served (of an instruction with two addresses a
    lane: each of the two). Widths of less than a word count as one, 12 bytes as 16."""
    rdna = processor.startswith(("gfx10", "gfx11", "gfx12"))
    lanes = 32 if rdna else 64
    words = {8: 2, 12: 4, 16: 4}.get(width, 1)
    doubled = processor == "gfx950" and reads and width != 12
    if words == 4 and reads:
        if doubled:
            return BankRule(_both_halves(_CDNA4_WIDE), 2 * _BANKS)
        if not rdna:
            return BankRule(_both_halves(_CDNA3_WIDE), _BANKS)
        if processor.startswith("gfx11"):
            return BankRule(_CDNA3_WIDE, _BANKS)
    banks = 2 * _BANKS if doubled else _BANKS
    return BankRule(_consecutive_groups(lanes, min(lanes, banks // words)), banks)


def cycles(
    processor: str, addresses: Addresses, width: int, *, reads: bool, atomic: bool = False
) -> npt.NDArray[np.int64]:
    """Cycles of the banks for each of [n, lanes] accesses of ``width`` bytes a lane at byte
    addresses (negative: the lane is off). Atomic operations on the same word go one by one."""
    served = bank_rule(processor, width, reads)
    words = -(-width // _WORD)
    order = np.array(served.groups)  # [groups, lanes of a group]
    first = addresses[:, order] // _WORD  # [n, groups, lanes]
    touched = first[..., None] + np.arange(words)
    touched = np.where((addresses[:, order] < 0)[..., None], _NOTHING, touched)
    touched = touched.reshape(*touched.shape[:2], -1)
    return np.asarray(_max_words_per_bank(touched, served.banks, atomic).sum(axis=1))


def _max_words_per_bank(touched: Addresses, banks: int, atomic: bool) -> npt.NDArray[np.int64]:
    """The most different words that a bank must give, for [n, groups, words] → [n, groups]; at
    least 1 where there is any."""
    words = np.sort(touched, axis=2)
    counted = words != _NOTHING
    if not atomic:
        counted[..., 1:] &= words[..., 1:] != words[..., :-1]
    most = np.zeros(words.shape[:2], np.int64)
    bank = words % banks
    rows = np.arange(most.size).reshape(most.shape)[..., None] * banks
    found = np.bincount((rows + bank)[counted], minlength=most.size * banks)
    return np.asarray(found.reshape(*most.shape, banks).max(axis=2))


def without_conflicts(processor: str, active: int, width: int, *, reads: bool) -> int:
    """Cycles that so many lanes would take where each group's lanes meet different banks."""
    served = bank_rule(processor, width, reads)
    groups = -(-active // len(served.groups[0]))
    return max(1, groups)


@dataclass(frozen=True)
class BankCost:
    """Cycles of the banks for one access, and without conflicts."""

    cycles: int
    free: int

    @property
    def factor(self) -> float:
        return self.cycles / self.free


def access_cost(processor: str, access: Access, *, reads: bool, atomic: bool = False) -> BankCost:
    """One access as it was traced, both of its addresses."""
    total = free = 0
    for addresses in (access.addresses, access.second):
        if addresses is not None:
            (one,) = cycles(
                *(processor, lane_addresses(processor, [access], [addresses]), access.bytes),
                reads=reads,
                atomic=atomic,
            )
            total += int(one)
            free += _conflict_free_groups(processor, access.lanes, access.bytes, reads)
    return BankCost(max(1, total), max(1, free))


def _conflict_free_groups(
    processor: str, lanes: npt.NDArray[np.int64], width: int, reads: bool
) -> int:
    """Groups that have a lane switched on."""
    groups = lane_groups(processor, width, reads)
    return len(np.unique(groups[lanes])) if lanes.size else 0


@lru_cache(maxsize=256)
def lane_groups(processor: str, width: int, reads: bool) -> npt.NDArray[np.int64]:
    """The number of the group that each lane is in."""
    groups = bank_rule(processor, width, reads).groups
    found = np.zeros(sum(map(len, groups)), np.int64)
    for number, group in enumerate(groups):
        found[list(group)] = number
    return found


def lane_addresses(
    processor: str, accesses: Sequence[Access], addresses: Sequence[Addresses]
) -> Addresses:
    """Addresses [n, lanes of a wave], -1 for lanes that are off."""
    lanes = len(lane_groups(processor, _WORD, True))
    found = np.full((len(accesses), lanes), -1, np.int64)
    for row, (access, given) in enumerate(zip(accesses, addresses, strict=True)):
        found[row, access.lanes] = given
    return found
