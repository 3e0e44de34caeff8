"""Reduction kernels: rows shared by one thread, part of a wave, or several waves.

A group's stages run one after the other in the same threads: a loop over the inner axes for each
set of reductions that can share one, their combination across the threads of a row, then what is
computed once a row. With ``keep`` what several loops read stays in registers. Where it hangs on
sizes that are not known whether rows begin at whole packs, or fit into registers, a kernel has each
way and looks first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from scheduler.codegen.cpp.nest import NestPrinter
from scheduler.codegen.launch import ceil_div
from scheduler.codegen.legality import illegal
from scheduler.codegen.loops.nest import Access
from scheduler.codegen.loops.printer import Pack
from scheduler.codegen.printing.index import IndexPrinter
from scheduler.codegen.printing.lines import Lines
from scheduler.codegen.rocm.loop import LoopTemplate
from scheduler.codegen.rocm.reduction_default import default_shares
from scheduler.codegen.rocm.reduction_rows import RowBody
from scheduler.codegen.rocm.reduction_shared import (
    SharedReduction,
    as_config,
    is_shared,
    shared_configs,
    shares_of,
)
from scheduler.codegen.rocm.stages import Stage, finds_index, stages
from scheduler.codegen.template import Config, RenderedTemplate
from scheduler.ir.graph import Expr
from scheduler.ir.index.facts import is_multiple
from scheduler.ir.operations import Axis
from scheduler.ir.values import Load, loads
from scheduler.outcome import Rejected
from scheduler.targets.model import hip_hardware
from scheduler.targets.nvidia import NvidiaHardware

_LANES = (1, 8, 32, 64, 128, 256, 512, 1024)
_VECTORS = (1, 2, 4, 8)
_WIDEST_BYTES = 16
_BLOCK = 256
# A row that short (a pooling window) is not worth sharing.
_FEW_STEPS = 16
# Registers a thread gives to what stays between the loops.
_KEPT_ELEMENTS = 32


class ReductionTemplate(LoopTemplate):
    """Reductions and pointwise members over the same rows."""

    name = "reduction"

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The loops and what follows each."""
        return stages(self.nest.statements)

    @cached_property
    def shared(self) -> SharedReduction:
        """Its kernels in which blocks share rows, or threads side by side have one each."""
        return SharedReduction(self)

    def configs(self) -> Sequence[Config]:
        return [
            {"lanes": lanes, "vector": vector, "keep": keep}
            for keep in (False, True)
            for vector in _VECTORS
            for lanes in _LANES
        ] + list(shared_configs(_VECTORS))

    def reject(self, config: Config) -> Rejected | None:
        if is_shared(config):
            shares = shares_of(config)
            rejected = self._reject_vector(shares.vector) if shares.vector > 1 else None
            return rejected or self.shared.reject(shares)
        lanes, vector = int(config["lanes"]), int(config["vector"])
        steps = self.nest.inner_numel
        if steps.is_Integer and lanes > 1 and (lanes // 2) * vector >= int(steps):
            return illegal(f"{lanes} lanes of {vector} for {steps} elements: half would be idle")
        if vector > 1:
            rejected = self._reject_vector(vector, checked=True)
            if rejected:
                return rejected
        if config["keep"]:
            return self._reject_keep(lanes, vector)
        return None

    def _reject_vector(self, vector: int, *, checked: bool = False) -> Rejected | None:
        """``checked``: a kernel that looks at its sizes before it moves packs."""
        packs = self._packs(vector, checked=checked)
        if not packs:
            return illegal(f"no access is a run of {vector} aligned elements along the reduction")
        widest = max(self.lowered.buffers[a.buffer].dtype.itemsize for a in packs)
        if vector * widest > _WIDEST_BYTES:
            lane = self.targets[0].words.lane
            return illegal(f"{vector} elements of {widest} bytes are more than 16 bytes a {lane}")
        return None

    def _packs(self, vector: int, *, checked: bool) -> list[Access]:
        """The accesses that a thread makes ``vector`` elements at a time."""
        axis, nest = self._inner_axis, self.nest
        if axis is None:
            return []
        if checked:
            return [a for a in nest.accesses if nest.vector_needs(a, axis, vector) is not None]
        return [a for a in nest.accesses if nest.is_vector(a, axis, vector)]

    def _needs(self, vector: int) -> list[Expr]:
        """The sizes that must be multiples of ``vector`` where packs are moved."""
        axis = self._inner_axis
        if axis is None or vector == 1:
            return []
        packs = self._packs(vector, checked=True)
        needs = (self.nest.vector_needs(access, axis, vector) or () for access in packs)
        return list(dict.fromkeys(need for found in needs for need in found))

    def _reject_keep(self, lanes: int, vector: int) -> Rejected | None:
        steps = self.nest.inner_numel
        if not steps.is_Integer:
            return None if self.shared_loads(vector) else illegal("no two loops read the same")
        if steps == 0:
            return illegal("rows of no elements leave nothing in registers")
        kept = self.shared_loads(vector)
        if not kept:
            return illegal("no two loops read the same")
        each = self._kept_steps(lanes, vector) * vector
        short = vector > 1 and max(load.dtype.itemsize for load in kept) <= 2  # two a register
        if each > _KEPT_ELEMENTS * (2 if short else 1):
            return illegal(f"{each} elements a thread are more than {_KEPT_ELEMENTS} registers")
        return None

    def default_config(self) -> Config:
        shares = default_shares(
            self.shared, self.widest_vector, along_rows=self._inner_is_contiguous()
        )
        if shares is not None:
            return as_config(shares)
        rows = max(self.hint(self.nest.outer_numel), 1)
        steps = max(self.hint(self.nest.inner_numel), 1)
        vector = self._widest_vector(checked=True)
        lanes = self._default_lanes(rows, steps, vector)
        for keep in (True, False):
            for width in (lanes, *reversed([n for n in _LANES if n < lanes])):
                config: Config = {"lanes": width, "vector": vector, "keep": keep}
                if self.reject(config) is None:
                    return config
                if keep:
                    break
        raise AssertionError("one thread a row always serves")

    @cached_property
    def widest_vector(self) -> int:
        """The most neighbouring steps that can be read at once whatever the sizes; 1 where none."""
        return self._widest_vector(checked=False)

    def _widest_vector(self, *, checked: bool) -> int:
        for vector in reversed(_VECTORS):
            if vector == 1 or self._reject_vector(vector, checked=checked) is None:
                return vector
        return 1

    def _default_lanes(self, rows: int, steps: int, vector: int) -> int:
        enough_rows = rows >= 4 * _BLOCK
        if enough_rows and (steps <= _FEW_STEPS or not self._inner_is_contiguous()):
            return 1  # neighbouring threads take neighbouring rows, and nothing is combined
        # A few packs a thread; with few rows more threads each, so that the device is full.
        packs = self._packs_of_a_thread if rows * steps >= 1 << 16 else 1
        useful = steps / (vector * packs)
        return next((lanes for lanes in _LANES if lanes >= useful), _LANES[-1])

    @property
    def _packs_of_a_thread(self) -> int:
        """About four; twice as many where they are streamed and what threads have is a value with
        its place, which takes longer to combine (measured on an H200)."""
        finds = any(s.kind is not None and finds_index(s.kind) for s in self.nest.statements)
        return 8 if finds and self.read_once(kept=False) else 4

    def _inner_is_contiguous(self) -> bool:
        axis = self._inner_axis
        if axis is None or not self.nest.outer:
            return True
        outer = self.nest.outer[-1].var
        reads = [a.offset for a in self.nest.accesses if not a.written]
        along_inner = sum(offset.step(axis.var) == 1 for offset in reads)
        along_outer = sum(offset.step(outer) == 1 for offset in reads)
        return bool(along_inner >= along_outer)

    @property
    def _inner_axis(self) -> Axis | None:
        return self.nest.inner[-1] if self.nest.inner else None

    # -- text ------------------------------------------------------------------------------------

    def render(self, config: Config) -> RenderedTemplate:
        if is_shared(config):
            return self.shared.render(shares_of(config))
        lanes, vector = int(config["lanes"]), int(config["vector"])
        threads = max(lanes, _BLOCK)
        kept = self._kept_steps(lanes, vector) if config["keep"] else 0
        scratch = self._scratch_size() if lanes > 32 else 0
        steps, rows = self.nest.inner_numel, self.nest.outer_numel
        return self.finished(
            ceil_div(rows, threads // lanes),
            threads,
            threads // 32 * scratch,
            lanes=lanes,
            vector=vector,
            steps=kept,
            xnumel=self._index(rows),
            full=is_multiple(rows, threads // lanes),
            rnumel=self._index(steps),
            scratch_size=scratch,
            body=self._variants(vector, kept, scratch=bool(scratch)),
        )

    def _kept_steps(self, lanes: int, vector: int) -> int:
        """Of a thread, where what it reads stays in registers."""
        steps = self.nest.inner_numel
        if steps.is_Integer:
            return -(-int(steps) // (lanes * vector))
        return max(_KEPT_ELEMENTS // vector, 1)

    def _variants(self, vector: int, steps: int, *, scratch: bool) -> str:
        """The device function's statements: more than once where sizes say which serve."""
        conditions = [f"{self._index.atom(need)} % kVector == 0" for need in self._needs(vector)]
        ways = [(conditions, vector, steps)]
        if steps and not self.nest.inner_numel.is_Integer:
            fits = "rnumel <= kLanes * kVector * kSteps"
            ways = [([fits, *conditions], vector, steps), (conditions, vector, 0)]
        if conditions:
            ways.append(([], 1, 0))
        _, width, kept = ways[-1]
        text = self._body(width, kept, 1 if len(ways) == 1 else 2, scratch)
        for needed, width, kept in reversed(ways[:-1]):
            body = self._body(width, kept, 2, scratch)
            text = f"  if ({' && '.join(needed)}) {{\n{body}\n  }} else {{\n{text}\n  }}"
        return text

    @cached_property
    def _index(self) -> IndexPrinter:
        return self.printer(self.lines(), 1).index

    def _body(self, vector: int, steps: int, indent: int, scratch: bool) -> str:
        """Those of one way, which are the same for any number of lanes that use ``scratch`` alike;
        ``steps`` of a thread where what it reads stays in registers, else 0."""
        way = (vector, steps, indent, scratch)
        if way not in self._bodies:
            body = RowBody(self, vector, steps, indent, scratch=scratch)
            self._bodies[way] = str(body.text())
        return self._bodies[way]

    @cached_property
    def _bodies(self) -> dict[tuple[int, int, int, bool], str]:
        return {}

    def _scratch_size(self) -> int:
        """Bytes of the widest value that is combined; of two, where one is after another."""
        sizes = [
            16 if finds_index(s.kind) else s.accumulate.compute.itemsize
            for s in self.nest.statements
            if s.kind is not None
        ]
        return max(sizes, default=0) * min(len(sizes), 2)

    def printer(self, lines: Lines, vector: int) -> NestPrinter:
        axis = self._inner_axis
        pack = Pack(axis, vector, checked=bool(self._needs(vector))) if axis else None
        return NestPrinter(self.nest, lines, self.memory, pack, self.renamed)

    def shared_loads(self, vector: int) -> list[Load]:
        """Reads that change along the row and that more than one loop does."""
        return [load for load, readers in self._row_loads(vector).items() if len(readers) > 1]

    def later_loads(self, vector: int) -> Mapping[Load, int]:
        """Reads of inputs that change along the row and that one loop alone does, not the first:
        which one."""
        return {
            load: readers[0]
            for load, readers in self._row_loads(vector).items()
            if len(readers) == 1 and readers[0] > 0 and load.buffer in self.nest.inputs
        }

    def _row_loads(self, vector: int) -> dict[Load, list[int]]:
        """Reads that change along the row, with the numbers of the stages whose loops do them."""
        if vector not in self._found_loads:
            self._found_loads[vector] = self._find_row_loads(vector)
        return self._found_loads[vector]

    @cached_property
    def _found_loads(self) -> dict[int, dict[Load, list[int]]]:
        return {}

    def read_once(self, *, kept: bool) -> frozenset[str]:
        """Pointers of NVIDIA's kernels through which each element is read once in all: what such
        reads bring should not drive out what caches hold for others. ``kept`` says that what
        several loops read stays in registers. A kernel that stores elements as well gains nothing
        (measured on an H200), so none is named there."""
        if not all(isinstance(hip_hardware(one), NvidiaHardware) for one in self.targets):
            return frozenset()
        if any(s.kind is None and s.inner for s in self.nest.statements):
            return frozenset()
        axes = [axis for axis in (*self.nest.outer, *self.nest.inner) if axis.size != 1]
        readers: dict[str, list[tuple[Load, int]]] = {}
        for number, stage in enumerate(self.stages):
            for load in dict.fromkeys(part for s in stage.loop for part in loads(s.value)):
                readers.setdefault(load.buffer, []).append((load, number))
        found = set()
        for buffer, places in readers.items():
            several = len({load for load, _ in places}) > 1 or (len(places) > 1 and not kept)
            load, _ = places[0]
            offset = self.nest.access(buffer, load.index).offset
            whole = all(offset.step(axis.var) not in (None, 0) for axis in axes)
            if buffer in self.nest.inputs and whole and not several and not load.indirect:
                found.add(self.memory[buffer].pointer)
        return frozenset(found)

    def _find_row_loads(self, vector: int) -> dict[Load, list[int]]:
        printer = self.printer(self.lines(), vector)
        inner = {axis.var for axis in self.nest.inner}
        seen: dict[Load, list[int]] = {}
        for number, stage in enumerate(self.stages):
            for load in dict.fromkeys(part for s in stage.loop for part in loads(s.value)):
                access = self.nest.access(load.buffer, load.index)
                moves = inner & (set(access.offset.coefficients) | access.offset.nonlinear)
                legal = printer.is_packed(load) if vector > 1 else not access.masked
                if moves and legal and load.buffer not in self.nest.outputs:
                    seen.setdefault(load, []).append(number)
        return seen
