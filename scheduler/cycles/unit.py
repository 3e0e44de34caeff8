"""A compute unit that runs traces of waves: when each instruction issues, and what it waits for.

Waves issue in order. Each SIMD considers its waves every ``cadence`` cycles and takes, for each
pipe, the first that is ready: by priority, then by age. A wave waits for results of the matrix pipe
(and on RDNA of the vector pipe) before it reads them, at ``s_waitcnt`` and the like for counters
whose operations return in order, at barriers for its block, for instructions that are not in the
cache, and for its pipe while that has another instruction.

LDS has three stages: a port into it per pair of SIMDs (addresses and written data), the banks
(``banks.py``), a port out. Memory is the address unit (``coalescing.py``), L1, this unit's share of
L2's bandwidth and of the memory's, and the latency of the level at which the lines are found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush, heappushpop

from scheduler.cycles.decode import WAIT_REASONS, DecodedInstruction
from scheduler.cycles.report import Span, StallReason
from scheduler.cycles.steps import (
    NO_LINE,
    REASON_CODES,
    SAME_LINE,
    MemoryEffect,
    Path,
    PathPreparer,
    PreparedPath,
    Step,
)
from scheduler.cycles.sums import Totals, sum_waves, wave_spans
from scheduler.cycles.waves import Block, Queue, Wave
from scheduler.isa.rocm.instruction_set.row import Counter, IssueClass
from scheduler.targets.cycle_model import Rates

_MAX_OUTSTANDING = 64  # outstanding operations that a counter remembers


_AFTER_WAVES = 1 << 30  # entries for free pipes come after all waves of that time
_VECTOR, _MATRIX, _PRIORITY, _WAIT, _BARRIER, _END = (
    int(IssueClass.VECTOR),
    int(IssueClass.MATRIX),
    int(IssueClass.PRIORITY),
    int(IssueClass.WAIT),
    int(IssueClass.BARRIER),
    int(IssueClass.END),
)
_LAST_PIPE = int(IssueClass.BRANCH)  # later issue classes need no pipe
_PIPE_ONLY = frozenset(
    map(int, (IssueClass.VECTOR, IssueClass.SCALAR, IssueClass.BRANCH))
)  # they only occupy a pipe
_QUEUED = frozenset(
    map(int, (IssueClass.VECTOR, IssueClass.MATRIX, IssueClass.LDS, IssueClass.MEMORY))
)
_SCALARS = int(Counter.SCALARS)
_FETCH, _LDS, _SCALAR = (
    REASON_CODES[reason] for reason in (StallReason.FETCH, StallReason.LDS, StallReason.SCALAR)
)
_COUNTED = [REASON_CODES[WAIT_REASONS[counter]] for counter in Counter]

_Entry = tuple[float, int, int, Wave | None, Step | None, Queue | None]
"""A heap entry: a wave whose step is next, or a queue whose pipe may be free."""


@dataclass(frozen=True)
class MemoryShare:
    """The unit's share of shared resources, in bytes per cycle; lines of its caches; whether the
    code may exceed the instruction cache."""

    memory_bytes_cycle: float
    l2_bytes_cycle: float
    l1_lines: int
    code_lines: int


@dataclass(frozen=True)
class WaveTimes:
    """When a wave began, ended and passed its marks; its spans if it is on the timeline."""

    block: int
    wave: int
    simd: int
    started: float
    ended: float
    marks: dict[int, float]
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class UnitResult:
    """``ends`` are the end times of the blocks, in their order; ``totals`` cover ``blocks`` blocks,
    as many as the run blocks represent."""

    cycles: float
    ends: tuple[float, ...]
    waves: tuple[WaveTimes, ...]
    totals: Totals
    instructions: int
    blocks: float


class Unit:
    """One run over ``blocks``, each a list of its waves' paths: ``resident`` at a time; when one
    ends, the next begins."""

    def __init__(
        self,
        decoded: Sequence[DecodedInstruction],
        rates: Rates,
        setting: MemoryShare,
        resident: int,
        timeline: int = 0,
    ) -> None:
        self._decoded = decoded
        self._rates = rates
        self._setting = setting
        self._resident = resident
        self._timeline = timeline
        self._preparing = PathPreparer(decoded, rates)
        self._prepared: dict[int, PreparedPath] = {}
        simds = rates.simds
        self._heap: list[_Entry] = []
        self._wave_counts = [0] * simds
        # For each SIMD, by issue class: when its pipe is free, the wave whose instruction it had
        # last, and the waves that wait only for their pipe, by priority and age. Each queue that is
        # not empty has an entry in the heap, at the time when the pipe is free.
        self._free = [[0.0] * len(IssueClass) for _ in range(simds)]
        self._owners: list[list[Wave | None]] = [[None] * len(IssueClass) for _ in range(simds)]
        self._queues: list[list[Queue]] = [[[] for _ in IssueClass] for _ in range(simds)]
        self._handlers: dict[int, Callable[[float, Wave, DecodedInstruction], None]] = {
            IssueClass.SCALAR_LOAD: self._load_scalars,
            IssueClass.LDS: self._access_lds,
            IssueClass.MEMORY: self._access_memory,
        }
        self._port_in = [0.0] * rates.lds_ports
        self._port_out = [0.0] * rates.lds_ports
        self._banks = 0.0
        self._addresses = 0.0
        self._l2 = 0.0
        self._memory = 0.0
        self._l1: dict[int, None] = {}
        self._code: dict[int, float] = {}
        self._ahead = int(rates.fetch_ahead)
        self._age = 0
        self._passed = {"memory": 0.0, "l2": 0.0}
        self._lines = {"hits": 0.0, "lines": 0.0}
        self._blocks: list[Block] = []
        self._queue: list[Sequence[Path]] = []
        self._weights: list[float] = []

    def run(
        self, blocks: Sequence[Sequence[Path]], weights: Sequence[float] | None = None
    ) -> UnitResult:
        """Run all blocks; each represents one block, or as many as ``weights`` says. Their lines
        are assumed to be disjoint."""
        self._queue = list(blocks)
        self._weights = [1.0] * len(blocks) if weights is None else list(weights)
        for _ in range(min(self._resident, len(self._queue))):
            if self._queue:  # waves that were cut before they did anything end as they start
                self._start(0.0)
        self._loop()
        waves = [wave for block in self._blocks for wave in block.waves]
        totals = sum_waves(self._decoded, self._rates, waves)
        totals.served |= self._passed
        totals.l1_hits, totals.l1_lines = self._lines["hits"], self._lines["lines"]
        ends = tuple(block.ended for block in self._blocks)
        times = []
        for wave in waves:
            marks = {at: wave.times[at] for at in wave.path.marks if at < len(wave.times)}
            marks |= {at: time for at, time in wave.arrived.items() if at in marks}
            on_timeline = wave.served is not None
            spans = wave_spans(self._decoded, self._rates, wave) if on_timeline else ()
            number = wave.block.waves.index(wave)
            times.append(
                WaveTimes(
                    *(wave.block.number, number, wave.simd, wave.started, wave.ended, marks, spans)
                )
            )
        return UnitResult(
            cycles=max(ends, default=0.0),
            ends=ends,
            waves=tuple(times),
            totals=totals,
            instructions=sum(len(wave.times) - len(wave.arrived) for wave in waves),
            blocks=sum(self._weights),
        )

    # -- blocks ---------------------------------------------------------------------------------

    def _start(self, time: float) -> None:
        number = len(self._blocks)
        paths = self._queue.pop(0)
        block = Block(number, len(paths), self._weights[number])
        self._blocks.append(block)
        for path in paths:
            if id(path) not in self._prepared:
                self._prepared[id(path)] = self._preparing.prepare(path)
            simd = min(range(len(self._wave_counts)), key=self._wave_counts.__getitem__)
            self._wave_counts[simd] += 1
            wave = Wave(
                path,
                self._prepared[id(path)],
                simd,
                block,
                self._age,
                self._free[simd],
                self._owners[simd],
                self._queues[simd],
                time,
                served={} if self._age < self._timeline else None,
            )
            self._age += 1
            block.waves.append(wave)
            self._schedule(wave, time)

    def _end(self, time: float, wave: Wave) -> None:
        wave.ended = time
        self._wave_counts[wave.simd] -= 1
        block = wave.block
        block.alive -= 1
        if block.alive == 0:
            block.ended = time
            if self._queue:
                self._start(time + self._rates.block_start)
        elif len(block.waiting) == block.alive:
            self._release(time, block)

    def _release(self, time: float, block: Block) -> None:
        """Release a block: all its waves are at the barrier."""
        end = time + self._rates.barrier
        waiting, block.waiting = block.waiting, []
        for wave in waiting:
            wave.held.append((len(wave.times), end, REASON_CODES[StallReason.BARRIER]))
            wave.times.append(end)
            self._schedule(wave, end)

    # -- waves ----------------------------------------------------------------------------------

    def _schedule(self, wave: Wave, base: float) -> None:
        entry = self._next_entry(wave, base)
        if entry is not None:
            heappush(self._heap, entry)

    def _next_entry(self, wave: Wave, base: float) -> _Entry | None:  # noqa: PLR0912
        """Return the next heap entry of a wave that could issue at ``base``. Instructions that
        concern only this wave issue here."""
        times, steps = wave.times, wave.prepared.steps
        cadence = self._rates.cadence
        while True:
            position = len(times)
            step = steps[position]
            act, line, needs, after, _, alone, instruction = step
            ready = base
            if line != SAME_LINE:
                if line == NO_LINE:
                    self._end(base, wave)
                    return None
                fetched = self._fetch_line(line, base)
                if fetched > ready:
                    ready, reason = fetched, _FETCH
            if needs:
                for before, busy, more, why in needs:
                    at = times[position - before] + busy + more
                    if at > ready:
                        ready, reason = at, why
            elif act == _WAIT:
                for counter, allowed in instruction.until:
                    queue = wave.counters[counter]
                    if len(queue) > allowed and queue[-1 - allowed] > ready:
                        ready, reason = queue[-1 - allowed], _COUNTED[counter]
                if ready > base and reason == _LDS and ready in wave.counters[_SCALARS]:
                    # Up to gfx11 LDS and scalar loads share a counter: the last one decides.
                    reason = _SCALAR
            if ready > base:
                wave.held.append((position, ready, reason))
            if cadence > 1:
                ready = wave.simd - cadence * ((wave.simd - ready) // cadence)
            if not alone:
                return (ready, wave.order, wave.age, wave, step, None)
            times.append(ready)
            base = ready + after

    def _fetch_line(self, line: int, time: float) -> float:
        """Return when a code line arrives; the lines after it are requested with it."""
        code, latency = self._code, self._rates.fetch_latency
        known = code.pop(line, None)
        code[line] = known = time + latency if known is None else known
        for ahead in range(line + 1, line + 1 + self._ahead):
            if ahead not in code:
                code[ahead] = time + latency
        while len(code) > self._setting.code_lines:
            del code[next(iter(code))]
        return known

    # -- instructions ---------------------------------------------------------------------------

    def _loop(self) -> None:  # noqa: PLR0912, PLR0915
        """Process all events in order of time. Nearly all of a run's time is spent here, once per
        instruction, which is why it is long; what can be done later is in ``sums.py``."""
        heap, put_take = self._heap, heappushpop
        cadence, handlers = self._rates.cadence, self._handlers
        entry = heappop(heap) if heap else None
        while entry is not None:
            time, order, _, wave, step, queue = entry
            if wave is None or step is None:
                # A pipe may be free: the first wave that waits for it issues.
                assert queue is not None
                _, _, wave, step = queue[0]
                act = step[0]
                later = wave.free[0] if act == _VECTOR else self._blocked(time, wave, act)
                if later > time:
                    entry = put_take(heap, self._wake(later, wave.simd, act, queue))
                    continue
                heappop(queue)
                if wave.owners[act] is wave:
                    wave.own.append(len(wave.times))
            else:
                act = step[0]
                if act <= _LAST_PIPE:
                    later = wave.free[act] if act in _PIPE_ONLY else self._blocked(time, wave, act)
                    if act not in _QUEUED:
                        if later > time:
                            later = self._slot(later, wave.simd)
                            entry = put_take(heap, (later, order, wave.age, wave, step, None))
                            continue
                    else:
                        waiting = wave.queues[act]
                        if waiting or later > time:
                            if not waiting:
                                later = max(later, time)
                                heappush(heap, self._wake(later, wave.simd, act, waiting))
                            heappush(waiting, (order, wave.age, wave, step))
                            entry = heappop(heap)
                            continue
            if act == _VECTOR:
                wave.free[_VECTOR] = time + step[4]
                wave.owners[_VECTOR] = wave
            elif act in _PIPE_ONLY:
                wave.free[act] = time + step[4]
            elif act == _BARRIER:
                block = wave.block
                wave.arrived[len(wave.times)] = time
                block.waiting.append(wave)
                if len(block.waiting) == block.alive:
                    self._release(time, block)
                entry = heappop(heap) if heap else None
                continue
            elif act == _MATRIX:
                wave.free[_MATRIX] = time + step[4]
                wave.owners[_MATRIX] = wave
                wave.free[_VECTOR] = time + self._rates.vector
            elif act == _PRIORITY:
                wave.order = -step[6].priority
            elif act in handlers:
                handlers[act](time, wave, step[6])
            wave.times.append(time)
            if act == _END:
                self._end(time + step[3], wave)
                following = None
            else:
                following = self._next_entry(wave, time + step[3])
            if queue:
                later = self._blocked(time, queue[0][2], act)
                later = max(later, time + cadence)
                heappush(heap, self._wake(later, queue[0][2].simd, act, queue))
            if following is not None:
                entry = put_take(heap, following)
            else:
                entry = heappop(heap) if heap else None

    def _slot(self, time: float, simd: int) -> float:
        """Return when the SIMD considers its waves next."""
        cadence = self._rates.cadence
        return simd - cadence * ((simd - time) // cadence) if cadence > 1 else time

    def _wake(self, time: float, simd: int, act: int, queue: Queue) -> _Entry:
        return (self._slot(time, simd), _AFTER_WAVES + act, simd, None, None, queue)

    def _blocked(self, time: float, wave: Wave, act: int) -> float:  # noqa: ARG002
        """Return the earliest time at which the pipe takes an instruction of that class."""
        free = wave.free
        later = free[IssueClass.SCALAR if act == IssueClass.SCALAR_LOAD else act]
        if act == IssueClass.MATRIX:
            return max(later, free[IssueClass.VECTOR])
        if act == IssueClass.LDS:
            return max(later, self._port_in[self._port(wave)] - self._rates.lds_queue)
        if act == IssueClass.MEMORY:
            return max(later, self._addresses - self._rates.memory_queue)
        return later

    def _load_scalars(self, time: float, wave: Wave, instruction: DecodedInstruction) -> None:
        wave.free[IssueClass.SCALAR] = time + instruction.busy
        end = time + self._rates.scalar_latency
        self._count(wave, instruction.incremented_counters, end)
        if Counter.SCALARS not in instruction.incremented_counters:
            last = wave.counters[instruction.incremented_counters[0]][-1]
            self._count(wave, (Counter.SCALARS,), last)

    @staticmethod
    def _count(wave: Wave, counters: Sequence[Counter], end: float) -> None:
        for counter in counters:
            queue = wave.counters[counter]
            queue.append(max(end, queue[-1]) if queue else end)
            if len(queue) > 2 * _MAX_OUTSTANDING:
                del queue[:_MAX_OUTSTANDING]

    def _port(self, wave: Wave) -> int:
        return wave.simd * self._rates.lds_ports // self._rates.simds

    def _access_lds(self, time: float, wave: Wave, instruction: DecodedInstruction) -> None:
        rates = self._rates
        position = len(wave.times)
        into, banks, back, busy = wave.prepared.local[position]
        wave.free[IssueClass.LDS] = time + rates.cadence
        port = self._port(wave)
        start = max(time, self._port_in[port])
        self._port_in[port] = start + into
        served = max(start + 4.0 * rates.wave / rates.lds_port, self._banks)
        self._banks = served + banks
        end = max(self._banks, start + into)
        if back:
            end = max(max(served, self._port_out[port]) + back, end)
            self._port_out[port] = end
        end += rates.lds_latency
        self._count(wave, instruction.incremented_counters, end)
        if wave.served is not None:
            wave.served[position] = start + max(busy, into)

    def _access_memory(self, time: float, wave: Wave, instruction: DecodedInstruction) -> None:
        rates = self._rates
        position = len(wave.times)
        effect = wave.path.effects[position]
        wave.free[IssueClass.MEMORY] = time + rates.cadence
        start = max(time, self._addresses)
        busy = (
            max(rates.address, effect.cycles) if isinstance(effect, MemoryEffect) else rates.address
        )
        self._addresses = end = start + busy / rates.units
        if isinstance(effect, MemoryEffect) and effect.lines:
            weight = wave.path.weights[position] * wave.block.weight
            end = self._end_of_access(start, end, wave, effect, weight)
            if instruction.direct:  # the banks take the data when it arrives, assuming no conflicts
                self._banks = max(self._banks, start) + effect.bytes_used / (4 * rates.lds_banks)
        self._count(wave, instruction.incremented_counters, end)
        if wave.served is not None:
            wave.served[position] = self._addresses

    def _end_of_access(
        self, start: float, end: float, wave: Wave, effect: MemoryEffect, weight: float
    ) -> float:
        """Return when an access is done, given when L1 began with it and was done with it."""
        rates, cache = self._rates, self._l1
        if effect.store:
            self._pass_l2(start, effect.bytes_moved, effect.bytes_used * effect.fresh, weight)
            return max(end, self._l2, self._memory) + rates.l2_latency
        block = wave.block.number << 48
        missing = 0
        for line in effect.lines:
            key = line | block
            if key in cache:
                del cache[key]
            else:
                missing += 1
                if len(cache) >= self._setting.l1_lines:
                    del cache[next(iter(cache))]
            cache[key] = None
        self._lines["lines"] += weight * len(effect.lines)
        self._lines["hits"] += weight * (len(effect.lines) - missing)
        if not missing:
            return end + rates.l1_latency
        moved = missing * rates.line
        self._pass_l2(start, moved, moved * effect.fresh, weight)
        end = max(end, self._l2, self._memory if effect.fresh else 0.0)
        from_memory = 1 - (1 - effect.fresh) ** missing
        return end + rates.l2_latency + from_memory * (rates.memory_latency - rates.l2_latency)

    def _pass_l2(self, start: float, moved: float, behind: float, weight: float) -> None:
        """Pass bytes through L2, and the part that it must fetch or write."""
        setting, served = self._setting, self._passed
        cycles = moved / setting.l2_bytes_cycle
        self._l2 = max(self._l2, start) + cycles
        served["l2"] += weight * cycles
        cycles = behind / setting.memory_bytes_cycle
        if cycles:
            self._memory = max(self._memory, start) + cycles
            served["memory"] += weight * cycles
