"""Runs blocks of a launch: groups of waves in lockstep, split when they diverge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.errors import UserError
from scheduler.isa.rocm.emulator import groups
from scheduler.isa.rocm.emulator.constant_tables import place_tables
from scheduler.isa.rocm.emulator.control import Ending
from scheduler.isa.rocm.emulator.decode import DECODE_ERRORS, StraightRun, decode_program
from scheduler.isa.rocm.emulator.launch import Launch
from scheduler.isa.rocm.emulator.limits import Limits
from scheduler.isa.rocm.emulator.log import Segment, build_trace
from scheduler.isa.rocm.emulator.memory import Memory, MemoryLimitError
from scheduler.isa.rocm.emulator.program import Program
from scheduler.isa.rocm.emulator.state import Finding, Group, Machine
from scheduler.isa.rocm.emulator.trace import WaveTrace
from scheduler.isa.rocm.emulator.wave_init import dispatch_packet, init_waves, kernarg_segment

_MAX_THREADS = 1024
_MAX_LDS = 1 << 18


@dataclass(frozen=True)
class EmulationResult:
    """``traces`` are in the order of blocks and waves. ``unknown`` counts, by mnemonic, the reached
    instructions that the emulator does not know; their results are zeros. ``findings`` are errors
    that no kernel may make. ``cut`` says which limit ended the run."""

    traces: tuple[WaveTrace, ...]
    unknown: Mapping[str, int]
    findings: tuple[Finding, ...]
    cut: str = ""


def run(
    program: Program,
    launch: Launch,
    memory: Memory,
    blocks: Sequence[int] = (0,),
    limits: Limits = Limits(),
    values: bool = True,
    traced: bool = True,
) -> EmulationResult:
    """Run the waves of ``blocks`` (numbers in the grid, x fastest) from beginning to end.

    ``values``: matrix instructions are computed; otherwise their results are left unchanged, and
    addresses stay exact unless one depends on a product. Without ``traced`` there are no traces.
    Stores change ``memory``.

    Raises:
        UserError: the launch does not fit the kernel.
    """
    name = program.function.name
    if min(*launch.grid, *launch.block) < 1 or launch.threads > _MAX_THREADS:
        raise UserError(f"{name}: invalid block {launch.block} or grid {launch.grid}")
    if not 0 <= launch.dynamic_lds_bytes + program.lds_bytes <= _MAX_LDS:
        raise UserError(f"{name}: {launch.dynamic_lds_bytes} bytes of dynamic LDS are not possible")
    if not blocks or min(blocks) < 0 or max(blocks) >= launch.blocks:
        raise UserError(f"{name}: the blocks to run must be below {launch.blocks}")
    with np.errstate(all="ignore"):
        return _Runner(program, launch, memory, blocks, limits, values, traced).run()


class _Runner:
    def __init__(
        self,
        program: Program,
        launch: Launch,
        memory: Memory,
        blocks: Sequence[int],
        limits: Limits,
        values: bool,
        traced: bool,
    ) -> None:
        self.program, self.launch, self.memory = program, launch, memory
        self.limits = limits
        waves_per_block = -(-launch.threads // program.lanes)
        self.waves = [(block, wave) for block in blocks for wave in range(waves_per_block)]
        if len(self.waves) > limits.waves:
            raise UserError(
                f"{program.function.name}: {len(self.waves)} waves exceed the "
                f"limit of {limits.waves}: choose fewer blocks"
            )
        self.slots = np.repeat(np.arange(len(blocks)), waves_per_block)
        words = -(-(program.lds_bytes + launch.dynamic_lds_bytes) // 16) * 4
        self.machine = Machine(
            *(memory, program.lanes, np.zeros(len(blocks) * words, np.uint32), words, values),
            scratch_words=-(-program.scratch_bytes // 4),
            traced=traced,
        )
        self.parts: list[list[tuple[Segment, int]]] = [[] for _ in self.waves]
        self.alive = Counter(self.slots.tolist())
        self.cut_waves: set[int] = set()
        self.cut = ""
        self.calls = limits.calls
        self.steps = limits.steps

    def run(self) -> EmulationResult:
        data = kernarg_segment(self.program, self.launch)
        room = -(-len(data) // 256) * 256
        image, addresses = place_tables(
            self.program.tables, self.memory.free_address() + room + 256
        )
        size = room + 256 + len(image)
        region = self.memory.map("arguments", self.memory.free_address(), size, data)
        at = region.address
        self.memory.write(at + room, dispatch_packet(self.program, self.launch, at))
        self.memory.write(at + room + 256, image)
        self.code = decode_program(self.program, addresses)
        try:
            machine = self.machine
            lane_words = self.code.registers + machine.scratch_words
            if len(self.waves) * self.program.lanes * lane_words > self.limits.registers:
                raise UserError(
                    f"{self.program.function.name}: {len(self.waves)} waves exceed the limit of "
                    "registers and scratch: choose fewer blocks"
                )
            group = Group(machine, list(range(len(self.waves))), self.slots, self.code.registers)
            if machine.scratch_words:
                shape = (group.count, group.lanes, machine.scratch_words)
                group.scratch = np.zeros(shape, np.uint32)
            init_waves(self.program, self.launch, group, self.waves, at)
            self._run_groups([group])
        finally:
            self.memory.unmap(region)
        unknown = Counter(self.machine.unknown.values())
        traces = tuple(
            build_trace(block, wave, self.parts[number], number in self.cut_waves)
            for number, (block, wave) in enumerate(self.waves)
            if self.machine.traced
        )
        return EmulationResult(traces, dict(unknown), self.machine.findings(), self.cut)

    def _run_groups(self, ready: list[Group]) -> None:
        """Advance the group that is furthest behind, until all have ended."""
        parked: list[Group] = []
        while ready or parked:
            if not ready:
                ready = self._release(parked, True)
                continue
            group = min(ready, key=lambda candidate: candidate.pc) if len(ready) > 1 else ready[0]
            ready.remove(group)
            if self.cut:
                self._end(group, True)
                continue
            bound = min((candidate.pc for candidate in ready), default=-1)
            for after, at_barrier in self._advance(group, bound):
                (parked if at_barrier else ready).append(after)
            if parked:
                ready += self._release(parked, False)
            if len(ready) > 1:
                by_pc: dict[int, list[Group]] = {}
                for group in ready:
                    by_pc.setdefault(group.pc, []).append(group)
                ready = []
                for same_pc in by_pc.values():
                    if len(same_pc) > 1:
                        for group in same_pc:
                            self._close(group)
                        ready.append(groups.merge_groups(same_pc))
                    else:
                        ready += same_pc

    def _advance(self, group: Group, bound: int) -> list[tuple[Group, bool]]:
        """Run a group until it ends, diverges, waits, or reaches an instruction where others
        wait."""
        while True:
            run = self.code.run_at(group.pc)
            length = run.end - run.first
            self.calls -= length
            self.steps -= length * group.count
            if self.calls < 0 or self.steps < 0:
                self.cut = "more instructions were executed than may be"
            elif self.machine.recorded > self.limits.recorded:
                self.cut = "traces hold more addresses than they may"
            if self.cut:
                self._end(group, True)
                return []
            if run.unknown:
                self.machine.unknown.update(run.unknown)
            active = group.active
            at, failed = 0, None
            try:
                for at, step in enumerate(run.steps):  # noqa: B007 - the one that fails
                    step(group)
            except MemoryLimitError:
                self.cut = "more memory was touched than may be"
                failed = run.places[at]
            except DECODE_ERRORS:  # invalid operands: the result would be meaningless
                failed = run.places[at]
                self.machine.unknown[failed] = self.program.function.instructions[failed].mnemonic
            if self.machine.traced:
                end = run.end if failed is None else failed + 1
                group.segment.runs.append((run.first, end, active, False))
            if failed is not None:
                self._end(group, True)
                return []
            after = self._next_groups(group, run)
            if after is not None:
                return after
            if bound >= 0 and group.pc >= bound:
                return [(group, False)]

    def _next_groups(self, group: Group, run: StraightRun) -> list[tuple[Group, bool]] | None:
        """Return where it continues; None: the group unchanged, at its new instruction."""
        control = run.control
        if control.ending is Ending.FALLS or control.ending is Ending.JUMPS:
            group.pc = control.target
            return None
        if control.ending is Ending.BRANCHES:
            assert control.condition is not None
            chosen = control.condition(group)
            if isinstance(chosen, int):
                group.pc = control.target if chosen else run.end
                return None
            self._close(group)
            split = []
            for target, value in ((control.target, 1), (run.end, 0)):
                columns = [
                    number for number, chosen_value in enumerate(chosen) if chosen_value == value
                ]
                if columns:
                    part = groups.split(group, columns)
                    part.pc = target
                    split.append((part, False))
            return split
        if control.ending is Ending.BARRIER:
            group.pc = run.end
            present = Counter(group.blocks.tolist())
            if all(count == self.alive[block] for block, count in present.items()):
                return None
            return [(group, True)]
        self._end(group, control.ending is Ending.CUT)
        return []

    def _release(self, parked: list[Group], forced: bool) -> list[Group]:
        """Return the groups at a barrier whose blocks have all arrived."""
        present: Counter[int] = Counter()
        for group in parked:
            present.update(group.blocks.tolist())
        result = [
            group
            for group in parked
            if forced
            or all(present[block] == self.alive[block] for block in set(group.blocks.tolist()))
        ]
        for group in result:
            parked.remove(group)
        return result

    def _close(self, group: Group) -> None:
        """Add what the waves did as this group to their traces."""
        for column, wave in enumerate(group.waves):
            self.parts[wave].append((group.segment, column))
        group.segment = Segment()

    def _end(self, group: Group, cut: bool) -> None:
        self._close(group)
        self.alive.subtract(group.blocks.tolist())
        if cut:
            self.cut_waves.update(group.waves)
