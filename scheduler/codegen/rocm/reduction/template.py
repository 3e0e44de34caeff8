"""Reduction kernels: a row is shared by one thread, part of a wave, or several waves.

A group's stages run one after the other in the same threads: a loop over the inner axes for each
set of reductions that can share one, their combination across the threads of a row, then the
computations done once per row. With ``keep``, elements that several loops read stay in registers.
If unknown sizes decide whether rows begin at whole packs, or fit into registers, a kernel has each
version and checks first; rows that begin anywhere are cut at aligned packs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from scheduler.codegen.cpp.nest import NestPrinter
from scheduler.codegen.legality import illegal
from scheduler.codegen.loops import alignment
from scheduler.codegen.loops.nest import Access
from scheduler.codegen.loops.printer import Pack
from scheduler.codegen.printing.index import IndexPrinter
from scheduler.codegen.printing.lines import Lines
from scheduler.codegen.rocm.loop import LoopTemplate
from scheduler.codegen.rocm.loop_versions import Guarded, LoopVersion, print_versions
from scheduler.codegen.rocm.reduction.default import default_split, is_amd
from scheduler.codegen.rocm.reduction.online_softmax import fuse_exponentials
from scheduler.codegen.rocm.reduction.rows import RowBody
from scheduler.codegen.rocm.reduction.split import (
    SplitReduction,
    is_split,
    parse_split,
    split_config,
    split_configs,
)
from scheduler.codegen.rocm.reduction.split_body import accumulator_bytes
from scheduler.codegen.rocm.reduction.stages import Stage, finds_index, stages
from scheduler.codegen.single_launch import ceil_div
from scheduler.codegen.template import Config, RenderedTemplate
from scheduler.errors import Rejected
from scheduler.ir.graph import Expr
from scheduler.ir.index.affine import Affine
from scheduler.ir.index.facts import is_multiple
from scheduler.ir.operations import Axis
from scheduler.ir.values import Load, loads
from scheduler.targets.model import hip_hardware
from scheduler.targets.nvidia import NvidiaHardware

_LANES = (1, 8, 32, 64, 128, 256, 512, 1024)
_VECTORS = (1, 2, 4, 8)
_WIDEST_BYTES = 16
_BLOCK = 256
# Shorter rows (a pooling window) are not worth sharing.
_FEW_STEPS = 16
# More lanes wait for each other longer than for a second pack each (modelled on gfx942).
_WAITING_LANES = 512
# Registers of a thread for elements kept between the loops.
_KEPT_ELEMENTS = 32
# With fewer, each thread would take several of the steps before and after a row's packs.
_FEWEST_CUTTING = 8


class ReductionTemplate(LoopTemplate):
    """Reductions and pointwise members over the same rows."""

    name = "reduction"

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Return the loops, and the statements that follow each."""
        return stages(self.nest.statements)

    def stages_of(self, steps: int) -> tuple[Stage, ...]:
        """Return the stages of a version that keeps ``steps`` of a thread in registers: with none,
        each loop reads everything again."""
        return self.stages if steps else self._stages_reread

    @cached_property
    def _stages_reread(self) -> tuple[Stage, ...]:
        return fuse_exponentials(self.stages)

    @cached_property
    def split_reduction(self) -> SplitReduction:
        """Return its kernels in which blocks share rows, or threads side by side have one each."""
        return SplitReduction(self)

    def configs(self) -> Sequence[Config]:
        return [
            {"lanes": lanes, "vector": vector, "keep": keep}
            for keep in (False, True)
            for vector in _VECTORS
            for lanes in _LANES
        ] + list(split_configs(_VECTORS))

    def reject(self, config: Config) -> Rejected | None:
        if is_split(config):
            shares = parse_split(config)
            rejected = self._reject_vector(shares.vector) if shares.vector > 1 else None
            return rejected or self.split_reduction.reject(shares)
        lanes, vector = int(config["lanes"]), int(config["vector"])
        steps = self.nest.inner_numel
        if steps.is_Integer and lanes > 1 and (lanes // 2) * vector >= int(steps):
            return illegal(f"{lanes} lanes of {vector} for {steps} elements: half would be idle")
        if vector > 1:
            rejected = self._reject_vector(vector)
            if rejected:
                return rejected
            if lanes < _FEWEST_CUTTING and self.cuts_always(vector):
                return illegal(f"unaligned rows need {_FEWEST_CUTTING} or more lanes")
        if config["keep"]:
            return self._reject_keep(lanes, vector)
        return None

    def _reject_vector(self, vector: int) -> Rejected | None:
        packs = self._vector_accesses(vector) or (
            self._aligned_accesses(vector) if self.cuts_always(vector) else []
        )
        if not packs:
            return illegal(
                f"no access has {vector} aligned, consecutive elements along the reduction"
            )
        widest = max(self.lowered.buffers[a.buffer].dtype.itemsize for a in packs)
        if vector * widest > _WIDEST_BYTES:
            lane = self.targets[0].words.lane
            return illegal(
                f"{vector} elements of {widest} bytes exceed the limit of 16 bytes per {lane}"
            )
        return None

    def _vector_accesses(self, vector: int) -> list[Access]:
        """Return the accesses that a thread makes ``vector`` elements at a time, if sizes allow
        it."""
        axis, nest = self._inner_axis, self.nest
        if axis is None:
            return []
        return [
            a for a in nest.accesses if nest.alignment_requirements(a, axis, vector) is not None
        ]

    def _needs(self, vector: int) -> list[Expr]:
        """Return the sizes that must be multiples of ``vector`` for packs to be moved."""
        axis = self._inner_axis
        if axis is None or vector == 1:
            return []
        packs = self._vector_accesses(vector)
        needs = (self.nest.alignment_requirements(access, axis, vector) or () for access in packs)
        return list(dict.fromkeys(need for found in needs for need in found))

    def _reject_keep(self, lanes: int, vector: int) -> Rejected | None:
        steps = self.nest.inner_numel
        if steps == 0:
            return illegal("empty rows have nothing to keep in registers")
        kept = self.shared_loads(LoopVersion(vector, cut=self.cuts_always(vector)))
        if not kept:
            return illegal("no two loops share a load")
        if not steps.is_Integer:
            return None
        each = self._kept_steps(lanes, vector) * vector
        short = vector > 1 and max(load.dtype.itemsize for load in kept) <= 2  # two per register
        if each > _KEPT_ELEMENTS * (2 if short else 1):
            return illegal(
                f"{each} elements per thread exceed the limit of {_KEPT_ELEMENTS} registers"
            )
        return None

    def default_config(self) -> Config:
        shares = default_split(
            self.split_reduction, self.widest_vector, along_rows=self._inner_is_contiguous()
        )
        if shares is not None:
            return split_config(shares)
        rows = max(self.hint(self.nest.outer_numel), 1)
        steps = max(self.hint(self.nest.inner_numel), 1)
        for vector in (self.widest_vector, 1):
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
        """Return the maximum neighbouring steps that can be read at once if sizes allow it."""
        return next(n for n in reversed(_VECTORS) if n == 1 or self._reject_vector(n) is None)

    def _default_lanes(self, rows: int, steps: int, vector: int) -> int:
        enough_rows = rows >= 4 * _BLOCK
        if enough_rows and (steps <= _FEW_STEPS or not self._inner_is_contiguous()):
            return 1  # neighbouring threads take neighbouring rows, and nothing is combined
        # A few packs per thread; with few rows more threads each, so that the device is full.
        packs = self._packs_per_thread if rows * steps >= 1 << 16 else 1
        useful = steps / (vector * packs)
        lanes = next((lanes for lanes in _LANES if lanes >= useful), _LANES[-1])
        if lanes > _WAITING_LANES and packs == 1 and is_amd(self.targets):
            return _WAITING_LANES
        return lanes

    @property
    def _packs_per_thread(self) -> int:
        """Return about four; twice as many if packs are streamed and threads hold a value with its
        index, which takes longer to combine (measured on an H200)."""
        finds = any(s.kind is not None and finds_index(s.kind) for s in self.nest.statements)
        return 8 if finds and self.streamed_pointers(kept=False) else 4

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

    # -- source ----------------------------------------------------------------------------------

    def render(self, config: Config) -> RenderedTemplate:
        if is_split(config):
            return self.split_reduction.render(parse_split(config))
        lanes, vector = int(config["lanes"]), int(config["vector"])
        threads = max(lanes, _BLOCK)
        kept = self._kept_steps(lanes, vector) if config["keep"] else 0
        choices = self._choices(lanes, vector, kept)
        ways = [way for _, way in choices]
        scratch = max(map(self._scratch_size, ways)) if lanes > 32 else 0
        steps, rows = self.nest.inner_numel, self.nest.outer_numel
        return self.render_kernel(
            ceil_div(rows, threads // lanes),
            threads,
            threads // 32 * scratch,
            lanes=lanes,
            vector=vector,
            steps=kept,
            xnumel=self.index(rows),
            full=is_multiple(rows, threads // lanes),
            rnumel=self.index(steps),
            scratch_size=scratch,
            cuts=any(way.cut for way in ways),
            exponentials=any(s.exponentials for way in ways for s in self.stages_of(way.steps)),
            body=print_versions(
                choices, lambda way, indent: self._body(way, indent, scratch=bool(scratch))
            ),
        )

    def _kept_steps(self, lanes: int, vector: int) -> int:
        """Return the steps of a thread whose elements stay in registers."""
        steps = self.nest.inner_numel
        if steps.is_Integer:
            return -(-int(steps) // (lanes * vector))
        return max(_KEPT_ELEMENTS // vector, 1)

    def _choices(self, lanes: int, vector: int, steps: int) -> Sequence[Guarded[LoopVersion]]:
        """Return the versions of the loop over a row; several if sizes select one."""
        conditions, cut = self.conditions(vector), self.cuts_always(vector)
        fits = "rnumel <= kLanes * kVector * kSteps"
        kept = steps and not self.nest.inner_numel.is_Integer
        ways: list[Guarded[LoopVersion]] = [(conditions, LoopVersion(vector, steps, cut))]
        if kept:
            ways.insert(0, ([fits, *conditions], LoopVersion(vector, steps, cut)))
            ways[1] = (conditions, LoopVersion(vector, cut=cut))
        if not conditions:
            return ways
        if lanes < _FEWEST_CUTTING or self.lead(vector) is None:
            return [*ways, ([], LoopVersion())]
        if kept and self.shared_loads(LoopVersion(vector, steps, cut=True)):
            ways.append(([fits], LoopVersion(vector, steps, cut=True)))
        return [*ways, ([], LoopVersion(vector, cut=True))]

    def conditions(self, vector: int) -> list[str]:
        """Return the conditions under which rows begin at whole packs, as far as they depend on
        unknown sizes."""
        return [f"{self.index.atom(need)} % kVector == 0" for need in self._needs(vector)]

    def lead(self, vector: int) -> Affine | None:
        """Return the offset that decides where rows that begin anywhere are cut into packs; None if
        they cannot be."""
        if vector not in self._leads:
            axis = self._inner_axis
            self._leads[vector] = alignment.find_lead(self.nest, axis, vector) if axis else None
        return self._leads[vector]

    def cuts_all(self, vector: int) -> bool:
        """Whether every access that moves in packs in aligned rows also does so in cut rows."""
        cut = self._aligned_accesses(vector)
        return all(access in cut for access in self._vector_accesses(vector))

    def cuts_always(self, vector: int) -> bool:
        """Whether rows are cut whatever their sizes: if no sizes align packs of half the width, and
        rows have enough steps for each thread."""
        if vector == 1 or self.lead(vector) is None:
            return False
        aligned = any(self._vector_accesses(n) for n in _VECTORS if vector <= 2 * n and n > 1)
        steps = self.hint(self.nest.inner_numel)
        return not aligned and steps >= 2 * _FEWEST_CUTTING * vector

    def _aligned_accesses(self, vector: int) -> list[Access]:
        """Return the accesses that move in packs if rows are cut."""
        lead, axis = self.lead(vector), self._inner_axis
        if lead is None or axis is None:
            return []
        moves = alignment.is_aligned_with
        return [a for a in self.nest.accesses if moves(self.nest, a, lead, axis, vector)]

    @cached_property
    def _leads(self) -> dict[int, Affine | None]:
        return {}

    @cached_property
    def index(self) -> IndexPrinter:
        """Return a printer of sizes in the device functions."""
        return self.printer(self.lines(), LoopVersion()).index

    def _body(self, way: LoopVersion, indent: int, *, scratch: bool) -> str:
        """Return the statements of one version, which are the same for all numbers of lanes with
        the same use of ``scratch``."""
        key = (way, indent, scratch)
        if key not in self._bodies:
            self._bodies[key] = str(RowBody(self, way, indent, scratch=scratch).text())
        return self._bodies[key]

    @cached_property
    def _bodies(self) -> dict[tuple[LoopVersion, int, bool], str]:
        return {}

    def _scratch_size(self, way: LoopVersion) -> int:
        """Return the bytes of the widest combined value; of two if several are combined in
        sequence."""
        sizes = [
            accumulator_bytes(statement, stage)
            for stage in self.stages_of(way.steps)
            for statement in stage.reductions
        ]
        return max(sizes, default=0) * min(len(sizes), 2)

    def printer(self, lines: Lines, way: LoopVersion) -> NestPrinter:
        axis, vector = self._inner_axis, way.vector
        pack = None
        if axis is not None:
            lead = self.lead(vector) if way.cut else None
            pack = Pack(axis, vector, checked=bool(self._needs(vector)), lead=lead)
        return NestPrinter(self.nest, lines, self.memory, pack, self.symbol_renames)

    def shared_loads(self, way: LoopVersion) -> list[Load]:
        """Return reads that change along the row and occur in more than one loop."""
        return [load for load, readers in self._row_loads(way).items() if len(readers) > 1]

    def later_loads(self, way: LoopVersion) -> Mapping[Load, int]:
        """Return reads of inputs that change along the row and occur in one loop only, not the
        first, with that loop's number."""
        return {
            load: readers[0]
            for load, readers in self._row_loads(way).items()
            if len(readers) == 1 and readers[0] > 0 and load.buffer in self.nest.inputs
        }

    def _row_loads(self, way: LoopVersion) -> dict[Load, list[int]]:
        """Return reads that change along the row, with the numbers of the stages whose loops do
        them."""
        way = replace(way, steps=0)
        if way not in self._found_loads:
            self._found_loads[way] = self._find_row_loads(way)
        return self._found_loads[way]

    @cached_property
    def _found_loads(self) -> dict[LoopVersion, dict[Load, list[int]]]:
        return {}

    def streamed_pointers(self, *, kept: bool) -> frozenset[str]:
        """Return pointers of NVIDIA's kernels through which each element is read only once: such
        reads should not evict cached data that others need. ``kept``: elements that several loops
        read stay in registers. A kernel that stores elements as well gains nothing (measured on an
        H200), so it has none."""
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

    def _find_row_loads(self, way: LoopVersion) -> dict[Load, list[int]]:
        printer = self.printer(self.lines(), way)
        inner = {axis.var for axis in self.nest.inner}
        seen: dict[Load, list[int]] = {}
        for number, stage in enumerate(self.stages):
            for load in dict.fromkeys(part for s in stage.loop for part in loads(s.value)):
                access = self.nest.access(load.buffer, load.index)
                moves = inner & (set(access.offset.coefficients) | access.offset.nonlinear)
                legal = printer.is_packed(load) if way.vector > 1 else not access.masked
                if moves and legal and load.buffer not in self.nest.outputs:
                    seen.setdefault(load, []).append(number)
        return seen
