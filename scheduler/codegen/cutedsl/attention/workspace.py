"""The workspace of attention: operands that TMA cannot read as they are, which a preceding kernel
computes or copies into it in rows, and the partial results of blocks that share columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy

from scheduler.arithmetic import round_up
from scheduler.codegen.cutedsl.attention.tma import Tiles, elements_per_16_bytes
from scheduler.codegen.cutedsl.gemm.operands import align_bytes
from scheduler.codegen.loops.alignment import Pack
from scheduler.codegen.loops.nest import LoopNest
from scheduler.codegen.single_launch import ceil_div
from scheduler.fusion.reindex import reindex_value
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.bounds import bounds
from scheduler.ir.index.functions import FloorDiv, as_expr, variable
from scheduler.ir.index.ranges import Ranges
from scheduler.ir.index.trees import index_exprs
from scheduler.ir.operations import Axis, Buffer, BufferKind, OperandView, Pointwise, Store
from scheduler.ir.values import Value

THREADS = 256
_F32_BYTES = 4
_PACK_WIDTHS = (8, 4, 2)


@dataclass(frozen=True)
class PreparedOperand:
    """``operand`` in the workspace, from byte ``begin`` to ``end``: the part of the batch that it
    depends on, by row and depth. A row's elements are rounded up to whole 16 bytes."""

    operand: str
    nest: LoopNest
    tiles: Tiles
    begin: Expr
    end: Expr

    @staticmethod
    def create(
        operand: str,
        scope: OperandView,
        inner_axes: tuple[Axis, Axis],
        dtype: DType,
        buffers: Mapping[str, Buffer],
        ranges: Ranges,
        begin: Expr,
        nodes: tuple[str, ...],
    ) -> PreparedOperand:
        """Create the operand from the tree of ``scope``; ``inner_axes`` are its row and depth."""
        row, depth = inner_axes
        batch_axes = tuple(axis for axis in scope.axes if axis not in inner_axes)
        batch, positions, value = _operand_batch(batch_axes, scope.value, ranges.over(scope.axes))
        axes = (*batch, row, depth)
        pitch = as_expr(round_up(int(depth.size), elements_per_16_bytes(dtype)))
        extents = (*(axis.size for axis in (*batch, row)), pitch)
        strides = tuple(sympy.Mul(*extents[position + 1 :]) for position in range(len(extents)))
        name = f"{operand}_rows"
        size = tuple(axis.size for axis in axes)
        buffer = Buffer(name, dtype, size, strides, BufferKind.INTERMEDIATE)
        store = Store(name, tuple(axis.var for axis in axes), value, nodes)
        first_terms = (index * step for index, step in zip(positions, strides, strict=False))
        return PreparedOperand(
            operand,
            LoopNest([Pointwise(name, axes, store, nodes)], {**buffers, name: buffer}, ranges),
            Tiles(buffer, pitch, sympy.Add(*first_terms)),
            begin,
            begin + align_bytes(sympy.Mul(*extents, dtype.itemsize)),
        )

    @property
    def pack(self) -> Pack | None:
        """Return the points of a thread; None if it has one. The writes and at least one read are
        runs of its width, of at most 16 bytes."""
        if not self.nest.outer:
            return None
        axis = self.nest.outer[-1]
        for width in _PACK_WIDTHS:
            runs = [a for a in self.nest.accesses if self.nest.is_vectorizable(a, axis, width)]
            run_bytes = [self.nest.buffer(a.buffer).dtype.itemsize * width for a in runs]
            writes_runs = any(access.written for access in runs)
            if writes_runs and len(runs) > 1 and max(run_bytes) <= 16:
                return Pack(axis, width)
        return Pack(axis, 1)

    @property
    def blocks(self) -> Expr:
        """Return the kernel's number of blocks: at least one, since an empty grid cannot be
        launched."""
        pack = self.pack
        blocks = ceil_div(self.nest.outer_numel, THREADS * (pack.width if pack else 1))
        return blocks if bounds(blocks, self.nest.ranges)[0] > 0 else sympy.Max(blocks, 1)


@dataclass(frozen=True)
class SplitWorkspace:
    """``splits`` outputs of ``rows`` rows (of all batch entries) and ``depth`` columns in f32, and
    two numbers for each row of each, in the workspace from byte ``begin``."""

    splits: int
    rows: Expr
    depth: int
    begin: Expr

    @property
    def totals(self) -> Expr:
        """Return the byte at which the highest scores and the totals begin."""
        return self.begin + align_bytes(self.rows * (self.splits * self.depth * _F32_BYTES))

    @property
    def end(self) -> Expr:
        """Return the byte after the last one."""
        return self.totals + align_bytes(self.rows * (self.splits * 2 * _F32_BYTES))

    @property
    def blocks(self) -> Expr:
        """Return the number of blocks of the combining kernel, whose threads have two columns."""
        return ceil_div(self.rows * (self.depth // 2), THREADS)


def _operand_batch(
    batch: tuple[Axis, ...], value: Value, ranges: Ranges
) -> tuple[tuple[Axis, ...], tuple[Expr, ...], Value]:
    """Return the batch axes that a tree depends on, the position along each of a batch entry, and
    the tree over these axes: several query heads may share one key head."""
    axes: list[Axis] = []
    positions: list[Expr] = []
    for axis in batch:
        var = axis.var
        indices = [index for index in index_exprs(value) if var in index.free_symbols]
        if not indices or axis.size == 1:
            continue
        # Several entries share one if all indices depend only on the same quotient of the variable.
        quotients = {
            part for index in indices for part in index.atoms(FloorDiv) if part.args[0] == var
        }
        without_quotients = dict.fromkeys(quotients, as_expr(0))
        remaining = [index.xreplace(without_quotients) for index in indices]
        if len(quotients) != 1 or any(var in index.free_symbols for index in remaining):
            axes.append(axis)
            positions.append(var)
            continue
        (quotient,) = quotients
        divisor = quotient.args[1]
        shared_size = FloorDiv(axis.size + divisor - 1, divisor)
        shared_axis = Axis(variable(f"{var.name}_own", 0), shared_size)
        ranges = ranges.over((shared_axis,))
        value = reindex_value(value, {var: shared_axis.var * divisor}, ranges)
        axes.append(shared_axis)
        positions.append(quotient)
    return tuple(axes), tuple(positions), value
