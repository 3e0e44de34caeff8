"""Converts the traces of a block's waves for a unit: shortened, each access with its costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from scheduler.cycles import banks
from scheduler.cycles.coalescing import transfers
from scheduler.cycles.cuts import Cut, shorten
from scheduler.cycles.decode import DecodedInstruction
from scheduler.cycles.steps import Effect, LdsEffect, MemoryEffect, Path
from scheduler.isa.listing import Function
from scheduler.isa.rocm.emulator.trace import Access, WaveTrace
from scheduler.isa.rocm.instruction_set.row import IssueClass
from scheduler.isa.rocm.instruction_set.table import find_opcode
from scheduler.targets.cycle_model import Rates


@dataclass
class InstructionSums:
    """Sums over the executions of one instruction: ``count`` is those that accessed memory,
    ``lanes`` is summed over the ``executed`` ones; LDS bank cycles, with conflicts and without."""

    executed: float = 0.0
    lanes: float = 0.0
    count: float = 0.0
    banks: float = 0.0
    free: float = 0.0
    requests: float = 0.0
    used: float = 0.0
    moved: float = 0.0

    def add(self, other: InstructionSums, weight: float) -> None:
        """Add other sums, times a weight."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + weight * value)


@dataclass(frozen=True)
class BlockPaths:
    """One block: its waves' paths, what was omitted from each, and how often the emulator's limits
    cut it short."""

    block: int
    paths: tuple[Path, ...]
    cuts: tuple[tuple[Cut, ...], ...]
    touched: Mapping[int, InstructionSums]
    executed: float
    cut: bool


@dataclass
class _Accesses:
    """The accesses of one instruction and their positions."""

    waves: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    found: list[Access] = field(default_factory=list)


def paths_of(
    function: Function,
    decoded: Sequence[DecodedInstruction],
    traces: Sequence[WaveTrace],
    processor: str,
    rates: Rates,
    fresh: Mapping[int, float],
) -> BlockPaths:
    """Return the paths of one block's waves. ``fresh`` gives, by instruction, the share of lines
    that come from the memory behind L2 (default 1)."""
    barriers = frozenset(
        instruction.index
        for instruction in decoded
        if instruction.issue_class is IssueClass.BARRIER
    )
    shortened = shorten(function, [trace.executed for trace in traces], barriers)
    effects: list[list[Effect]] = [[None] * len(each.kept) for each in shortened]
    accesses: dict[int, _Accesses] = {}
    touched: dict[int, InstructionSums] = {}
    for wave, (trace, short) in enumerate(zip(traces, shortened, strict=True)):
        kept = trace.executed[short.kept]
        executions = np.bincount(kept, short.weights)
        lanes = np.bincount(kept, short.weights * trace.active[short.kept])
        for index in np.flatnonzero(executions).tolist():
            sums = touched.setdefault(index, InstructionSums())
            sums.executed += float(executions[index])
            sums.lanes += float(lanes[index])
        indices = kept.tolist()
        for position, (index, at) in enumerate(zip(indices, short.kept.tolist(), strict=True)):
            if (
                decoded[index].issue_class in (IssueClass.LDS, IssueClass.MEMORY)
                and at in trace.accesses
            ):
                entry = accesses.setdefault(index, _Accesses())
                entry.waves.append(wave)
                entry.positions.append(position)
                entry.found.append(trace.accesses[at])
    for index, entry in accesses.items():
        weights = [
            float(shortened[wave].weights[position])
            for wave, position in zip(entry.waves, entry.positions, strict=True)
        ]
        name = function.instructions[index].mnemonic
        if decoded[index].issue_class is IssueClass.LDS:
            costs = _lds_effects(name, entry.found, weights, processor, rates, touched[index])
        else:
            store, line, width = "_store" in name, rates.line, int(rates.l1_bytes_cycle)
            costs = []
            moved = transfers(entry.found, line=line, transfer=width, stores=store)
            for each, weight in zip(moved, weights, strict=True):
                sums = touched[index]
                sums.count += weight
                sums.requests += weight * each.requests
                sums.used += weight * each.bytes_used
                sums.moved += weight * each.bytes_moved
                costs.append(
                    MemoryEffect(
                        *(float(each.pieces), each.lines, each.bytes_moved, each.bytes_used),
                        *(store, fresh.get(index, 1.0)),
                    )
                )
        for wave, position, cost in zip(entry.waves, entry.positions, costs, strict=True):
            effects[wave][position] = cost
    paths = tuple(
        Path(
            trace.executed[short.kept].tolist(),
            effects[wave],
            short.weights.tolist(),
            frozenset(at for cut in short.cuts for at in (cut.start, cut.end)),
        )
        for wave, (trace, short) in enumerate(zip(traces, shortened, strict=True))
    )
    return BlockPaths(
        traces[0].block,
        paths,
        tuple(short.cuts for short in shortened),
        touched,
        float(sum(len(trace.executed) for trace in traces)),
        any(trace.cut for trace in traces),
    )


def _lds_effects(
    name: str,
    accesses: Sequence[Access],
    weights: Sequence[float],
    processor: str,
    rates: Rates,
    touched: InstructionSums,
) -> list[Effect]:
    access = find_opcode(name).local
    is_read = access.reads and not access.writes
    width = accesses[0].bytes
    addressed = 4.0 * rates.wave
    if access.crossbar:
        exchanged = 4.0 * rates.wave
        cycles = exchanged / (4.0 * rates.lds_banks)
        touched.count += sum(weights)
        touched.banks += cycles * sum(weights)
        touched.free += cycles * sum(weights)
        return [LdsEffect(cycles, addressed + exchanged, exchanged) for _ in accesses]
    total = np.zeros(len(accesses))
    free = np.zeros(len(accesses))
    for second in (False, True):
        addresses = [one.second if second else one.addresses for one in accesses]
        present = [each for each in addresses if each is not None]
        if len(present) < len(addresses):
            continue
        spread = banks.lane_addresses(processor, accesses, present)
        total += banks.cycles(processor, spread, width, reads=is_read, atomic=access.atomic)
        free += banks.cycles_without_conflicts(processor, accesses, width, reads=is_read)
    total, free = np.maximum(total, 1), np.maximum(free, 1)
    touched.count += sum(weights)
    touched.banks += float(np.dot(total, weights))
    touched.free += float(np.dot(free, weights))
    pieces = [2 if one.second is not None else 1 for one in accesses]
    moved = [max(4, width) * len(one.lanes) * n for one, n in zip(accesses, pieces, strict=True)]
    return [
        LdsEffect(
            float(cycles),
            addressed + (bytes_moved if access.writes else 0),
            float(bytes_moved) if access.reads else 0.0,
        )
        for cycles, bytes_moved in zip(total, moved, strict=True)
    ]
