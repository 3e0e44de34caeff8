"""Writes the report of one launch, from runs of its unit at both ends of the constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scheduler.cycles.decode import DecodedInstruction
from scheduler.cycles.device import DeviceTime
from scheduler.cycles.paths import BlockPaths, InstructionSums
from scheduler.cycles.report import (
    Band,
    InstructionFigures,
    Lane,
    LaunchReport,
    LoopFigures,
    Pipe,
    ResourceLimit,
    Sharing,
    StallReason,
)
from scheduler.cycles.sentence import L2_LIMIT, LAST_LEVEL_LIMIT, MEMORY_LIMIT, bottleneck_sentence
from scheduler.isa.flow import Loop
from scheduler.isa.listing import Function
from scheduler.isa.rocm.emulator.launch import Launch
from scheduler.isa.rocm.instruction_set.row import IssueClass
from scheduler.targets import Board
from scheduler.targets.cycle_model import End, Machine, Rates


@dataclass(frozen=True)
class ModelledLaunch:
    """All results about a launch from which its report is written."""

    function: Function
    decoded: Sequence[DecodedInstruction]
    launch: Launch
    board: Board
    machine: Machine
    rates: Rates
    waves: int
    resident: int
    limiter: str
    blocks: tuple[BlockPaths, ...]
    weights: tuple[float, ...]
    ends: Mapping[End, DeviceTime]
    sharing: Sharing | None
    notes: tuple[str, ...]
    cut: bool


def write_launch_report(modelled: ModelledLaunch) -> LaunchReport:
    """Write the report."""
    middle = modelled.ends[End.MID]
    means = _Means(middle, modelled)
    cycles = Band(*(modelled.ends[end].cycles for end in End))
    pipes = means.pipes()
    hertz = modelled.board.clock_mhz
    # At the slow end the clock drops with the load of the matrix pipes.
    lowered = 1 - min(1.0, pipes[Pipe.MATRIX]) * (1 - modelled.machine.matrix_clock.slow)
    time = Band(cycles.low / hertz, cycles.mid / hertz, cycles.high / hertz / lowered)
    waits = means.waits()
    figures = means.figures()
    limits = _limits(modelled, means)
    outcome = middle.outcomes[0]
    there = modelled.board.compute_units // modelled.rates.units
    return LaunchReport(
        function=modelled.function.name,
        grid=modelled.launch.grid,
        block=modelled.launch.block,
        waves=modelled.waves,
        resident=modelled.resident,
        limiter=modelled.limiter,
        rounds=middle.rounds,
        tail=middle.tail,
        time_us=time,
        cycles=cycles,
        pipes=pipes,
        waits=waits,
        limits=limits,
        instructions=figures,
        loops=means.loops(),
        timeline=tuple(
            Lane(wave.block, wave.wave, wave.simd, wave.spans)
            for wave in outcome.waves
            if wave.spans
        ),
        sharing=modelled.sharing,
        sentence=bottleneck_sentence(
            *(modelled.function, time.mid, pipes, waits, limits, figures, middle.tail),
            units=(min(modelled.launch.blocks, there), there),
        ),
        notes=modelled.notes,
        cut=modelled.cut,
    )


class _Means:
    """Means over the waves of a launch; each class of blocks is weighted by the blocks it
    represents."""

    def __init__(self, time: DeviceTime, modelled: ModelledLaunch) -> None:
        self._time, self._modelled = time, modelled
        self._rates = modelled.rates
        whole = sum(time.weights)
        # The weight of a sum over an outcome's waves in the mean of one wave.
        self._scale = [
            weight / whole / (outcome.blocks * modelled.waves)
            for outcome, weight in zip(time.outcomes, time.weights, strict=True)
        ]
        count = len(modelled.decoded)
        self.busy = [0.0] * count
        self.spent = [0.0] * count
        self.executed = [0.0] * count
        self.stalls: dict[StallReason, list[float]] = {
            reason: [0.0] * count for reason in StallReason
        }
        self.pipe = dict.fromkeys(Pipe, 0.0)
        for outcome, scale in zip(time.outcomes, self._scale, strict=True):
            totals = outcome.totals
            for index in range(count):
                self.busy[index] += scale * totals.busy[index]
                self.spent[index] += scale * totals.spent[index]
                self.executed[index] += scale * totals.executed[index]
            for reason, values in totals.stalls.items():
                own = self.stalls[reason]
                for index in range(count):
                    own[index] += scale * values[index]
            for pipe, value in totals.pipes.items():
                self.pipe[pipe] += scale * value

    @property
    def all_waves(self) -> float:
        return float(self._modelled.launch.blocks * self._modelled.waves)

    def instances(self, pipe: Pipe) -> int:
        """Return how many of a pipe the board has."""
        alone = pipe in (Pipe.LDS, Pipe.MEMORY)
        per_unit = 1 if alone else self._rates.simds // self._rates.units
        return per_unit * self._modelled.board.compute_units

    def pipes(self) -> dict[Pipe, float]:
        cycles = self._time.cycles or 1.0
        return {
            pipe: min(1.0, self.pipe[pipe] * self.all_waves / self.instances(pipe) / cycles)
            for pipe in Pipe
        }

    def waits(self) -> dict[StallReason, float]:
        whole = sum(self.spent) or 1.0
        share_by_reason = {reason: sum(values) / whole for reason, values in self.stalls.items()}
        return {reason: share for reason, share in share_by_reason.items() if share > 0}

    def figures(self) -> tuple[InstructionFigures, ...]:
        figures = []
        for instruction in self._modelled.decoded:
            index = instruction.index
            if not self.executed[index]:
                continue
            sums = InstructionSums()
            for block, weight in zip(self._modelled.blocks, self._modelled.weights, strict=True):
                if touched := block.touched.get(index):
                    sums.add(touched, weight)
            memory: dict[str, float] = {}
            if sums.count and instruction.issue_class is IssueClass.LDS:
                memory = {"conflict": sums.banks / sums.free if sums.free else 1.0}
            elif sums.count and instruction.issue_class is IssueClass.MEMORY:
                memory = {
                    "requests": sums.requests / sums.count,
                    "bytes_used": sums.used / sums.count,
                    "bytes_moved": sums.moved / sums.count,
                }
            reasons = {
                reason: values[index] for reason, values in self.stalls.items() if values[index]
            }
            figures.append(
                InstructionFigures(
                    index=index,
                    executed=self.executed[index],
                    lanes=sums.lanes / sums.executed if sums.executed else 0.0,
                    issue=self.busy[index],
                    stall=sum(reasons.values()),
                    reasons=reasons,
                    **memory,
                )
            )
        return tuple(figures)

    def loops(self) -> tuple[LoopFigures, ...]:
        """Return the executed loops. While a wave is in an inner loop, the other waves are anywhere
        in the enclosing one."""
        function = self._modelled.function
        others = max(0.0, self._modelled.resident * self._modelled.waves / self._rates.simds - 1)
        loop_lines = []
        for loop in function.loops:
            outer = loop
            while outer.parent >= 0:
                outer = function.loops[outer.parent]
            rounds = self.executed[function.blocks[loop.header].first]
            if not rounds:
                continue
            blocks = [function.blocks[number] for number in loop.blocks]
            busy = self._matrix_share(loop) + others * self._matrix_share(outer)
            loop_lines.append(
                LoopFigures(
                    first=min(block.first for block in blocks),
                    last=max(block.end for block in blocks) - 1,
                    iterations=rounds,
                    cycles=sum(self.spent[index] for index in self._members(loop)) / rounds,
                    matrix_busy=min(1.0, busy),
                )
            )
        return tuple(loop_lines)

    def _members(self, loop: Loop) -> list[int]:
        blocks = [self._modelled.function.blocks[number] for number in loop.blocks]
        return [index for block in blocks for index in range(block.first, block.end)]

    def _matrix_share(self, loop: Loop) -> float:
        """Return the share of a wave's time in a loop in which its own matrix instructions occupy
        the pipe."""
        members = self._members(loop)
        spent = sum(self.spent[index] for index in members)
        decoded = self._modelled.decoded
        busy = sum(
            self.busy[index] for index in members if decoded[index].issue_class is IssueClass.MATRIX
        )
        return busy / spent if spent else 0.0


_NAMES = {
    Pipe.MATRIX: "matrix pipes",
    Pipe.VECTOR: "vector pipes",
    Pipe.LDS: "LDS",
    Pipe.MEMORY: "address units and L1",
}


def _limits(modelled: ModelledLaunch, means: _Means) -> tuple[ResourceLimit, ...]:
    """Return the least time of each used resource alone, the longest first."""
    board, machine = modelled.board, modelled.machine
    limits = []
    for pipe, name in _NAMES.items():
        time = means.pipe[pipe] * means.all_waves / means.instances(pipe) / board.clock_mhz
        if time:
            limits.append(ResourceLimit(name, Band(time, time, time), "at full utilization"))
    if (shared := modelled.sharing) is not None:
        peak = board.memory_bytes_per_s / 1e6
        limits.append(
            ResourceLimit(
                MEMORY_LIMIT,
                Band(*(shared.distinct / (peak * machine.memory_share.at(end)) for end in End)),
                f"{_format_bytes(shared.distinct)} distinct, each transferred once",
            )
        )
        if machine.last_level_bytes_s.mid:
            fetched = (shared.fetched.low, shared.fetched.mid, shared.fetched.high)
            rates = (machine.last_level_bytes_s.at(end) / 1e6 for end in End)
            limits.append(
                ResourceLimit(
                    LAST_LEVEL_LIMIT,
                    Band(*(count / rate for count, rate in zip(fetched, rates, strict=True))),
                    f"{_format_bytes(shared.fetched.mid)} fetched by the L2 caches",
                )
            )
        requested = shared.asked / (
            machine.l2_bytes_cycle.mid * board.compute_units * board.clock_mhz
        )
        limits.append(
            ResourceLimit(
                L2_LIMIT,
                Band(requested, requested, requested),
                f"{_format_bytes(shared.asked)} requested by blocks",
            )
        )
    limits.sort(key=lambda limit: -limit.time_us.mid)
    launch = machine.launch_us
    limits.append(
        ResourceLimit(
            "launch",
            Band(launch.fast, launch.mid, launch.slow),
            "between launches; not included in the modelled time",
        )
    )
    return tuple(limits)


def _format_bytes(count: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} B"
