"""What every part of the reduction template reads of a group: its stages, and how rows lie in
memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from scheduler.codegen.loops.alignment import VECTORS, Packs, reject_wide
from scheduler.codegen.loops.nest import Access
from scheduler.codegen.rocm.loop import RowProblem
from scheduler.codegen.rocm.reduction.stages import (
    Stage,
    find_stages,
    fuse_exponentials,
    fuse_moments,
)
from scheduler.ir.graph import Expr
from scheduler.ir.operations import Axis
from scheduler.ir.values import Load, loads
from scheduler.targets.amd import AmdHardware
from scheduler.targets.model import hip_hardware
from scheduler.targets.nvidia import NvidiaHardware

# With fewer, each thread would take several of the steps before and after a row's packs.
MIN_CUTTING_LANES = 8


@dataclass(frozen=True)
class ReductionProblem(RowProblem):
    """A group of reductions and pointwise members over the same rows."""

    # -- loops -----------------------------------------------------------------------------------

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Return the loops, and the statements that follow each."""
        return find_stages(self.nest.statements)

    @cached_property
    def reread_stages(self) -> tuple[Stage, ...]:
        """Return the stages of a thread that keeps nothing in registers: each loop reads everything
        again."""
        return fuse_exponentials(self.stages)

    @cached_property
    def split_stages(self) -> tuple[Stage, ...]:
        """Return the stages of rows that blocks share, or that lie side by side."""
        return fuse_exponentials(fuse_moments(self.stages))

    @property
    def split_loops(self) -> int:
        """Return the number of their loops over a row."""
        return sum(bool(stage.loop) for stage in self.split_stages)

    # -- rows ------------------------------------------------------------------------------------

    def cuts_always(self, width: int) -> bool:
        """Whether rows are cut for all sizes: if no sizes align packs of half the width, and
        rows have enough steps for each thread."""
        if width == 1 or self.row_packs[width].lead is None:
            return False
        narrower = [n for n in VECTORS if n > 1 and width <= 2 * n]
        can_align = any(self.row_packs[n].aligned for n in narrower)
        return not can_align and self.steps >= 2 * MIN_CUTTING_LANES * width

    def movable(self, width: int) -> tuple[Access, ...]:
        """Return the accesses that a thread makes ``width`` elements at a time, if sizes allow
        it."""
        packs = self.row_packs[width]
        return packs.aligned or (packs.movable_if_cut if self.cuts_always(width) else ())

    @cached_property
    def widest_vector(self) -> int:
        """Return the maximum neighbouring steps that can be read at once if sizes allow it."""
        return self._widest(self.movable)

    def _widest(self, movable: Callable[[int], Sequence[Access]]) -> int:
        """Return the maximum width of packs that a thread can load; 1 if there are none."""

        def fits(width: int) -> bool:
            accesses = movable(width)
            return bool(accesses) and reject_wide(self.nest, accesses, width) is None

        return max((width for width in VECTORS if width > 1 and fits(width)), default=1)

    # -- rows side by side -----------------------------------------------------------------------

    @property
    def column_axis(self) -> Axis | None:
        """Return the outer axis along which rows are contiguous in memory, if anything is read that
        way."""
        if not self.nest.outer:
            return None
        axis = self.nest.outer[-1]
        reads = [a for a in self.nest.accesses if not a.written]
        return axis if any(a.offset.step(axis.var) == 1 for a in reads) else None

    @cached_property
    def column_packs(self) -> Mapping[int, Packs]:
        """Return the packs of rows side by side, by width."""
        axis, accesses = self.column_axis, self.loop_accesses
        return {width: Packs(self.nest, axis, width, accesses) for width in VECTORS}

    @cached_property
    def widest_columns(self) -> int:
        """Return the maximum neighbouring rows that can be read at once; 1 if none can."""
        return self._widest(lambda width: self.column_packs[width].aligned)

    @cached_property
    def along_rows(self) -> bool:
        """Whether at least as many reads are contiguous along a row as across rows."""
        axis = self.row_axis
        if axis is None or not self.nest.outer:
            return True
        across = self.nest.outer[-1].var
        offsets = [a.offset for a in self.nest.accesses if not a.written]
        steps_along = sum(offset.step(axis.var) == 1 for offset in offsets)
        return bool(steps_along >= sum(offset.step(across) == 1 for offset in offsets))

    # -- reads -----------------------------------------------------------------------------------

    @cached_property
    def loop_accesses(self) -> tuple[Access, ...]:
        """Return the accesses at each step, except those of a whole row, which are known by then
        and written one by one."""
        accesses: dict[tuple[str, tuple[Expr, ...]], Access] = {}
        per_row = (s for s in self.nest.statements if s.kind is not None or not s.inner)
        row_buffers = {statement.store.buffer for statement in per_row}
        for statement in (s for stage in self.split_stages for s in stage.loop):
            keys = [(load.buffer, load.index) for load in loads(statement.value)]
            accesses |= {key: self.nest.access(*key) for key in keys if key[0] not in row_buffers}
            if statement.kind is None:
                key = statement.store.buffer, statement.store.index
                accesses[key] = self.nest.access(*key)
        return tuple(accesses.values())

    @property
    def bytes_per_step(self) -> int:
        """Return the bytes read from all buffers per element of a row."""
        read_buffers = {access.buffer for access in self.loop_accesses if not access.written}
        return sum(self.nest.buffer(name).dtype.itemsize for name in read_buffers)

    @cached_property
    def _loop_loads(self) -> tuple[tuple[int, Load], ...]:
        """Return the reads of each loop, with the number of its stage."""
        return tuple(
            (number, load)
            for number, stage in enumerate(self.stages)
            for load in dict.fromkeys(part for s in stage.loop for part in loads(s.value))
        )

    def _row_loads(self, width: int, cut: bool) -> Mapping[Load, list[int]]:
        """Return the reads that change along the row and move in packs of that width (not masked,
        for single elements), with the numbers of the stages whose loops do them."""
        if (width, cut) in self._row_loads_cache:
            return self._row_loads_cache[width, cut]
        stages_by_load: dict[Load, list[int]] = {}
        self._row_loads_cache[width, cut] = stages_by_load
        step_vars, axis = {axis.var for axis in self.nest.inner}, self.row_axis
        packs = self.row_packs[width]
        for number, load in self._loop_loads:
            access = self.nest.access(load.buffer, load.index)
            changes_along_row = step_vars & {*access.offset.coefficients, *access.offset.nonlinear}
            can_move = not access.masked
            if width > 1 and axis is not None:
                can_move = access in (packs.movable_if_cut if cut else packs.aligned) and not any(
                    self.nest.varies_along(part.value, axis) for part in load.indirect
                )
            if changes_along_row and can_move and load.buffer not in self.nest.outputs:
                stages_by_load.setdefault(load, []).append(number)
        return stages_by_load

    @cached_property
    def _row_loads_cache(self) -> dict[tuple[int, bool], Mapping[Load, list[int]]]:
        return {}

    def shared_loads(self, width: int, *, cut: bool) -> list[Load]:
        """Return reads that change along the row and occur in more than one loop."""
        return [load for load, stages in self._row_loads(width, cut).items() if len(stages) > 1]

    def later_loads(self, width: int, *, cut: bool) -> Mapping[Load, int]:
        """Return reads of inputs that change along the row and occur in one loop only, not the
        first, with that loop's number."""
        return {
            load: stages[0]
            for load, stages in self._row_loads(width, cut).items()
            if len(stages) == 1 and stages[0] > 0 and load.buffer in self.nest.inputs
        }

    def streamed_buffers(self, *, keeps_shared: bool) -> frozenset[str]:
        """Return buffers of NVIDIA's kernels whose elements are each read only once: such reads
        should not evict cached data that others need. ``keeps_shared``: elements that several
        loops read stay in registers. A kernel that stores elements as well gains nothing (measured
        on an H200), so it has none."""
        if not all(isinstance(hip_hardware(t), NvidiaHardware) for t in self.targets):
            return frozenset()
        if any(s.kind is None and s.inner for s in self.nest.statements):
            return frozenset()
        loop_axes = [axis for axis in (*self.nest.outer, *self.nest.inner) if axis.size != 1]
        readers: dict[str, list[Load]] = {}
        for _, load in self._loop_loads:
            readers.setdefault(load.buffer, []).append(load)

        def is_read_once(buffer: str, reads: list[Load]) -> bool:
            if len({*reads}) > 1 or (len(reads) > 1 and not keeps_shared) or reads[0].indirect:
                return False
            offset = self.nest.access(buffer, reads[0].index).offset
            return all(offset.step(axis.var) not in (None, 0) for axis in loop_axes)

        inputs = ((name, reads) for name, reads in readers.items() if name in self.nest.inputs)
        return frozenset(name for name, reads in inputs if is_read_once(name, reads))

    @property
    def split_streams(self) -> frozenset[str]:
        """Return these buffers for rows that blocks share: a second loop reads everything again,
        unless both were fused."""
        return self.streamed_buffers(keeps_shared=True) if self.split_loops == 1 else frozenset()

    @property
    def is_amd(self) -> bool:
        """Whether all targets are AMD's GPUs, or emulate them: NVIDIA's defaults were measured,
        AMD's follow the cycle model."""
        return all(isinstance(target.hardware, AmdHardware) for target in self.targets)
