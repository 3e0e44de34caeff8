"""Prepares a path's instructions for a unit: looks up once all that does not depend on time.

Many blocks run the same path. The path determines which results an instruction needs, whether its
code is on another cache line than the one before, and how long after it its wave continues.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scheduler.cycles.decode import DecodedInstruction
from scheduler.cycles.report import StallReason
from scheduler.isa.rocm.instruction_set.row import IssueClass
from scheduler.targets.cycle_model import Rates


@dataclass(frozen=True, slots=True)
class LdsEffect:
    """One LDS access: cycles of the banks, bytes in (with addresses) and out."""

    banks: float
    bytes_in: float
    bytes_out: float


@dataclass(frozen=True, slots=True)
class MemoryEffect:
    """One memory access: cycles of the address unit and L1, the lines, and the share of them that
    L2 does not have yet."""

    cycles: float
    lines: tuple[int, ...]
    bytes_moved: int
    bytes_used: int
    store: bool
    fresh: float


Effect = LdsEffect | MemoryEffect | None


@dataclass(frozen=True, slots=True)
class Path:
    """A wave's path: instructions, the memory effect of each, and how many executions each
    represents. ``marks`` are positions whose issue time is recorded."""

    indices: list[int]
    effects: list[Effect]
    weights: list[float]
    marks: frozenset[int] = frozenset()


REASON_CODES = {reason: number for number, reason in enumerate(StallReason)}

Need = tuple[int, float, float, int]
"""A needed result: how many instructions before, the cycles from its issue until it is available,
in two parts, and the stall reason, as a number of ``REASON_CODES``."""

Step = tuple[int, int, tuple[Need, ...], float, float, bool, DecodedInstruction]
"""An instruction at its position: its issue class, the code line it begins (else ``SAME_LINE``; at
the end ``NO_LINE``), the results it needs, the cycles until its wave continues, those of its pipe,
and whether its issue and what follows concern only its own wave."""

SAME_LINE, NO_LINE = -1, -2
_WAVE_LOCAL = (
    IssueClass.WAIT,
    IssueClass.PAUSE,
    IssueClass.FREE,
)  # use no pipe, change nothing visible to other waves
_END_STEP: Step = (
    IssueClass.END,
    NO_LINE,
    (),
    0.0,
    0.0,
    False,
    DecodedInstruction(0, IssueClass.END, None, 0),
)

Indices = npt.NDArray[np.int64]
Cycles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PreparedPath:
    """A path's steps plus an end step. For the sums: indices, weights, cycles after each issue,
    cycles of its pipe. For its LDS accesses, by position: cycles in, of the banks and out, and
    those counted as its work."""

    steps: list[Step]
    indices: Indices
    weights: Cycles
    after: Cycles
    busy: Cycles
    local: dict[int, tuple[float, float, float, float]]


class PathPreparer:
    """Prepares the paths of one function at one end of the constants."""

    def __init__(self, decoded: Sequence[DecodedInstruction], rates: Rates) -> None:
        self._decoded = decoded
        self._rates = rates
        self._lines = np.array([each.line for each in decoded], np.int64)
        self._branches = np.array([each.issue_class is IssueClass.BRANCH for each in decoded], bool)
        self._alone = np.array([each.issue_class in _WAVE_LOCAL for each in decoded], bool)
        self._touches = np.array(
            [each.issue_class in (IssueClass.LDS, IssueClass.MEMORY) for each in decoded], bool
        )
        # Cycles from its issue until its wave can issue the next one; a barrier ends when all
        # waves have arrived.
        self._after = [
            0.0
            if each.issue_class in (IssueClass.FREE, IssueClass.BARRIER)
            else rates.cadence + each.pause
            for each in decoded
        ]
        self._written: list[_Result | None] = []
        for instruction in decoded:
            result = None  # its readers need not wait
            available = (instruction.latency, 0.0)
            if instruction.issue_class is IssueClass.MATRIX:
                accumulated = (instruction.busy, rates.matrix_chain)
                code = REASON_CODES[StallReason.MATRIX]
                result = _Result(instruction.writes, available, accumulated, code)
            elif instruction.issue_class is IssueClass.VECTOR and instruction.latency:
                code = REASON_CODES[StallReason.DEPENDENCY]
                result = _Result(instruction.writes, available, available, code)
            self._written.append(result)
        self._longest = max(
            (max(sum(each.read), sum(each.chained)) for each in self._written if each), default=0.0
        )
        self._masks = [each.reads | each.chained | each.writes for each in decoded]
        self._may_wait = np.array([bool(mask and self._longest) for mask in self._masks], bool)
        self._known: dict[tuple[int, tuple[Need, ...]], Step] = {}
        self._paths: dict[bytes, tuple[list[Step], Cycles, Cycles]] = {}
        self._straight: dict[int, tuple[tuple[Need, ...], int]] = {}

    def prepare(self, path: Path) -> PreparedPath:
        indices, rates = np.array(path.indices, np.int64), self._rates
        code = indices.tobytes()  # waves of a block mostly do the same with other addresses
        if code not in self._paths:
            steps = self._steps(path.indices, indices)
            after, busy = (np.array([step[part] for step in steps], float) for part in (3, 4))
            self._paths[code] = ([*steps, _END_STEP], after, busy)
        steps, after, busy = self._paths[code]
        busy, local = busy.copy(), {}
        for position in np.flatnonzero(self._touches[indices]).tolist():
            effect = path.effects[position]
            if steps[position][0] == IssueClass.LDS:
                if not isinstance(effect, LdsEffect):
                    effect = LdsEffect(1.0, 4.0 * rates.wave, 0.0)
                into, back = effect.bytes_in / rates.lds_port, effect.bytes_out / rates.lds_port
                work = max(effect.banks, into / rates.lds_ports, back / rates.lds_ports)
                local[position] = (into, effect.banks / rates.units, back, work)
                busy[position] = work
            else:
                cycles = effect.cycles if isinstance(effect, MemoryEffect) else 0.0
                busy[position] = max(rates.address, cycles)
        return PreparedPath(steps, indices, np.array(path.weights), after, busy, local)

    def _steps(self, path: Sequence[int], indices: Indices) -> list[Step]:
        lines = self._lines[indices]
        begins = np.ones(len(indices), bool)
        begins[1:] = lines[1:] != lines[:-1]
        follows = np.zeros(len(indices), bool)  # follows the previous one in the code
        follows[1:] = indices[1:] == indices[:-1] + 1
        jumps = np.zeros(len(indices), bool)
        jumps[:-1] = self._branches[indices[:-1]] & ~follows[1:]
        alone = self._alone[indices]
        alone[:-1] &= ~begins[1:]
        alone[-1:] = False
        keys = indices * 8 + begins * 4 + jumps * 2 + alone
        table = {key: self._step(key, ()) for key in np.unique(keys).tolist()}
        steps = [table[key] for key in keys.tolist()]
        at = np.arange(len(indices))
        runs = at - np.maximum.accumulate(np.where(follows, 0, at)) if len(at) else at
        waiting = np.flatnonzero(self._may_wait[indices])
        for position, key, run in zip(
            *(waiting.tolist(), keys[waiting].tolist(), runs[waiting].tolist()), strict=True
        ):
            needs = self._needs(path, position, run)
            if needs:
                steps[position] = self._step(key, needs)
        return steps

    def _step(self, key: int, needs: tuple[Need, ...]) -> Step:
        step = self._known.get((key, needs))
        if step is None:
            index = key >> 3
            instruction = self._decoded[index]
            line = instruction.line if key & 4 else SAME_LINE
            after = self._after[index] + (self._rates.branch if key & 2 else 0.0)
            act, busy = int(instruction.issue_class), instruction.busy
            step = (act, line, needs, after, busy, bool(key & 1), instruction)
            self._known[key, needs] = step
        return step

    def _needs(self, path: Sequence[int], position: int, run: int) -> tuple[Need, ...]:
        """Return the earlier results that may be missing when it is next: a wave takes some cycles
        from each instruction to the next. The ``run`` instructions before it also precede it in the
        code."""
        index = path[position]
        straight_needs = self._straight.get(index)
        if straight_needs is not None and straight_needs[1] <= run:
            return straight_needs[0]
        instruction, touched = self._decoded[index], self._masks[index]
        reads = instruction.reads if instruction.issue_class is IssueClass.MATRIX else touched
        latest_first: list[Need] = []
        elapsed, at = 0.0, position
        while at and elapsed <= self._longest:
            at -= 1
            before = path[at]
            elapsed += self._after[before]
            result = self._written[before]
            if result is None or not result.registers & touched:
                continue
            ahead = result.read if result.registers & reads else result.chained
            if sum(ahead) >= elapsed:
                latest_first.append((position - at, *ahead, result.reason))
        needs = tuple(reversed(latest_first))
        if position - at <= run and elapsed > self._longest:
            self._straight[index] = (needs, position - at)
        return needs


@dataclass(frozen=True)
class _Result:
    """The registers that an instruction writes, the cycles from its issue until they may be read,
    and until the matrix pipe may accumulate into them; each in two parts, as they are added."""

    registers: int
    read: tuple[float, float]
    chained: tuple[float, float]
    reason: int
