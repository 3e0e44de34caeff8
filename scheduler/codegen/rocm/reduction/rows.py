"""The device function of a reduction whose rows have one block at most: its statements.

Elements that a thread reads more than once are all read first, so that the reads are in flight
together; threads without a row read as the first row's do, and store nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from scheduler.codegen.cpp.nest import NestPrinter
from scheduler.codegen.rocm.reduction.body import ReductionBody
from scheduler.codegen.rocm.reduction.problem import ReductionProblem
from scheduler.codegen.rocm.reduction.stages import Stage
from scheduler.ir.values import Load, loads

# Registers of a thread for prefetched elements.
_MAX_REGISTER_BYTES = 192


@dataclass(frozen=True)
class LoopVersion:
    """A thread takes ``vector`` neighbouring steps at a time. Repeated reads stay in registers if a
    thread takes at most ``steps`` steps; 0 if values are read again. With ``cut``, rows begin
    anywhere: packs begin at aligned addresses, and the rest of a row before and after them is
    processed one step at a time (``loops/alignment.py``)."""

    vector: int = 1
    steps: int = 0
    cut: bool = False

    def stages(self, problem: ReductionProblem) -> tuple[Stage, ...]:
        """Return the stages: with nothing in registers, each loop reads everything again."""
        return problem.stages if self.steps else problem.reread_stages


class RowBody(ReductionBody):
    """Sums go through ``scratch`` if a row has more than one wave (``has_scratch``)."""

    shares_row_values = True

    def __init__(
        self,
        problem: ReductionProblem,
        version: LoopVersion,
        printer: NestPrinter,
        *,
        has_scratch: bool,
    ) -> None:
        super().__init__(printer, version.vector)
        self._problem = problem
        self._stages = version.stages(problem)
        loop_count = sum(bool(stage.loop) for stage in self._stages)
        keeps_shared = version.steps > 0 or loop_count == 1
        streamed = problem.streamed_buffers(keeps_shared=keeps_shared)
        printer.streamed_pointers = {printer.values.pointer(name) for name in streamed}
        vector, cut = version.vector, version.cut
        self._shared_loads = problem.shared_loads(vector, cut=cut) if version.steps else []
        # Elements that only a later loop reads (weights of a norm), as far as registers allow:
        # their reads are in flight while the sums before that loop are combined.
        self._later_loads: dict[Load, int] = {}
        if version.steps:
            elements = vector * version.steps
            shared_bytes = sum(elements * load.dtype.itemsize for load in self._shared_loads)
            free_bytes = _MAX_REGISTER_BYTES - shared_bytes
            for load, stage_number in problem.later_loads(vector, cut=cut).items():
                free_bytes -= elements * load.dtype.itemsize
                if free_bytes >= 0 and not load.indirect:
                    self._later_loads[load] = stage_number
        self._edges: dict[Load, str] = {}
        self._has_scratch = has_scratch
        self._exchange_count = 0

    def print(self) -> None:
        """Print all statements."""
        self.define_outer("0", "rnumel" if self._shared_loads else "rend")
        if self._shared_loads:
            self._declare_registers()
            self._prefetch([load for load in self._shared_loads if not load.indirect])
        for stage_number, stage in enumerate(self._stages):
            self.declare(stage)
            if stage.loop:
                self.loop(stage)
            next_stage = stage_number + 1
            self._prefetch(
                [load for load, first in self._later_loads.items() if first == next_stage]
            )
            for statement in stage.reductions:
                name, (operation, _) = self.accumulators[statement.name], self.combine_op(statement)
                # One of two halves in turn: the barrier of one exchange comes after the reads of
                # the previous one.
                is_second_half = self._has_scratch and self._exchange_count % 2 == 1
                scratch = "scratch + sizeof(scratch) / 2" if is_second_half else "scratch"
                self._exchange_count += 1
                operands = f"{name}, {operation}(), {scratch}"
                text = f"{name} = kiln::lanes_exchange<kLanes, kThreads>({operands});"
                self.lines.add(text, statement.store.nodes)
                if statement.name not in stage.points:
                    self.print_row(statement, self.new_row(), "active && lane == 0")
            for statement in stage.after:
                self.print_row(statement, self.new_row(), "active && lane == 0")

    # -- elements in registers -------------------------------------------------------------------

    def _declare_registers(self) -> None:
        if self.is_cut:
            self.lines.add("constexpr int kEdges = kiln::most_edges<kVector, kLanes>;", ())
        arrays: dict[Load, str] = {}
        for array_number, load in enumerate((*self._shared_loads, *self._later_loads)):
            arrays[load] = f"kept{array_number}"
            cpp = load.dtype.cpp
            pack = f"kiln::Pack<{cpp}, {self.vector}>" if self.vector > 1 else cpp
            self.lines.add(f"{pack} kept{array_number}[kSteps];", ())
            if self.is_cut:
                self._edges[load] = f"edge{array_number}"
                self.lines.add(f"{cpp} edge{array_number}[kEdges];", ())
        self.printer.keep_in_registers(arrays)

    def _prefetch(self, early_loads: Sequence[Load]) -> None:
        """Issue all reads before anything waits for one; a read through an index from memory is
        done where it is first needed."""
        if not early_loads:
            return
        loop_statements = [s for stage in self._problem.stages for s in stage.loop]
        nodes = {
            load: next(s.store.nodes for s in loop_statements if load in set(loads(s.value)))
            for load in early_loads
        }
        with self._each_register_step("rnumel", ""), self.printer.values.scope():
            self.printer.decode("rindex", self.nest.inner)
            for load in early_loads:
                self.printer.load_register_array(load, nodes[load])
        if self.is_cut:
            with self._each_register_edge(""):
                for load in early_loads:
                    self.printer.load_register_array(load, nodes[load])

    def loop(self, stage: Stage) -> None:
        if not self._shared_loads:
            super().loop(stage)
            return
        has_stores = any(statement.kind is None for statement in stage.loop)
        end, active = ("rend", "active && ") if has_stores else ("rnumel", "")
        with self._each_register_step(end, active):
            self.step(stage)
        self.init_indices(stage, "cut.last" if self.is_cut else end)
        if self.is_cut:
            with self._each_register_edge(active):
                self.printer.run(stage.loop, partial(self._sink, edge=True))

    @contextmanager
    def _each_register_step(self, end: str, active: str) -> Iterator[None]:
        """Run the lines inside for each step ``k`` of a thread before ``end``; in rows that are
        cut, if the condition ``active`` holds."""
        condition = f"{active}rindex < cut.last" if self.is_cut else f"rindex < {end}"
        self.lines.add("#pragma unroll", ())
        with self.lines.block("for (int k = 0; k < kSteps; ++k)"):
            self.lines.add(f"const index_t rindex = {self.first} + k * ({self.stride});", ())
            with self.lines.block(f"if ({condition})"):
                yield

    @contextmanager
    def _each_register_edge(self, active: str) -> Iterator[None]:
        """Run the lines inside at each step of a thread that is in no pack."""
        self.lines.add("#pragma unroll", ())
        with (
            self.lines.block("for (int k = 0; k < kEdges; ++k)"),
            self.lines.block(f"if ({active}lane + k * kLanes < cut.edges)"),
            self.at_edge("lane + k * kLanes", self._edges),
        ):
            yield
