"""Operands that TMA cannot read as they are: a preceding kernel computes or copies them into the
workspace, in rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sympy

from scheduler.arithmetic import round_up
from scheduler.codegen.cutedsl.attention.tma import Tiles, elements_per_16_bytes
from scheduler.codegen.loops.nest import LoopNest
from scheduler.codegen.loops.printer import Pack
from scheduler.codegen.single_launch import ceil_div
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.bounds import bounds
from scheduler.ir.index.functions import FloorDiv, as_expr, variable
from scheduler.ir.index.ranges import Ranges
from scheduler.ir.index.substitute import substitute
from scheduler.ir.index.trees import index_exprs, simplify_tree
from scheduler.ir.operations import Axis, Buffer, BufferKind, OperandView, Pointwise, Store
from scheduler.ir.values import Value

_THREADS = 256
_ALIGNED_BYTES = 256
_WIDTHS = (8, 4, 2, 1)


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
        inner: tuple[Axis, Axis],
        dtype: DType,
        buffers: Mapping[str, Buffer],
        ranges: Ranges,
        begin: Expr,
        nodes: tuple[str, ...],
    ) -> PreparedOperand:
        """Create the operand from the tree of ``scope``, with ``inner`` its row and its depth."""
        row, depth = inner
        outside = tuple(axis for axis in scope.axes if axis not in inner)
        batch, places, value = _operand_batch(outside, scope.value, ranges.over(scope.axes))
        axes = (*batch, row, depth)
        pitch = round_up(int(depth.size), elements_per_16_bytes(dtype))
        strides = _strides((*(axis.size for axis in (*batch, row)), as_expr(pitch)))
        name = f"{operand}_rows"
        size = tuple(axis.size for axis in axes)
        buffer = Buffer(name, dtype, size, strides, BufferKind.INTERMEDIATE)
        at = tuple(axis.var for axis in axes)
        member = Pointwise(name, axes, Store(name, at, value, nodes), nodes)
        first = [place * step for place, step in zip(places, strides, strict=False)]
        count = sympy.Mul(*(axis.size for axis in (*batch, row)), pitch * dtype.itemsize)
        aligned = FloorDiv(count + (_ALIGNED_BYTES - 1), as_expr(_ALIGNED_BYTES)) * _ALIGNED_BYTES
        return PreparedOperand(
            operand,
            LoopNest([member], {**buffers, name: buffer}, ranges),
            Tiles(buffer, as_expr(pitch), sympy.Add(*first)),
            begin,
            begin + aligned,
        )

    @property
    def threads(self) -> int:
        """Return the threads of a block."""
        return _THREADS

    @property
    def pack(self) -> Pack | None:
        """Return the points of a thread; None if it has one."""
        if not self.nest.outer:
            return None
        axis, widths = self.nest.outer[-1], iter(_WIDTHS)
        return Pack(axis, next(width for width in widths if self._can_vectorize(axis, width)))

    def _can_vectorize(self, axis: Axis, width: int) -> bool:
        """Whether the writes and at least one read are runs of ``width`` elements, of at most 16
        bytes."""
        runs = [a for a in self.nest.accesses if self.nest.is_vectorizable(a, axis, width)]
        wide = [self.nest.buffer(a.buffer).dtype.itemsize * width for a in runs]
        written = any(access.written for access in runs)
        return width == 1 or (written and len(runs) > 1 and max(wide) <= 16)

    @property
    def blocks(self) -> Expr:
        """Return the kernel's number of blocks: at least one, since an empty grid cannot be
        launched."""
        pack = self.pack
        blocks = ceil_div(self.nest.outer_numel, _THREADS * (pack.width if pack else 1))
        return blocks if bounds(blocks, self.nest.ranges)[0] > 0 else sympy.Max(blocks, 1)


def _operand_batch(
    batch: tuple[Axis, ...], value: Value, ranges: Ranges
) -> tuple[tuple[Axis, ...], tuple[Expr, ...], Value]:
    """Return the batch axes that a tree depends on, the position along each of a batch entry, and
    the tree over these axes: several query heads may share one key head."""
    axes: list[Axis] = []
    places: list[Expr] = []
    for axis in batch:
        found = [index for index in index_exprs(value) if axis.var in index.free_symbols]
        if not found or axis.size == 1:
            continue
        shared = _common_quotient(axis.var, found)
        if shared is None:
            axes.append(axis)
            places.append(axis.var)
            continue
        by = shared.args[1]
        own = Axis(variable(f"{axis.var.name}_own", 0), FloorDiv(axis.size + by - 1, by))
        ranges = ranges.over((own,))
        value = simplify_tree(substitute(value, {axis.var: own.var * by}), ranges)
        axes.append(own)
        places.append(shared)
    return tuple(axes), tuple(places), value


def _common_quotient(var: sympy.Symbol, found: Sequence[Expr]) -> FloorDiv | None:
    """Return the only quotient of the variable that indices depend on; None if there is not exactly
    one."""
    quotients = {part for index in found for part in index.atoms(FloorDiv) if part.args[0] == var}
    if len(quotients) != 1:
        return None
    (quotient,) = quotients
    left = (index.xreplace({quotient: as_expr(0)}) for index in found)
    return None if any(var in index.free_symbols for index in left) else quotient


def _strides(sizes: tuple[Expr, ...]) -> tuple[Expr, ...]:
    return tuple(sympy.Mul(*sizes[position + 1 :]) for position in range(len(sizes)))
