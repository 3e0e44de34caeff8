"""Estimates what concurrent blocks share in L2: how much of their requests it must fetch.

Blocks are dealt to the dies of a device in turn (HIP documentation, "Hardware implementation", and
AMD's blogs on XCDs), so every eighth block of an MI300X shares one L2. For a round of blocks on the
first die, the lines of each instruction's first accesses are compared: if 20 blocks read the same
row of A, one in 20 of those lines is fetched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.cycles.coalescing import transfers
from scheduler.cycles.decode import DecodedInstruction
from scheduler.cycles.paths import BlockPaths
from scheduler.cycles.report import Band, Sharing
from scheduler.isa.listing import Function
from scheduler.isa.rocm.emulator.memory import Memory
from scheduler.isa.rocm.emulator.trace import Access, WaveTrace
from scheduler.isa.rocm.instruction_set.row import IssueClass
from scheduler.targets.cycle_model import Rates

_ACCESSES = 16  # accesses examined per instruction and wave


@dataclass(frozen=True)
class Round:
    """Blocks that run together on one die: the share of each instruction's lines that are new to
    its L2, and an address that it accessed."""

    fresh: Mapping[int, float]
    address: Mapping[int, int]


def round_of(
    function: Function,
    decoded: Sequence[DecodedInstruction],
    traces: Iterable[WaveTrace],
    rates: Rates,
    whole: Iterable[WaveTrace] = (),
) -> Round:
    """Compare the traces of those blocks; they may be cut after their first accesses. ``whole`` are
    waves that were run completely: they have the addresses of instructions that the others did not
    reach, mainly stores at a kernel's end."""
    blocks: dict[tuple[int, int], set[int]] = {}  # the lines, by instruction and block
    address: dict[int, int] = {}
    for trace in traces:
        accesses: dict[int, list[Access]] = {}
        for position in trace.accesses:
            index = int(trace.executed[position])
            if (
                decoded[index].issue_class is IssueClass.MEMORY
                and len(accesses.get(index, ())) < _ACCESSES
            ):
                access = trace.accesses[position]
                if len(access.addresses):
                    accesses.setdefault(index, []).append(access)
        for index, examined in accesses.items():
            store = "_store" in function.instructions[index].mnemonic
            lines = blocks.setdefault((index, trace.block), set())
            for transfer in transfers(examined, line=rates.line, transfer=64, stores=store):
                lines.update(transfer.lines)
            address.setdefault(index, int(examined[0].addresses[0]))
    requested: dict[int, int] = {}
    distinct: dict[int, set[int]] = {}
    for (index, _), lines in blocks.items():
        requested[index] = requested.get(index, 0) + len(lines)
        distinct.setdefault(index, set()).update(lines)
    for trace in whole:
        indices, firsts = np.unique(trace.executed, return_index=True)
        for index, first in zip(indices.tolist(), firsts.tolist(), strict=True):
            if index in address or decoded[index].issue_class is not IssueClass.MEMORY:
                continue
            if first in trace.accesses and len(trace.accesses[first].addresses):
                address[index] = int(trace.accesses[first].addresses[0])
    fresh = {index: len(distinct[index]) / total for index, total in requested.items() if total}
    return Round(fresh, address)


def concurrent_blocks(blocks: int, units: int, resident: int, caches: int, most: int) -> list[int]:
    """Return the first blocks that run at a time on the first die, at most ``most``."""
    capacity = -(-units * resident // caches)
    return list(range(0, blocks, caches))[: max(1, min(capacity, most))]


def estimate_sharing(
    sampled: Sequence[tuple[BlockPaths, float]],
    first_round: Round,
    memory: Memory,
    rates: Rates,
) -> Sharing | None:
    """Estimate the sharing of the launch from ``sampled`` blocks with their weights. None if no
    memory is accessed."""
    asked: dict[int, float] = {}
    for block, weight in sampled:
        for index, touched in block.touched.items():
            if touched.moved:
                asked[index] = asked.get(index, 0.0) + weight * touched.moved
    if not asked:
        return None
    regions: dict[str, list[float]] = {}
    for index, moved in asked.items():
        at = first_round.address.get(index)
        region = memory.region_at(at) if at is not None else None
        # An access outside all known buffers is assumed to share with no other.
        name, size = (region.name, float(region.size)) if region else (f"#{index}", moved)
        entry = regions.setdefault(name, [0.0, 0.0, size])
        entry[0] += moved
        entry[1] += moved * first_round.fresh.get(index, 1.0)
    # L2 keeps between nothing and all of a buffer from one round to the next.
    high = sum(fetched for _, fetched, _ in regions.values())
    low = sum(min(fetched, rates.xcds * size) for _, fetched, size in regions.values())
    distinct = sum(min(moved, size) for moved, _, size in regions.values())
    return Sharing(
        asked=sum(asked.values()),
        distinct=min(distinct, low),
        fetched=Band(low, (low + high) / 2, high),
        caches=rates.xcds,
    )
