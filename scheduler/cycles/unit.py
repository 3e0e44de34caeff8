"""A compute unit that runs traces of waves: when each instruction issues, and what it waits for.

Waves issue in order. Each SIMD looks at its waves every ``cadence`` cycles and takes, for each
pipe, the first that is ready: by priority, then by age. A wave waits for results of the matrix pipe
(and on RDNA of the vector pipe) before it reads them, at ``s_waitcnt`` and the like for counters
whose operations return in order, at barriers for its block, for instructions that are not in the
cache, and wherever its pipe has another instruction.

LDS is three stations: a port of a pair of SIMDs into it (addresses and data that are written), the
banks (``banks.py``), a port back. Memory is the address unit (``lines.py``), L1, this unit's share
of L2's bandwidth and of the memory's, and the latency of where the lines are found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from scheduler.cycles.constants import Rates
from scheduler.cycles.decode import REASONS, Act, Decoded
from scheduler.cycles.report import Pipe, Reason, Span

_SPANS = 1200  # of one wave of the timeline
_KEPT = 64  # of the operations under way that a counter remembers


@dataclass(frozen=True, slots=True)
class Local:
    """One access to LDS: cycles of the banks, bytes in (with addresses) and back."""

    banks: float
    bytes_in: float
    bytes_out: float


@dataclass(frozen=True, slots=True)
class Global:
    """One access to memory: cycles of the address unit and L1, the lines, and the share of them
    that L2 has not got yet."""

    cycles: float
    lines: tuple[int, ...]
    bytes_moved: int
    bytes_used: int
    store: bool
    fresh: float


Effect = Local | Global | None
_Key = tuple[Act, int]
_NO_KEY: _Key = (Act.FREE, 0)
_AFTER_WAVES = 1 << 30  # what a pipe becomes free for comes behind all waves of that time


@dataclass(frozen=True, slots=True)
class Path:
    """What a wave does: instructions, what each does to memory, and how many executions each
    stands for. ``marks`` are positions whose time of issue is asked for."""

    indices: list[int]
    effects: list[Effect]
    weights: list[float]
    marks: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Setting:
    """The unit's share of what others use too, in bytes a cycle; lines of its caches; whether the
    code may be larger than the instruction cache."""

    memory_bytes_cycle: float
    l2_bytes_cycle: float
    l1_lines: int
    code_lines: int


@dataclass(slots=True)
class _Wave:
    path: Path
    simd: int
    block: _Block
    age: int
    replica: int
    position: int = 0
    priority: int = 0
    base: float = 0.0
    """When it could have issued, had it nothing to wait for."""
    ready: float = 0.0
    reason: Reason | None = None
    pending: list[tuple[float, float, int]] = field(default_factory=list)
    pending_mask: int = 0
    counters: tuple[list[float], list[float], list[float], list[float]] = field(
        default_factory=lambda: ([], [], [], [])
    )
    line: int = -1
    started: float = 0.0
    ended: float = 0.0
    times: dict[int, float] = field(default_factory=dict)
    spans: list[Span] | None = None


@dataclass(slots=True)
class _Block:
    number: int
    alive: int
    weight: float
    waiting: list[_Wave] = field(default_factory=list)
    waves: list[_Wave] = field(default_factory=list)
    ended: float = 0.0


@dataclass
class Totals:
    """Sums over all waves, by instruction; cycles as executed, with the weights of the paths.
    ``served`` are cycles that what the unit has once was busy."""

    executed: list[float]
    busy: list[float]
    stalls: dict[Reason, list[float]]
    spent: list[float]
    pipes: dict[Pipe, float]
    served: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("memory", "l2", "addresses", "banks"), 0.0)
    )
    l1_hits: float = 0.0
    l1_lines: float = 0.0


@dataclass(frozen=True)
class WaveTimes:
    """When a wave began, ended and passed its marks; its spans where it is on the timeline."""

    block: int
    wave: int
    simd: int
    started: float
    ended: float
    marks: dict[int, float]
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class Outcome:
    """``ends`` are the times at which the blocks ended, in their order; ``totals`` are of
    ``blocks`` blocks, as many as those that were run stand for."""

    cycles: float
    ends: tuple[float, ...]
    waves: tuple[WaveTimes, ...]
    totals: Totals
    instructions: int
    blocks: float


class Unit:
    """One run over ``blocks``, each a list of its waves' paths: ``resident`` at a time, the next
    begins where one ends."""

    def __init__(
        self,
        decoded: Sequence[Decoded],
        rates: Rates,
        setting: Setting,
        resident: int,
        timeline: int = 0,
    ) -> None:
        self._decoded = decoded
        self._rates = rates
        self._setting = setting
        self._resident = resident
        self._timeline = timeline
        count = len(decoded)
        self.totals = Totals(
            [0.0] * count,
            [0.0] * count,
            {reason: [0.0] * count for reason in Reason},
            [0.0] * count,
            dict.fromkeys(Pipe, 0.0),
        )
        simds = rates.simds
        self._heap: list[tuple[float, int, int, _Wave | None, _Key]] = []
        self._held = [0] * simds
        self._free: dict[Act, list[float]] = {
            act: [0.0] * simds
            for act in (Act.VECTOR, Act.MATRIX, Act.SCALAR, Act.LDS, Act.MEMORY, Act.BRANCH)
        }
        self._does: dict[Act, Callable[[float, _Wave, Decoded, float], float]] = {
            Act.VECTOR: self._vector,
            Act.MATRIX: self._matrix,
            Act.SCALAR: self._scalar,
            Act.SCALAR_LOAD: self._scalar_load,
            Act.LDS: self._local,
            Act.MEMORY: self._global,
            Act.BRANCH: self._branch,
            Act.WAIT: self._slot,
            Act.PAUSE: self._pause,
            Act.PRIORITY: self._priority,
            Act.FREE: self._nothing,
            Act.END: self._slot,
        }
        self._free[Act.SCALAR_LOAD] = self._free[Act.SCALAR]
        self._owner: dict[Act, list[_Wave | None]] = {
            act: [None] * simds for act in (Act.VECTOR, Act.MATRIX)
        }
        # Waves that are ready but for their pipe: by priority and age, one list a pipe and SIMD.
        # For each that is not empty its key is in the heap, under the time when the pipe is free.
        self._waiting: dict[tuple[Act, int], list[tuple[int, int, _Wave]]] = {
            (act, simd): []
            for act in (Act.VECTOR, Act.MATRIX, Act.LDS, Act.MEMORY)
            for simd in range(simds)
        }
        self._port_in = [0.0] * rates.lds_ports
        self._port_out = [0.0] * rates.lds_ports
        self._banks = 0.0
        self._addresses = 0.0
        self._l2 = 0.0
        self._memory = 0.0
        self._l1: dict[int, None] = {}
        self._code: dict[int, float] = {}
        self._age = 0
        self._issued = 0
        self._finished: list[_Wave] = []
        self._blocks: list[_Block] = []
        self._queue: list[Sequence[Path]] = []
        self._weights: list[float] = []

    def run(
        self, blocks: Sequence[Sequence[Path]], weights: Sequence[float] | None = None
    ) -> Outcome:
        """Run all blocks, each of which stands for one or for as many as ``weights`` says. They
        are taken to touch lines of their own."""
        self._queue = list(blocks)
        self._weights = [1.0] * len(blocks) if weights is None else list(weights)
        for _ in range(min(self._resident, len(self._queue))):
            self._start(0.0)
        heap = self._heap
        while heap:
            time, _, _, wave, key = heappop(heap)
            if wave is not None:
                self._arrive(time, wave)
            else:
                self._wake(time, key)
        ends = tuple(block.ended for block in self._blocks)
        waves = tuple(
            WaveTimes(
                wave.block.number,
                wave.block.waves.index(wave),
                wave.simd,
                wave.started,
                wave.ended,
                wave.times,
                tuple(wave.spans or ()),
            )
            for block in self._blocks
            for wave in block.waves
        )
        return Outcome(
            max(ends, default=0.0), ends, waves, self.totals, self._issued, sum(self._weights)
        )

    # -- blocks ---------------------------------------------------------------------------------

    def _start(self, time: float) -> None:
        number = len(self._blocks)
        paths = self._queue.pop(0)
        block = _Block(number, len(paths), self._weights[number])
        self._blocks.append(block)
        for path in paths:
            simd = min(range(len(self._held)), key=self._held.__getitem__)
            self._held[simd] += 1
            wave = _Wave(path, simd, block, self._age, number)
            if self._age < self._timeline:
                wave.spans = []
            self._age += 1
            wave.started = time
            block.waves.append(wave)
            self._next(wave, time)

    def _end(self, time: float, wave: _Wave) -> None:
        wave.ended = time
        self._held[wave.simd] -= 1
        block = wave.block
        block.alive -= 1
        if block.alive == 0:
            block.ended = time
            if self._queue:
                self._start(time + self._rates.block_start)
        elif len(block.waiting) == block.alive:
            self._release(time, block)

    def _release(self, time: float, block: _Block) -> None:
        """All waves are at the barrier."""
        end = time + self._rates.barrier
        stalls, spent = self.totals.stalls[Reason.BARRIER], self.totals.spent
        waiting, block.waiting = block.waiting, []
        for wave in waiting:
            index = wave.path.indices[wave.position]
            weight = wave.path.weights[wave.position] * block.weight
            stalls[index] += weight * (end - wave.base)
            spent[index] += weight * (end - wave.base)
            self.totals.executed[index] += weight
            self._span(wave, wave.base, end, index, None, Reason.BARRIER)
            wave.position += 1
            self._next(wave, end)

    # -- waves ----------------------------------------------------------------------------------

    def _next(self, wave: _Wave, base: float) -> None:
        """Put a wave up for its next instruction, which it could issue at ``base``."""
        path = wave.path
        position = wave.position
        if position >= len(path.indices):
            self._end(base, wave)
            return
        one = self._decoded[path.indices[position]]
        ready, reason = base, None
        if one.line != wave.line:
            wave.line = one.line
            fetched = self._fetched(one.line, base)
            if fetched > ready:
                ready, reason = fetched, Reason.FETCH
        act = one.act
        if act is Act.WAIT:
            for counter, left in one.until:
                queue = wave.counters[counter]
                if len(queue) > left and queue[-1 - left] > ready:
                    ready, reason = queue[-1 - left], REASONS[counter]
            if reason is Reason.LDS and self._waits_for_scalars(wave, ready):
                reason = Reason.SCALAR
        elif wave.pending_mask & (one.reads | one.chained | one.writes):
            ready, reason = self._results(wave, one, ready, reason)
        wave.base, wave.ready, wave.reason = base, ready, reason
        cadence = self._rates.cadence
        if cadence > 1:
            ready = wave.simd - cadence * ((wave.simd - ready) // cadence)
        heappush(self._heap, (ready, -wave.priority, wave.age, wave, _NO_KEY))

    def _waits_for_scalars(self, wave: _Wave, ready: float) -> bool:
        """Up to gfx11 LDS and scalar loads have one counter: whose time is the last."""
        return ready in wave.counters[3]

    def _results(
        self, wave: _Wave, one: Decoded, ready: float, reason: Reason | None
    ) -> tuple[float, Reason | None]:
        left, mask = [], 0
        base = wave.base
        for chain, read, written in wave.pending:
            if read <= base:
                continue
            left.append((chain, read, written))
            mask |= written
            if written & (one.reads | one.writes if one.act is not Act.MATRIX else one.reads):
                at = read
            elif written & (one.chained | one.writes):
                at = chain
            else:
                continue
            if at > ready:
                ready = at
                reason = Reason.MATRIX if chain != read else Reason.DEPENDENCY
        wave.pending, wave.pending_mask = left, mask
        return ready, reason

    def _fetched(self, line: int, time: float) -> float:
        """When a line of code is there; those behind it are asked for with it."""
        code, latency = self._code, self._rates.fetch_latency
        known = code.pop(line, None)
        code[line] = known = time + latency if known is None else known
        for ahead in range(line + 1, line + 1 + int(self._rates.fetch_ahead)):
            if ahead not in code:
                code[ahead] = time + latency
        while len(code) > self._setting.code_lines:
            del code[next(iter(code))]
        return known

    def _span(
        self,
        wave: _Wave,
        start: float,
        end: float,
        index: int,
        pipe: Pipe | None,
        reason: Reason | None,
    ) -> None:
        spans = wave.spans
        if spans is not None and end > start and len(spans) < _SPANS:
            spans.append(Span(int(start), int(end), index, pipe, reason))

    # -- instructions ---------------------------------------------------------------------------

    def _arrive(self, time: float, wave: _Wave) -> None:
        """A wave is ready: issue, or wait for the pipe behind those that do."""
        one = self._decoded[wave.path.indices[wave.position]]
        act = one.act
        later = self._blocked(time, wave, act)
        waiting = self._waiting.get((act, wave.simd))
        if waiting is None:
            if later > time:
                self._again(later, wave)
            else:
                self._issue(time, wave, one)
        elif waiting or later > time:
            if not waiting:
                self._wake_at(max(later, time), (act, wave.simd))
            heappush(waiting, (-wave.priority, wave.age, wave))
        else:
            self._issue(time, wave, one)

    def _again(self, later: float, wave: _Wave) -> None:
        cadence = self._rates.cadence
        if cadence > 1:
            later = wave.simd - cadence * ((wave.simd - later) // cadence)
        heappush(self._heap, (later, -wave.priority, wave.age, wave, _NO_KEY))

    def _wake_at(self, time: float, key: _Key) -> None:
        cadence, simd = self._rates.cadence, key[1]
        if cadence > 1:
            time = simd - cadence * ((simd - time) // cadence)
        heappush(self._heap, (time, _AFTER_WAVES + key[0], simd, None, key))

    def _wake(self, time: float, key: _Key) -> None:
        """A pipe may be free: the first of those that wait for it issues."""
        waiting = self._waiting[key]
        wave = waiting[0][2]
        later = self._blocked(time, wave, key[0])
        if later <= time:
            heappop(waiting)
            self._issue(time, wave, self._decoded[wave.path.indices[wave.position]])
            if not waiting:
                return
            later = max(self._blocked(time, waiting[0][2], key[0]), time + self._rates.cadence)
        self._wake_at(later, key)

    def _issue(self, time: float, wave: _Wave, one: Decoded) -> None:
        """A wave's instruction goes to its pipe."""
        path = wave.path
        position = wave.position
        index, act = one.index, one.act
        if position in path.marks:
            wave.times[position] = time
        if act is Act.BARRIER:
            wave.base = time
            block = wave.block
            block.waiting.append(wave)
            if len(block.waiting) == block.alive:
                self._release(time, block)
            return
        self._issued += 1
        weight = path.weights[position] * wave.block.weight
        self._account(time, wave, index, weight)
        after = self._does[act](time, wave, one, weight)
        totals = self.totals
        totals.executed[index] += weight
        totals.spent[index] += weight * (time + after - wave.base)
        wave.position = position + 1
        if act is Act.END:
            self._end(time + after, wave)
        else:
            self._next(wave, time + after)

    def _blocked(self, time: float, wave: _Wave, act: Act) -> float:
        """When the pipe takes an instruction of that kind, at the earliest."""
        free = self._free.get(act)
        if free is None:
            return time
        later = free[wave.simd]
        if act is Act.MATRIX:
            return max(later, self._free[Act.VECTOR][wave.simd])
        if act is Act.LDS:
            return max(later, self._port_in[self._port(wave)] - self._rates.lds_queue)
        if act is Act.MEMORY:
            return max(later, self._addresses - self._rates.memory_queue)
        return later

    def _account(self, time: float, wave: _Wave, index: int, weight: float) -> None:
        """Write down what the wave waited for before this instruction."""
        base, ready = wave.base, wave.ready
        if time <= base:
            return
        reason = wave.reason
        if reason is not None:
            waited = (ready if ready < time else time) - base
            # The few cycles until its SIMD looks again belong to what it waited for.
            if time - ready < self._rates.cadence:
                waited = time - base
            self.totals.stalls[reason][index] += weight * waited
            self._span(wave, base, base + waited, index, None, reason)
            base += waited
        if time - base >= self._rates.cadence and not self._own(wave, index):
            self.totals.stalls[Reason.PIPE][index] += weight * (time - base)
            self._span(wave, base, time, index, None, Reason.PIPE)

    def _own(self, wave: _Wave, index: int) -> bool:
        """Whether it is the wave itself whose last instruction the pipe still had."""
        act = self._decoded[index].act
        owners = self._owner.get(act)
        return owners is not None and owners[wave.simd] is wave

    def _kept(self, time: float, wave: _Wave, one: Decoded, weight: float) -> None:
        """The instruction keeps its pipe of the SIMD."""
        self._free[one.act][wave.simd] = time + one.busy
        totals = self.totals
        totals.busy[one.index] += weight * one.busy
        if one.pipe is not None:
            totals.pipes[one.pipe] += weight * one.busy
            if wave.spans is not None:
                self._span(wave, time, time + one.busy, one.index, one.pipe, None)

    def _vector(self, time: float, wave: _Wave, one: Decoded, weight: float) -> float:
        self._kept(time, wave, one, weight)
        self._owner[Act.VECTOR][wave.simd] = wave
        if one.latency:
            end = time + one.latency
            wave.pending.append((end, end, one.writes))
            wave.pending_mask |= one.writes
        return self._rates.cadence

    def _matrix(self, time: float, wave: _Wave, one: Decoded, weight: float) -> float:
        self._kept(time, wave, one, weight)
        rates, simd = self._rates, wave.simd
        self._owner[Act.MATRIX][simd] = wave
        self._free[Act.VECTOR][simd] = time + rates.vector
        self.totals.pipes[Pipe.VECTOR] += weight * rates.vector
        chain = time + one.busy + rates.matrix_chain
        wave.pending.append((chain, time + one.latency, one.writes))
        wave.pending_mask |= one.writes
        return rates.cadence

    def _scalar(self, time: float, wave: _Wave, one: Decoded, weight: float) -> float:
        self._kept(time, wave, one, weight)
        return self._rates.cadence

    def _branch(self, time: float, wave: _Wave, one: Decoded, weight: float) -> float:
        self._kept(time, wave, one, weight)
        indices, following = wave.path.indices, wave.position + 1
        if following < len(indices) and indices[following] != one.index + 1:
            return self._rates.cadence + self._rates.branch
        return self._rates.cadence

    def _pause(self, time: float, wave: _Wave, one: Decoded, weight: float) -> float:  # noqa: ARG002
        return self._rates.cadence + one.pause

    def _priority(
        self,
        time: float,  # noqa: ARG002
        wave: _Wave,
        one: Decoded,
        weight: float,  # noqa: ARG002
    ) -> float:
        wave.priority = one.priority
        return self._rates.cadence

    def _nothing(self, *_: object) -> float:
        return 0.0

    def _slot(self, *_: object) -> float:
        return self._rates.cadence

    def _scalar_load(self, time: float, wave: _Wave, one: Decoded, weight: float) -> float:
        self._kept(time, wave, one, weight)
        end = time + self._rates.scalar_latency
        for counter in one.counts:
            self._count(wave, counter, end)
        if 3 not in one.counts:
            self._count(wave, 3, wave.counters[one.counts[0]][-1])
        return self._rates.cadence

    @staticmethod
    def _count(wave: _Wave, counter: int, end: float) -> None:
        queue = wave.counters[counter]
        queue.append(max(end, queue[-1]) if queue else end)
        if len(queue) > 2 * _KEPT:
            del queue[:_KEPT]

    def _port(self, wave: _Wave) -> int:
        return wave.simd * self._rates.lds_ports // self._rates.simds

    def _local(self, time: float, wave: _Wave, one: Decoded, weight: float) -> float:
        rates = self._rates
        effect = wave.path.effects[wave.position]
        self._free[Act.LDS][wave.simd] = time + rates.cadence
        port = self._port(wave)
        if not isinstance(effect, Local):
            effect = Local(1.0, 4.0 * rates.wave, 0.0)
        start = max(time, self._port_in[port])
        into = effect.bytes_in / rates.lds_port
        self._port_in[port] = start + into
        served = max(start + 4.0 * rates.wave / rates.lds_port, self._banks)
        banks = effect.banks / rates.units
        self._banks = served + banks
        self.totals.served["banks"] += weight * banks
        end = max(self._banks, start + into)
        back = effect.bytes_out / rates.lds_port
        if back:
            end = max(max(served, self._port_out[port]) + back, end)
            self._port_out[port] = end
        end += rates.lds_latency
        for counter in one.counts:
            self._count(wave, counter, end)
        busy = max(effect.banks, into / rates.lds_ports, back / rates.lds_ports)
        totals = self.totals
        totals.busy[one.index] += weight * busy
        totals.pipes[Pipe.LDS] += weight * busy
        self._span(wave, time, start + max(busy, into), one.index, Pipe.LDS, None)
        return rates.cadence

    def _global(self, time: float, wave: _Wave, one: Decoded, weight: float) -> float:
        rates = self._rates
        effect = wave.path.effects[wave.position]
        self._free[Act.MEMORY][wave.simd] = time + rates.cadence
        start = max(time, self._addresses)
        busy = rates.address
        if isinstance(effect, Global):
            busy = max(busy, effect.cycles)
        self._addresses = end = start + busy / rates.units
        self.totals.served["addresses"] += weight * busy / rates.units
        if isinstance(effect, Global) and effect.lines:
            end = self._behind_l1(start, end, wave, effect, weight)
        for counter in one.counts:
            self._count(wave, counter, end)
        totals = self.totals
        totals.busy[one.index] += weight * busy
        totals.pipes[Pipe.MEMORY] += weight * busy
        self._span(wave, time, self._addresses, one.index, Pipe.MEMORY, None)
        return rates.cadence

    def _behind_l1(
        self, start: float, end: float, wave: _Wave, effect: Global, weight: float
    ) -> float:
        """When an access is done that L1 has begun with."""
        rates = self._rates
        if effect.store:
            behind = effect.bytes_used * effect.fresh
            self._pass(start, effect.bytes_moved, behind, weight)
            return max(end, self._l2, self._memory) + rates.l2_latency
        missing = self._miss(wave, effect.lines)
        self.totals.l1_lines += weight * len(effect.lines)
        self.totals.l1_hits += weight * (len(effect.lines) - missing)
        if not missing:
            return end + rates.l1_latency
        moved = missing * rates.line
        self._pass(start, moved, moved * effect.fresh, weight)
        end = max(end, self._l2, self._memory if effect.fresh else 0.0)
        some = 1 - (1 - effect.fresh) ** missing
        return end + rates.l2_latency + some * (rates.memory_latency - rates.l2_latency)

    def _pass(self, start: float, moved: float, behind: float, weight: float) -> None:
        """Bytes through L2, and those of them that it must fetch or write."""
        setting, served = self._setting, self.totals.served
        cycles = moved / setting.l2_bytes_cycle
        self._l2 = max(self._l2, start) + cycles
        served["l2"] += weight * cycles
        cycles = behind / setting.memory_bytes_cycle
        if cycles:
            self._memory = max(self._memory, start) + cycles
            served["memory"] += weight * cycles

    def _miss(self, wave: _Wave, lines: tuple[int, ...]) -> int:
        """How many lines L1 does not have; it has them from now on."""
        cache = self._l1
        own = wave.replica << 48
        missing = 0
        for line in lines:
            key = line | own
            if key in cache:
                del cache[key]
            else:
                missing += 1
                if len(cache) >= self._setting.l1_lines:
                    del cache[next(iter(cache))]
            cache[key] = None
        return missing
