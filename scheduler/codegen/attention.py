"""The language-independent part of attention templates: operands, mask and stores over named
axes."""

from __future__ import annotations

from functools import cached_property

import sympy

from scheduler.arithmetic import ceil_div
from scheduler.codegen.attention_window import Window
from scheduler.codegen.comment import MetadataComment
from scheduler.codegen.loops.nest import LoopNest
from scheduler.codegen.loops.printer import NestPrinter
from scheduler.codegen.single_launch import InterfaceSpec, Kernel, SingleLaunchTemplate
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.dtypes import DType
from scheduler.ir.operations import (
    Attention,
    Axis,
    Buffer,
    BufferKind,
    Lowered,
    Pointwise,
    Store,
    numel,
)
from scheduler.ir.values import Accumulator, Cast, Value, loads, walk
from scheduler.targets import Target

_HALF_DTYPES = (DType.F16, DType.BF16)
# The largest soft cap for which capped scores may be counted from the lowest one, as 1 + tanh,
# which is within 2^-21: scores are then off by 2^-13, and weights by no more than f16 rounds them.
MAX_SHIFTED_CAP = 256
_TILE_BUFFER = "a tile in shared memory"


class AttentionTemplate(SingleLaunchTemplate[Kernel]):
    """One ``Attention`` operation.

    In the source the axes are ``b0``, ``b1`` … (batch), ``row``, ``column``, ``depth`` and
    ``value_depth``.
    """

    name = "attention"

    def __init__(
        self,
        node: SchedulerNode,
        lowered: Lowered,
        targets: tuple[Target, ...],
        comment: MetadataComment | None = None,
    ) -> None:
        super().__init__(node, lowered, targets, comment)
        operation = node.members[0]
        if len(node.members) != 1 or not isinstance(operation, Attention):
            raise ValueError(f"{node.name} is not an attention node")
        self.operation = self.remap_axes(operation)
        operation = self.operation
        self.element = self._element_dtype()
        self.axis_names = {axis.var.name: f"b{i}" for i, axis in enumerate(operation.batch)}
        for name in ("row", "column", "depth", "value_depth"):
            self.axis_names[getattr(operation, name).var.name] = name
        self.q, self.k, self.v, *masks = (
            self._nest(scope.axes, scope.value) for scope in operation.operands
        )
        self.mask = masks[0] if masks else None
        self.out = self._nest(operation.points, *operation.results)

    @cached_property
    def window(self) -> Window:
        """Return the columns that rows see."""
        return Window.create(self.operation)

    @property
    def adds_mask(self) -> bool:
        """Whether the mask is added to scores."""
        mask = self.operation.mask
        return mask is not None and mask.dtype is not DType.BOOL

    @property
    def has_log2_scores(self) -> bool:
        """Whether scores with their mask are multiplied by log2(e) before the maximum is taken, so
        that the difference of equal scores is 0 however large they are: a mask may hide a whole
        row, or all of a row's first tile, with f32's lowest number."""
        return self.adds_mask

    def _element_dtype(self) -> DType:
        """Return the element type of the tiles: 16 bits if the operands have it, also if something
        was fused into them (torch rounds there), else f32, or f64 if any operand is f64."""
        operation = self.operation
        values = (operation.q, operation.k, operation.v)
        narrowest_dtypes = {narrowest_dtype(value) for value in values}
        if len(narrowest_dtypes) == 1:
            return narrowest_dtypes.pop()
        stored_dtype = self.lowered.buffers[operation.stores[0].buffer].dtype
        if stored_dtype in _HALF_DTYPES and stored_dtype in {
            load.dtype for value in values for load in loads(value)
        }:
            return stored_dtype
        return DType.F64 if DType.F64 in narrowest_dtypes else DType.F32

    def remap_axes(self, operation: Attention) -> Attention:
        """Return the same operation over the axes that the kernel walks."""
        return operation

    def _nest(self, axes: tuple[Axis, ...], *values: Value | Store) -> LoopNest:
        """Return the accesses of an operand or of the stores, over axes as the kernel walks
        them."""
        size = tuple(axis.size for axis in axes)
        stride = tuple(sympy.Integer(0) for _ in axes)
        tile = Buffer(_TILE_BUFFER, self.element, size, stride, BufferKind.INTERMEDIATE)
        index = tuple(axis.var for axis in axes)
        members = [
            Pointwise(
                f"part{position}",
                axes,
                value
                if isinstance(value, Store)
                else Store(_TILE_BUFFER, index, value, self.operation.nodes),
                self.operation.nodes,
            )
            for position, value in enumerate(values)
        ]
        buffers = {**self.lowered.buffers, _TILE_BUFFER: tile}
        return LoopNest(members, buffers, self.ranges, arrange=False)

    def split_count(self, block_rows: int, min_columns: int, enough_blocks: int) -> int:
        """Return how many blocks should share the columns of the same ``block_rows`` rows, at least
        ``min_columns`` each, so that ``enough_blocks`` occupy the GPU."""
        operation = self.operation
        row_blocks = self.hint(numel(operation.batch)) * ceil_div(
            self.hint(operation.row.size), block_rows
        )
        max_splits = self.hint(operation.column.size) // min_columns
        return max(min(enough_blocks // max(row_blocks, 1), max_splits), 1)

    @property
    def nests(self) -> tuple[LoopNest, ...]:
        """Return the nests of the operands, of the mask if there is one, and of the stores."""
        nests = (self.q, self.k, self.v, self.mask, self.out)
        return tuple(nest for nest in nests if nest is not None)

    @cached_property
    def interface(self) -> InterfaceSpec:
        operation = self.operation
        inputs = dict.fromkeys(name for nest in self.nests for name in nest.inputs)
        symbols = {name for nest in self.nests for name in nest.symbols()}
        points = numel(operation.points)
        return InterfaceSpec(
            tuple(inputs),
            self.out.outputs,
            tuple(sorted(symbols)),
            points,
            any(nest.offsets_need_64_bits() for nest in self.nests),
        )


def narrowest_dtype(value: Value) -> DType:
    """Return the narrowest type that holds a tree's value without loss, looking through widening
    casts."""
    dtype = without_widening(value).dtype
    return dtype if dtype.is_float else DType.F32


def without_widening(value: Value) -> Value:
    """Return the value before the casts that widen it to the type that kernels compute in."""
    while isinstance(value, Cast) and value.dtype is value.value.dtype.compute_dtype:
        value = value.value
    return value


def bind_results(printer: NestPrinter, result: str, dtype: DType) -> None:
    """Let the stores of ``printer`` use ``result``, the text of a result held as ``dtype``."""
    for statement in printer.nest.statements:
        for value in walk(statement.store.value):
            if isinstance(value, Accumulator):
                is_direct = value.dtype.compute_dtype is dtype
                text = result if is_direct else printer.values.convert(result, dtype, value.dtype)
                printer.values.bind(value, text)
