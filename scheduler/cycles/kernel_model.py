"""Models a kernel's launches: feeds the emulator's traces to the models of a unit and the device.

Of each launch a few blocks are run completely. A round of blocks of one die is run up to their
first accesses, to find what they share in L2.
"""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scheduler.build.rocm.metadata import parse_kernels
from scheduler.build.rocm.occupancy import Demand, occupancy, resident_groups
from scheduler.cycles.block_durations import (
    block_durations,
    is_uniform,
    representative_blocks,
    sample_blocks,
)
from scheduler.cycles.constants import machine, rates_at
from scheduler.cycles.decode import DecodedInstruction, decode
from scheduler.cycles.device import apply_memory_bound, classify_blocks, device_time, unit_share
from scheduler.cycles.launch_report import ModelledLaunch, write_launch_report
from scheduler.cycles.paths import paths_of
from scheduler.cycles.report import VERSION, Band, LaunchReport, Report
from scheduler.cycles.sharing import Round, concurrent_blocks, estimate_sharing, round_of
from scheduler.errors import UserError
from scheduler.isa.rocm.emulator.launch import Launch
from scheduler.isa.rocm.emulator.limits import Limits as EmulatorLimits
from scheduler.isa.rocm.emulator.memory import Memory
from scheduler.isa.rocm.emulator.program import program_of
from scheduler.isa.rocm.emulator.run import EmulationResult, run
from scheduler.isa.rocm.emulator.trace import WaveTrace
from scheduler.isa.rocm.instruction_set.row import Counter
from scheduler.targets import Board, Target
from scheduler.targets.amd import amd_hardware
from scheduler.targets.cycle_model import End, Rates
from scheduler.targets.modelled import TARGETS

__all__ = ["TARGETS", "Limits", "model_kernel"]

_LOAD_COVERAGE = 0.95  # share of the loads
_INNER_SAMPLES = 3  # blocks to run besides the first and the last


@dataclass(frozen=True)
class Limits:
    """Limits of modelling: the emulator's limits for the blocks that are run completely, how many
    waves of a round are examined for sharing, and for how many instructions each."""

    emulator: EmulatorLimits = EmulatorLimits()
    round_waves: int = 192
    round_calls: int = 4000


def model_kernel(
    listing: str,
    target: Target,
    board: Board,
    launches: Sequence[Launch],
    memory: Memory,
    *,
    kernel: str,
    sizes: Mapping[str, int],
    limits: Limits = Limits(),
) -> Report:
    """Model all launches of a kernel on a board. ``listing`` has their functions; ``memory`` is
    what their arguments point to (stores change it).

    Raises:
        UserError: the model does not know the target, or the listing lacks a function.
    """
    if amd_hardware(target).processor not in TARGETS:
        known = ", ".join(TARGETS)
        raise UserError(f"{target.name}: not modelled; known: {known}")
    unknown: Count[str] = Count()
    reports, sampled = [], []
    for launch in launches:
        report, missing, text = _LaunchModel(
            listing, target, board, launch, memory, limits
        ).report()
        reports.append(report)
        unknown.update(missing)
        sampled.append(text)
    time = Band(
        *(sum(getattr(report.time_us, end) for report in reports) for end in ("low", "mid", "high"))
    )
    longest = max(reports, key=lambda report: report.time_us.mid, default=None)
    return Report(
        version=VERSION,
        kernel=kernel,
        target=amd_hardware(target).processor,
        board=board.name,
        sizes=dict(sizes),
        time_us=time,
        sentence=longest.sentence if longest else "no launches",
        launches=tuple(reports),
        unknown=dict(unknown),
        sampled="; ".join(dict.fromkeys(sampled)),
    )


