"""Reduction kernels: rows shared by one thread, part of a wave, or several waves.

A group's stages run one after the other in the same threads: a loop over the inner axes for each
set of reductions that can share one, their combination across the threads of a row, then what is
computed once a row. With ``keep`` what several loops read stays in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cached_property

from scheduler.codegen.cpp.nest import NestPrinter
from scheduler.codegen.cpp.values import convert, hold
from scheduler.codegen.launch import ceil_div
from scheduler.codegen.legality import illegal
from scheduler.codegen.loops.printer import Pack
from scheduler.codegen.loops.statements import Statement
from scheduler.codegen.printing.index import IndexPrinter
from scheduler.codegen.printing.lines import Lines
from scheduler.codegen.rocm.loop import LoopTemplate
from scheduler.codegen.rocm.stages import Stage, combination, finds_index, stages
from scheduler.codegen.template import Config, RenderedTemplate
from scheduler.ir.dtypes import DType
from scheduler.ir.operations import Axis
from scheduler.ir.values import Accumulator, Load, loads
from scheduler.outcome import Rejected

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

    def configs(self) -> Sequence[Config]:
        return [
            {"lanes": lanes, "vector": vector, "keep": keep}
            for keep in (False, True)
            for vector in _VECTORS
            for lanes in _LANES
        ]

    def reject(self, config: Config) -> Rejected | None:
        lanes, vector = int(config["lanes"]), int(config["vector"])
        steps = self.nest.inner_numel
        if steps.is_Integer and lanes > 1 and (lanes // 2) * vector >= int(steps):
            return illegal(f"{lanes} lanes of {vector} for {steps} elements: half would be idle")
        if vector > 1:
            rejected = self._reject_vector(vector)
            if rejected:
                return rejected
        if config["keep"]:
            return self._reject_keep(lanes, vector)
        return None

    def _reject_vector(self, vector: int) -> Rejected | None:
        axis = self._inner_axis
        packs = [a for a in self.nest.accesses if axis and self.nest.is_vector(a, axis, vector)]
        if not packs:
            return illegal(f"no access is a run of {vector} aligned elements along the reduction")
        widest = max(self.lowered.buffers[a.buffer].dtype.itemsize for a in packs)
        if vector * widest > _WIDEST_BYTES:
            lane = self.targets[0].words.lane
            return illegal(f"{vector} elements of {widest} bytes are more than 16 bytes a {lane}")
        return None

    def _reject_keep(self, lanes: int, vector: int) -> Rejected | None:
        steps = self.nest.inner_numel
        if not steps.is_Integer:
            return illegal("what stays in registers needs a static number of steps")
        if steps == 0:
            return illegal("rows of no elements leave nothing in registers")
        if not self._shared_loads(vector):
            return illegal("no two loops read the same")
        each = -(-int(steps) // (lanes * vector)) * vector
        if each > _KEPT_ELEMENTS:
            return illegal(f"{each} elements a thread are more than {_KEPT_ELEMENTS} registers")
        return None

    def default_config(self) -> Config:
        rows = max(self.hint(self.nest.outer_numel), 1)
        steps = max(self.hint(self.nest.inner_numel), 1)
        vector = self._default_vector()
        lanes = self._default_lanes(rows, steps, vector)
        for keep in (True, False):
            for width in (lanes, *reversed([n for n in _LANES if n < lanes])):
                config: Config = {"lanes": width, "vector": vector, "keep": keep}
                if self.reject(config) is None:
                    return config
                if keep:
                    break
        raise AssertionError("one thread a row always serves")

    def _default_vector(self) -> int:
        for vector in reversed(_VECTORS):
            if vector == 1 or self._reject_vector(vector) is None:
                return vector
        return 1

    def _default_lanes(self, rows: int, steps: int, vector: int) -> int:
        enough_rows = rows >= 4 * _BLOCK
        if enough_rows and (steps <= _FEW_STEPS or not self._inner_is_contiguous()):
            return 1  # neighbouring threads take neighbouring rows, and nothing is combined
        # About four packs a thread; with few rows more threads each, so that the device is full.
        packs = 4 if rows * steps >= 1 << 16 else 1
        useful = steps / (vector * packs)
        return next((lanes for lanes in _LANES if lanes >= useful), _LANES[-1])

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
        lanes, vector = int(config["lanes"]), int(config["vector"])
        threads = max(lanes, _BLOCK)
        keep = bool(config["keep"])
        scratch = self._scratch_size() if lanes > 32 else 0
        steps = self.nest.inner_numel
        return self.finished(
            ceil_div(self.nest.outer_numel, threads // lanes),
            threads,
            threads // 32 * scratch,
            lanes=lanes,
            vector=vector,
            steps=-(-int(steps) // (lanes * vector)) if keep else 0,
            xnumel=self._index(self.nest.outer_numel),
            rnumel=self._index(steps),
            scratch_size=scratch,
            body=self._body(vector, keep),
        )

    @cached_property
    def _index(self) -> IndexPrinter:
        return self._printer(self.lines(), 1).index

    def _body(self, vector: int, keep: bool) -> str:
        """The device function's statements, which are the same for any number of lanes."""
        if (vector, keep) not in self._bodies:
            self._bodies[vector, keep] = str(_Body(self, vector, keep).text())
        return self._bodies[vector, keep]

    @cached_property
    def _bodies(self) -> dict[tuple[int, bool], str]:
        return {}

    def _scratch_size(self) -> int:
        """Bytes of the widest value that is combined."""
        sizes = [
            16 if finds_index(s.kind) else s.accumulate.compute.itemsize
            for s in self.nest.statements
            if s.kind is not None
        ]
        return max(sizes, default=0)

    def _printer(self, lines: Lines, vector: int) -> NestPrinter:
        axis = self._inner_axis
        pack = Pack(axis, vector) if axis else None
        return NestPrinter(self.nest, lines, self.memory, pack, self.renamed)

    def _shared_loads(self, vector: int) -> list[Load]:
        """Reads that change along the row and that more than one loop does."""
        if vector not in self._shared:
            self._shared[vector] = self._find_shared_loads(vector)
        return self._shared[vector]

    @cached_property
    def _shared(self) -> dict[int, list[Load]]:
        return {}

    def _find_shared_loads(self, vector: int) -> list[Load]:
        printer = self._printer(self.lines(), vector)
        inner = {axis.var for axis in self.nest.inner}
        seen: dict[Load, int] = {}
        for stage in self.stages:
            for load in dict.fromkeys(part for s in stage.loop for part in loads(s.value)):
                access = self.nest.access(load.buffer, load.index)
                moves = inner & (set(access.offset.coefficients) | access.offset.nonlinear)
                legal = printer.is_packed(load) if vector > 1 else not access.masked
                if moves and legal and load.buffer not in self.nest.outputs:
                    seen[load] = seen.get(load, 0) + 1
        return [load for load, count in seen.items() if count > 1]


