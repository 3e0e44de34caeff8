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


@lru_cache(maxsize=256)
def bank_rule(processor: str, width: int, reads: bool) -> BankRule:
    """Return the rule for an access of ``width`` bytes per lane (with two addresses per lane: for
    each of the two). Widths below a word count as one word, 12 bytes as 16."""
    gpu, lanes = processor_machine(processor), amd_gpu(processor).wavefront
    words = {8: 2, 12: 4, 16: 4}.get(width, 1)
    banks = gpu.lds_banks if reads and width != 12 else _BANKS
    groups = {12: gpu.b96_groups, 16: gpu.b128_groups}.get(width) if reads else None
    together = min(lanes, banks // words)
    consecutive = tuple(
        tuple(range(first, first + together)) for first in range(0, lanes, together)
    )
    return BankRule(groups or consecutive, banks)


def cycles(
    processor: str, addresses: Addresses, width: int, *, reads: bool, atomic: bool = False
) -> npt.NDArray[np.int64]:
    """Return the bank cycles of each of [n, lanes] accesses of ``width`` bytes per lane at byte
    addresses (negative: the lane is inactive). Atomic operations on the same word are
    serialized."""
    rule = bank_rule(processor, width, reads)
    order = np.array(rule.groups)  # [groups, lanes of a group]
    first = addresses[:, order] // _WORD  # [n, groups, lanes]
    words = first[..., None] + np.arange(-(-width // _WORD))
    words = np.where((addresses[:, order] < 0)[..., None], _NOTHING, words)
    words = np.sort(words.reshape(*words.shape[:2], -1), axis=2)  # [n, groups, words]
    counted = words != _NOTHING
    if not atomic:
        counted[..., 1:] &= words[..., 1:] != words[..., :-1]
    groups = words.shape[:2]
    rows = np.arange(groups[0] * groups[1]).reshape(groups)[..., None] * rule.banks
    per_bank = np.bincount(
        (rows + words % rule.banks)[counted], minlength=groups[0] * groups[1] * rule.banks
    )
    return np.asarray(per_bank.reshape(*groups, rule.banks).max(axis=2).sum(axis=1))


def cycles_without_conflicts(
    processor: str, accesses: Sequence[Access], width: int, *, reads: bool
) -> npt.NDArray[np.int64]:
    """Return the bank cycles of each access if the lanes of a group use different banks: the groups
    that have an active lane."""
    groups = lane_groups(processor, width, reads)
    return np.array([len(np.unique(groups[access.lanes])) for access in accesses], np.int64)


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
            (cycle_count,) = cycles(
                *(processor, lane_addresses(processor, [access], [addresses]), access.bytes),
                reads=reads,
                atomic=atomic,
            )
            total += int(cycle_count)
            (cycle_count,) = cycles_without_conflicts(
                processor, [access], access.bytes, reads=reads
            )
            free += int(cycle_count)
    return BankCost(max(1, total), max(1, free))


@lru_cache(maxsize=256)
def lane_groups(processor: str, width: int, reads: bool) -> npt.NDArray[np.int64]:
    """Return the group number of each lane."""
    groups = bank_rule(processor, width, reads).groups
    group_of_lane = np.zeros(sum(map(len, groups)), np.int64)
    for number, group in enumerate(groups):
        group_of_lane[list(group)] = number
    return group_of_lane


def lane_addresses(
    processor: str, accesses: Sequence[Access], addresses: Sequence[Addresses]
) -> Addresses:
    """Return addresses [n, lanes of a wave], -1 for inactive lanes."""
    lanes = len(lane_groups(processor, _WORD, True))
    found = np.full((len(accesses), lanes), -1, np.int64)
    for row, (access, given) in enumerate(zip(accesses, addresses, strict=True)):
        found[row, access.lanes] = given
    return found