class _LaunchModel:
    """Builds the report of one launch."""

    def __init__(
        self,
        listing: str,
        target: Target,
        board: Board,
        launch: Launch,
        memory: Memory,
        limits: Limits,
    ) -> None:
        self._target, self._board, self._launch = target, board, launch
        self._memory, self._limits = memory, limits
        self._processor = amd_hardware(target).processor
        self._machine = machine(target)
        self._program = program_of(listing, launch.function, self._processor)
        self._function = self._program.function
        metadata = parse_kernels(listing).get(launch.function)
        directives = self._program.directives
        self._demand = (
            metadata.demand(launch.threads, launch.dynamic_lds_bytes)
            if metadata is not None
            else Demand(
                vgpr=directives.get("next_free_vgpr", 256),
                sgpr=directives.get("next_free_sgpr", 100),
                lds_bytes=self._program.lds_bytes + launch.dynamic_lds_bytes,
                workgroup=launch.threads,
            )
        )
        self._limiter = occupancy(self._demand, target, exact_lds=True).limiter.value
        rates = self._rates(End.MID)
        self._waves = -(-launch.threads // rates.wave)
        self._resident = resident_groups(self._demand, target, exact_lds=True)
        self._unknown: Count[str] = Count()
        self._complete_blocks = 0  # blocks that were run completely
        self._notes: list[str] = []
        self._cut = False
        if self._demand.wgp_mode:
            self._note("a unit is a work-group processor: two compute units that share blocks")

    def _rates(self, end: End) -> Rates:
        """Return the rates of the unit that blocks are assigned to: two compute units if they may
        use both."""
        rates = rates_at(self._target, end)
        return rates.paired if self._demand.wgp_mode else rates

    def report(self) -> tuple[LaunchReport, Mapping[str, int], str]:
        traces = self._sample_blocks()
        rates = self._rates(End.MID)
        executed = {
            int(index)
            for waves in traces.values()
            for wave in waves
            for index in np.unique(wave.executed)
        }
        decoded = decode(self._function, self._processor, rates, executed)
        first = self._first_round(decoded, traces)
        counts = _instruction_counts(traces)
        chosen = list(traces)  # the blocks that represent others: one if all are alike
        if is_uniform(counts):
            ordered = sorted(traces, key=lambda block: (counts[block], block))
            chosen = [ordered[len(ordered) // 2]]
        blocks = [
            paths_of(self._function, decoded, traces[block], self._processor, rates, first.fresh)
            for block in chosen
        ]
        every, _ = block_durations(counts, self._launch.blocks)
        classes = classify_blocks(blocks, every)
        shared = estimate_sharing(
            [(block_class.paths, block_class.weight) for block_class in classes],
            first,
            self._memory,
            rates,
        )
        behind = 0.0
        if shared and shared.fetched.mid:
            behind = max(0.0, 1 - shared.distinct / shared.fetched.mid)
        ends = {}
        for end in End:
            end_rates = self._rates(end)
            times = decode(self._function, self._processor, end_rates, executed)
            free = device_time(
                *(times, classes, every),
                resident=self._resident,
                rates=end_rates,
                shared=unit_share(self._board, end_rates, self._launch.blocks, behind),
                timeline=8 if end is End.MID else 0,
            )
            ends[end] = apply_memory_bound(
                free, shared.distinct if shared else 0.0, self._board, end_rates
            )
        modelled = ModelledLaunch(
            function=self._function,
            decoded=decoded,
            launch=self._launch,
            board=self._board,
            machine=self._machine,
            rates=rates,
            waves=self._waves,
            resident=min(
                self._resident,
                -(-self._launch.blocks // (self._board.compute_units // rates.units)),
            ),
            limiter=self._limiter,
            blocks=tuple(block_class.paths for block_class in classes),
            weights=tuple(block_class.weight for block_class in classes),
            ends=ends,
            sharing=shared,
            notes=tuple(self._notes),
            cut=self._cut,
        )
        text = f"{self._complete_blocks} of {self._launch.blocks} blocks run"
        return write_launch_report(modelled), self._unknown, text

    def _sample_blocks(self) -> dict[int, list[WaveTrace]]:
        """Run a few whole blocks; more if they differ and the pattern is unclear."""
        count = self._launch.blocks
        traces = self._run(sample_blocks(count, _INNER_SAMPLES), self._limits.emulator)
        self._complete_blocks = len(traces)
        inside = representative_blocks(_instruction_counts(traces), count)
        traces = {block: waves for block, waves in traces.items() if block in inside}
        if not block_durations(_instruction_counts(traces), count)[1]:
            more = sorted({*sample_blocks(count, 3 * _INNER_SAMPLES)} - set(traces))
            traces |= self._run(more, self._limits.emulator) if more else {}
            self._complete_blocks += len(more)
            if not block_durations(_instruction_counts(traces), count)[1]:
                self._note("block lengths vary, but not along an axis of the grid")
        self._cut = any(wave.cut for waves in traces.values() for wave in waves)
        if self._cut:
            self._note("the emulator's limits cut some waves: times cover the executed part only")
        return dict(sorted(traces.items()))

    def _note(self, text: str) -> None:
        if text not in self._notes:
            self._notes.append(text)

    def _run(
        self, blocks: Sequence[int], limits: EmulatorLimits, *, values: bool = True
    ) -> dict[int, list[WaveTrace]]:
        outcome: EmulationResult = run(
            self._program, self._launch, self._memory, blocks, limits, values
        )
        for mnemonic, count in outcome.unknown.items():
            self._unknown[mnemonic] = max(self._unknown[mnemonic], count)
        for finding in outcome.findings:
            self._note(f"{finding.what}: instruction {finding.instruction}")
        traces_by_block: dict[int, list[WaveTrace]] = {}
        for wave in outcome.traces:
            traces_by_block.setdefault(wave.block, []).append(wave)
        return traces_by_block

    def _first_round(
        self, decoded: Sequence[DecodedInstruction], traces: Mapping[int, Sequence[WaveTrace]]
    ) -> Round:
        rates = self._rates(End.MID)
        most = max(1, self._limits.round_waves // self._waves)
        numbers = concurrent_blocks(
            *(self._launch.blocks, self._board.compute_units // rates.units),
            *(self._resident, rates.xcds, most),
        )
        if len(numbers) == 1:
            return round_of(self._function, decoded, traces[0], rates)
        # After ``reach`` instructions a wave has executed, at least once, the loads that make up
        # nearly all of its loads.
        loads = {
            instruction.index
            for instruction in decoded
            if Counter.LOADS in instruction.incremented_counters
        }
        reach = 0
        for wave in next(iter(traces.values())):
            indices, starts, counts = np.unique(
                wave.executed, return_index=True, return_counts=True
            )
            is_load = np.isin(indices, list(loads))
            order = np.argsort(starts[is_load])
            before = np.cumsum(counts[is_load][order]) - counts[is_load][order]
            needed = before < _LOAD_COVERAGE * counts[is_load].sum()
            reach = max(reach, *starts[is_load][order][needed].tolist(), 0)
        reach += 1
        calls = min(self._limits.round_calls, reach + reach // 4 + 8)
        limits = replace(self._limits.emulator, calls=calls)
        traces_by_block = self._run(numbers, limits, values=False)
        every = [wave for waves in traces_by_block.values() for wave in waves]
        whole = [wave for waves in traces.values() for wave in waves]
        return round_of(self._function, decoded, every, rates, whole)


def _instruction_counts(traces: Mapping[int, Sequence[WaveTrace]]) -> dict[int, float]:
    """Return the instructions that the waves of each block execute."""
    return {
        block: float(sum(len(wave.executed) for wave in waves)) for block, waves in traces.items()
    }
