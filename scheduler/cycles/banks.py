"""LDS bank conflicts: how many cycles the banks need for one access of a wave.

A bank delivers one 4-byte word per cycle. An access is split into groups of lanes, as many as fill
the banks at its width. Lanes of a group that access different words of one bank are serialized;
lanes that access the same word are not (it is broadcast). The grouping of the lanes depends on the
instruction: 128-bit reads of CDNA 3 group lanes 0-3 with 20-23, and so on.

Groups: "AMDGPU Kernel Optimization Guide" and "Empirical LDS measurements" of the IREE project
(measured on MI300X, MI350X, W7900, RX 9070 XT), Composable Kernel's documentation ("Understanding
AMD GPU LDS and bank conflicts"), HipKittens' phases of ds_read_b64, b96, b128 and ds_write_b64 on
MI355X (32-, 64- and 128-bit reads see 64 banks, the others 32), Triton's "Refine segment
computation to support DS_READ_B128". CDNA 2 is assumed to have the groups of CDNA 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from scheduler.cycles.constants import processor_machine
from scheduler.isa.rocm.emulator.trace import Access
from scheduler.targets.cycle_model import Groups
from scheduler.targets.generations import amd_gpu

_WORD = 4
_BANKS = 32
_NOTHING = -1  # no word: an inactive lane

Addresses = npt.NDArray[np.int64]


@dataclass(frozen=True)
class BankRule:
    """How LDS serves one kind of access: the groups of lanes, and the number of banks they use."""

    groups: Groups
    banks: int


def _consecutive_groups(lanes: int, together: int) -> Groups:
    return tuple(tuple(range(first, first + together)) for first in range(0, lanes, together))


@lru_cache(maxsize=256)
def bank_rule(processor: str, width: int, reads: bool) -> BankRule:
    """Return the rule for an access of ``width`` bytes per lane (with two addresses per lane: for
    each of the two). Widths below a word count as one word, 12 bytes as 16."""
    gpu, lanes = processor_machine(processor), amd_gpu(processor).wavefront
    words = {8: 2, 12: 4, 16: 4}.get(width, 1)
    banks = gpu.lds_banks if reads and width != 12 else _BANKS
    known = {12: gpu.b96_groups, 16: gpu.b128_groups}.get(width) if reads else None
    return BankRule(known or _consecutive_groups(lanes, min(lanes, banks // words)), banks)


def cycles(
    processor: str, addresses: Addresses, width: int, *, reads: bool, atomic: bool = False
) -> npt.NDArray[np.int64]:
    """Return the bank cycles of each of [n, lanes] accesses of ``width`` bytes per lane at byte
    addresses (negative: the lane is inactive). Atomic operations on the same word are
    serialized."""
    served = bank_rule(processor, width, reads)
    words = -(-width // _WORD)
    order = np.array(served.groups)  # [groups, lanes of a group]
    first = addresses[:, order] // _WORD  # [n, groups, lanes]
    touched = first[..., None] + np.arange(words)
    touched = np.where((addresses[:, order] < 0)[..., None], _NOTHING, touched)
    touched = touched.reshape(*touched.shape[:2], -1)
    return np.asarray(_max_words_per_bank(touched, served.banks, atomic).sum(axis=1))


def _max_words_per_bank(touched: Addresses, banks: int, atomic: bool) -> npt.NDArray[np.int64]:
    """Return the most different words that a bank must deliver, for [n, groups, words] → [n,
    groups]; at least 1 if there is any word."""
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
    """Return the cycles of so many lanes if each group's lanes access different banks."""
    served = bank_rule(processor, width, reads)
    groups = -(-active // len(served.groups[0]))
    return max(1, groups)


@dataclass(frozen=True)
class BankCost:
    """Bank cycles of one access, with conflicts and without."""

    cycles: int
    free: int

    @property
    def factor(self) -> float:
        return self.cycles / self.free


def access_cost(processor: str, access: Access, *, reads: bool, atomic: bool = False) -> BankCost:
    """Return the cost of one traced access, with both of its addresses."""
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
    """Count the groups that have an active lane."""
    groups = lane_groups(processor, width, reads)
    return len(np.unique(groups[lanes])) if lanes.size else 0


@lru_cache(maxsize=256)
def lane_groups(processor: str, width: int, reads: bool) -> npt.NDArray[np.int64]:
    """Return the group number of each lane."""
    groups = bank_rule(processor, width, reads).groups
    found = np.zeros(sum(map(len, groups)), np.int64)
    for number, group in enumerate(groups):
        found[list(group)] = number
    return found


def lane_addresses(
    processor: str, accesses: Sequence[Access], addresses: Sequence[Addresses]
) -> Addresses:
    """Return addresses [n, lanes of a wave], -1 for inactive lanes."""
    lanes = len(lane_groups(processor, _WORD, True))
    found = np.full((len(accesses), lanes), -1, np.int64)
    for row, (access, given) in enumerate(zip(accesses, addresses, strict=True)):
        found[row, access.lanes] = given
    return found