class _Body:
    """Prints the device function's statements; the threads of a row are ``kLanes`` in them."""

    def __init__(self, template: ReductionTemplate, vector: int, keep: bool) -> None:
        self.template = template
        self.nest = template.nest
        self.lines = template.lines()
        self.printer = template._printer(self.lines, vector)
        self._vector = vector
        self._kept = template._shared_loads(vector) if keep else []
        self._accumulators: dict[str, str] = {}
        self._rows = 0

    def text(self) -> Lines:
        self.printer.decode("xindex", self.nest.outer)
        if self._kept:
            self._declare_kept()
        for stage in self.template.stages:
            self._stage(stage)
        return self.lines

    def _declare_kept(self) -> None:
        arrays: dict[Load, str] = {}
        for number, load in enumerate(self._kept):
            arrays[load] = f"kept{number}"
            cpp = load.dtype.cpp
            element = f"kiln::Pack<{cpp}, {self._vector}>" if self._vector > 1 else cpp
            self.lines.add(f"{element} kept{number}[kSteps];", ())
        self.printer.keep_in_registers(arrays)

    def _stage(self, stage: Stage) -> None:
        for statement in stage.reductions:
            name = f"acc{len(self._accumulators)}"
            self._accumulators[statement.name] = name
            operation, cpp = combination(statement)
            self.lines.add(f"{cpp} {name} = {operation}::zero;", statement.store.nodes)
        if stage.loop:
            self._loop(stage)
        for statement in stage.reductions:
            self._combine(statement)
        for statement in stage.after:
            self._once_a_row(statement)

    def _loop(self, stage: Stage) -> None:
        stride = "kLanes * kVector" if self._vector > 1 else "kLanes"
        first = "lane * kVector" if self._vector > 1 else "lane"
        if self._kept:
            self.lines.add("#pragma unroll", ())
            with (
                self.lines.block("for (int k = 0; k < kSteps; ++k)"),
                self._guard(f"const index_t rindex = {first} + k * ({stride});"),
            ):
                self._at_each_step(stage)
            return
        with self.lines.block(f"for (index_t rindex = {first}; rindex < rend; rindex += {stride})"):
            self._at_each_step(stage)

    def _guard(self, declaration: str) -> AbstractContextManager[None]:
        self.lines.add(declaration, ())
        return self.lines.block("if (rindex < rend)")

    def _at_each_step(self, stage: Stage) -> None:
        with self.printer.values.scope():
            self.printer.decode("rindex", self.nest.inner)
            self.printer.run(stage.loop, self._sink)

    def _sink(self, statement: Statement) -> None:
        if statement.kind is None:
            self.printer.store(statement)
            return
        values = self.printer.values
        with values.computing(statement.store.nodes):
            text = values.value(statement.value)
            operation, cpp = combination(statement)
            if finds_index(statement.kind):
                position = "rindex + j" if self._vector > 1 else "rindex"
                element = f"{cpp}{{{text}, {position}}}"
            else:
                element = convert(text, statement.value.dtype, statement.accumulate.compute)
            name = self._accumulators[statement.name]
            values.lines.add(f"{name} = {operation}()({name}, {element});")

    def _combine(self, statement: Statement) -> None:
        name = self._accumulators[statement.name]
        operation, _ = combination(statement)
        text = f"{name} = kiln::lanes_reduce<kLanes, kThreads>({name}, {operation}(), scratch);"
        self.lines.add(text, statement.store.nodes)
        result = f"{name}.index" if finds_index(statement.kind) else name
        dtype = DType.I64 if finds_index(statement.kind) else statement.accumulate
        values = self.printer.values
        values.bind(Accumulator(dtype.compute, statement.name), result)
        values.bind(Accumulator(dtype, statement.name), result)
        with values.scope():
            values.bind(Accumulator(dtype.compute), result)
            values.bind(Accumulator(dtype), result)
            kept = self._write_row(statement)
        store = statement.store
        values.bind(Load(store.buffer, store.index, self._dtype(statement)), kept)

    def _once_a_row(self, statement: Statement) -> None:
        kept = self._write_row(statement)
        store = statement.store
        values = self.printer.values
        values.bind(Load(store.buffer, store.index, self._dtype(statement)), kept)

    def _dtype(self, statement: Statement) -> DType:
        return self.nest.buffer(statement.store.buffer).dtype

    def _write_row(self, statement: Statement) -> str:
        """One thread of the row writes; all of them know the value, whose text is returned."""
        values, store = self.printer.values, statement.store
        dtype = self._dtype(statement)
        name = f"row{self._rows}"
        self._rows += 1
        with values.computing(store.nodes):
            element = values.element(store.value, dtype)
            self.lines.add(f"const {dtype.cpp} {name} = {element};")
            if store.buffer in self.nest.outputs:
                pointer = self.template.memory[store.buffer].pointer
                place = f"{pointer}[{values.place(store)}]"
                self.lines.add(f"if (active && lane == 0) {place} = {name};")
        return hold(name, dtype)
