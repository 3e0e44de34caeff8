"""Pointwise kernels that read along one axis and write along another: squares transposed in
registers.

A thread has a square of ``width`` by ``width`` points. It reads the square's rows, each a pack
along the reads' axis, then writes its columns, each a pack along the stores' axis: both sides move
whole packs, and the lanes of a wave form a rectangle whose sides are whole cache lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scheduler.codegen.cpp.nest import NestPrinter
from scheduler.codegen.loops.nest import LoopNest
from scheduler.codegen.loops.printer import Sink
from scheduler.codegen.loops.statements import Statement
from scheduler.codegen.single_launch import ceil_div
from scheduler.ir.graph import Expr
from scheduler.ir.operations import Axis, numel
from scheduler.ir.values import Load, loads


@dataclass(frozen=True)
class LayoutCopy:
    """``reads`` are packs along ``across``; writes are contiguous along ``along``."""

    along: Axis
    across: Axis
    reads: tuple[Load, ...]
    width: int

    def other_axes(self, nest: LoopNest) -> list[Axis]:
        """Return all other axes."""
        return [axis for axis in nest.outer if axis not in (self.along, self.across)]

    def blocks(self, nest: LoopNest, lanes: int, threads: int) -> tuple[Expr, Expr, Expr]:
        """Return the blocks along the stores' axis, along the reads', and over all other axes, with
        ``lanes`` threads side by side along the stores' axis."""
        blocks_along = ceil_div(self.along.size, lanes * self.width)
        blocks_across = ceil_div(self.across.size, threads // lanes * self.width)
        return blocks_along, blocks_across, numel(self.other_axes(nest))


def find_layout_copy(nest: LoopNest, width: int) -> LayoutCopy | None:
    """Return the transposition that a nest needs: its stores are packs along the innermost axis,
    and its other reads are packs along another axis, the same for all of them."""
    if len(nest.outer) < 2 or nest.inner or width < 2:
        return None
    along = nest.outer[-1]
    writes = [access for access in nest.accesses if access.buffer in nest.outputs]
    if not all(nest.is_vectorizable(access, along, width) for access in writes):
        return None
    candidates = {
        load: nest.access(load.buffer, load.index)
        for statement in nest.statements
        for load in loads(statement.value)
        if not load.indirect and load.buffer in nest.inputs
    }
    for across in nest.outer[:-1]:
        reads = tuple(
            load
            for load, access in candidates.items()
            if access.offset.step(along.var) != 0 and nest.is_vectorizable(access, across, width)
        )
        if reads:
            return LayoutCopy(along, across, reads, width)
    return None


class LayoutCopyPrinter(NestPrinter):
    """Prints the points of a square. ``names`` of the two axes are their values at each point; the
    first values are ``…_first``."""

    _transposed_loads: Mapping[Load, str] = {}

    def print_squares(
        self, outer_index: str, statements: Sequence[Statement], layout: LayoutCopy, sink: Sink
    ) -> None:
        """Print the reads of the rows, then the columns one after the other; ``outer_index`` is the
        flat index of all other axes."""
        if outer_axes := layout.other_axes(self.nest):
            self.decode(outer_index, outer_axes)
        along, across = (self.names[axis.var.name] for axis in (layout.along, layout.across))
        pack_names = {load: f"turned{number}" for number, load in enumerate(layout.reads)}
        for load, name in pack_names.items():
            dtype = self._memory[load.buffer].buffer.dtype
            pack = f"kiln::Pack<{dtype.cpp}, {layout.width}>"
            self.lines.add(f"{pack} {name}[{layout.width}];", ())
        with self.pack_loop(layout.width):
            self.lines.add(self.index_definition(f"{along}_j", f"{along} + j"), ())
            row = {layout.along.var.name: f"{along}_j", layout.across.var.name: f"{across}_first"}
            self.values.index = self.index_printer({**self.names, **row})
            for load, name in pack_names.items():
                readers = (s for s in statements if load in set(loads(s.value)))
                nodes = tuple(dict.fromkeys(node for s in readers for node in s.store.nodes))
                with self.values.mark_nodes(nodes):
                    pointer = self._memory[load.buffer].pointer
                    text = self.load_pack(pointer, self.values.offset(load), layout.width)
                    self.lines.add(f"{name}[j] = {text};")
        self.values.index = self.index
        self._transposed_loads = {load: f"{name}[j][i]" for load, name in pack_names.items()}
        self.lines.add("#pragma unroll", ())
        with self.lines.block(f"for (int i = 0; i < {layout.width}; ++i)"):
            self.lines.add(self.index_definition(across, f"{across}_first + i"), ())
            self.run(statements, sink)

    def _preload(self, statements: Sequence[Statement]) -> None:
        super()._preload(statements)
        self.values.loads = {**self.values.loads, **self._transposed_loads}

    def is_packed(self, load: Load) -> bool:
        return load not in self._transposed_loads and super().is_packed(load)
