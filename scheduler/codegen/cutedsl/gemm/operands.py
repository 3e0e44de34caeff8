"""Operands of a matrix product for TMA: loaded in place, or from the workspace, where a separate
kernel writes them (computed, masked, or with unaligned rows)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import sympy

from scheduler.codegen.contraction.indices import collapsed_stride
from scheduler.codegen.contraction.interface import ContractionInterface
from scheduler.codegen.contraction.operand import Operand
from scheduler.codegen.cutedsl.gemm.hooks import ContractionHooks
from scheduler.codegen.cutedsl.gemm.im2col import Im2col, im2col_of
from scheduler.codegen.cutedsl.index import IndexPrinter
from scheduler.codegen.cutedsl.kernel import CuteDSLTemplateKernel
from scheduler.codegen.single_launch import ceil_div
from scheduler.ir.graph import Expr
from scheduler.ir.index.facts import is_multiple
from scheduler.ir.index.functions import symbol
from scheduler.ir.index.trees import index_exprs

COPY_THREADS = 256
_ALIGNMENT_BYTES = 256  # of the workspace and of each part of it
_TMA_BYTES = 16
_MAX_BATCH_AXES = 3  # a descriptor has five
_ONE = sympy.Integer(1)


def tma_obstacle(operand: Operand, width: int) -> str:
    """Return why TMA cannot load an operand in place, or "" if it can. ``width`` elements are 16
    bytes: all axes but the contiguous one step by multiples of that (CUDA driver API,
    cuTensorMapEncodeTiled)."""
    form, name = operand.form, operand.name
    if form is None:
        return f"{name} is computed element by element"
    if operand.condition is not None:
        return f"{name} is masked"
    row_stride, k_stride = collapsed_stride(form, operand.row), collapsed_stride(form, operand.k)
    if row_stride is None or k_stride is None:
        return f"{name} has rows or columns with several strides"
    if k_stride == 1:
        outer_stride, outer_extent = row_stride, operand.row.extent
    elif row_stride == 1:
        outer_stride, outer_extent = k_stride, operand.k.extent
    else:
        return f"no axis of {name} is contiguous"
    if outer_stride == 0 and outer_extent != 1:
        return f"{name} is broadcast along an axis"
    if collapsed_stride(form, operand.batch) is None and len(operand.batch.axes) > _MAX_BATCH_AXES:
        return f"{name} has more axes than a TMA descriptor supports"
    batch_strides = [form.at(axis.var) for axis in operand.batch.axes if axis.size != 1]
    for step in (outer_stride, *batch_strides, form.rest):
        if step.could_extract_minus_sign():
            return f"{name} has a negative stride"
        if not is_multiple(step, width):
            return f"{name} has a stride or offset of {step}, which is not a multiple of 16 bytes"
    return ""


def is_along_k(operand: Operand) -> bool:
    """Whether an operand that TMA loads is contiguous along k, not along its rows."""
    assert operand.form is not None, "TMA loads what is one strided read"
    return bool(collapsed_stride(operand.form, operand.k) == _ONE)


def align_bytes(size: Expr) -> Expr:
    """Return the bytes rounded up to where the next part of the workspace may begin."""
    return ceil_div(size, _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES


def print_int64(expr: Expr) -> str:
    """Return the text of a count, computed in 64 bits."""
    return f"cutlass.Int64({expr})" if expr.is_Integer else IndexPrinter(wide=True)(expr)


@dataclass(frozen=True)
class PackedOperand:
    """An operand in the workspace, starting at byte ``first``: [batches, lines, run], each run of
    ``width`` elements or a multiple. ``run`` is K with ``along_k``, else the number of rows; an
    operand that is the same for every batch is stored once."""

    operand: Operand
    rows: str
    along_k: bool
    per_batch: bool
    width: int
    first: Expr

    @property
    def name(self) -> str:
        """Return the name of its kernel."""
        return f"pack_{self.operand.name.lower()}"

    @property
    def run(self) -> str:
        return "K" if self.along_k else self.rows

    @property
    def lines(self) -> str:
        return self.rows if self.along_k else "K"

    @property
    def batches(self) -> str:
        return "batches" if self.per_batch else "1"

    @property
    def is_whole(self) -> bool:
        """Whether a run has no partial vector left."""
        operand = self.operand
        return is_multiple((operand.k if self.along_k else operand.row).extent, self.width)

    @property
    def moves_runs(self) -> bool:
        """Whether it is read in whole vectors: it is a copy, perhaps masked."""
        operand = self.operand
        return operand.along_k is self.along_k and not operand.vector_obstacle(self.width)

    @property
    def vectors(self) -> Expr:
        """Return the number of 16-byte runs: one for each thread."""
        batches = symbol("batches") if self.per_batch else _ONE
        return ceil_div(symbol(self.run), self.width) * symbol(self.lines) * batches

    @property
    def bytes(self) -> Expr:
        return align_bytes(self.vectors * _TMA_BYTES)

    @property
    def blocks(self) -> Expr:
        return ceil_div(self.vectors, COPY_THREADS)

    @property
    def pointer(self) -> str:
        offset = f"cute.assume({print_int64(self.first)}, divby={_ALIGNMENT_BYTES})"
        return f"cute.recast_ptr(workspace + {offset}, dtype=ELEMENT)"

    def tensor(self, extent: str) -> dict[str, str]:
        """Return its pointer, shape and strides; ``extent`` is the number of rows in the shape."""
        pitch = f"tiles({self.run}, {self.width}) * {self.width}"
        plane = f"cutlass.Int64({pitch}) * {self.lines}" if self.per_batch else "0"
        row, k = (pitch, "1") if self.along_k else ("1", pitch)
        return _tensor(self.pointer, extent, "batches", (row, k, plane))


class TmaOperands:
    """All operands of a group: A, then each member's second one."""

    def __init__(
        self,
        interface: ContractionInterface[CuteDSLTemplateKernel],
        hooks: ContractionHooks,
        *,
        windows: bool = False,
    ) -> None:
        self._hooks = hooks
        self._interface = interface
        self._width = _TMA_BYTES // interface.element.itemsize
        self.operands = interface.operands
        self.rows = ("M", *(member.columns for member in interface.members))
        self.obstacles = tuple(tma_obstacle(operand, self._width) for operand in self.operands)
        self._im2col = im2col_of(interface.a, interface.buffers, self._width)
        if windows:
            self.obstacles = ("", *self.obstacles[1:])
        self._windows = windows

    @property
    def window_obstacle(self) -> str:
        """Return why A cannot be loaded window by window, or "" if it can and must be."""
        if not self.obstacles[0]:
            return "TMA loads A in place"
        return self._im2col if isinstance(self._im2col, str) else ""

    @property
    def window_channels(self) -> int:
        """Return the channels of A's windows; 0 if they are not loaded as windows."""
        windows = self._im2col
        return windows.channels if isinstance(windows, Im2col) and not self.window_obstacle else 0

    def im2col(self) -> Mapping[str, str] | None:
        """Return the host function's description of A's windows; None if A is a matrix."""
        if not self._windows:
            return None
        load = self._interface.a.load
        assert load is not None
        assert isinstance(self._im2col, Im2col), self._im2col
        return self._im2col.context(self._interface.kernel.arg_name(load.buffer))

    @cached_property
    def along_k(self) -> tuple[bool, ...]:
        """Return the direction of each operand for TMA; packed second operands use that of the
        others."""
        a, *second_operands = self.operands
        obstacle_a, *obstacles = self.obstacles
        second_pairs = list(zip(second_operands, obstacles, strict=True))
        in_place = [is_along_k(b) for b, obstacle in second_pairs if not obstacle]
        packed_along_k = in_place[0] if in_place else second_operands[0].along_k
        a_along_k = a.along_k if obstacle_a or self._windows else is_along_k(a)
        second_directions = (
            packed_along_k if obstacle else is_along_k(b) for b, obstacle in second_pairs
        )
        return a_along_k, *second_directions

    @property
    def mixed_obstacle(self) -> str:
        """Return why second operands cannot be combined in one kernel, or ""."""
        if len(set(self.along_k[1:])) == 1:
            return ""
        return (
            "second operands are contiguous along k and along n: one kernel supports only one "
            "of them"
        )

    @cached_property
    def packed_operands(self) -> tuple[PackedOperand, ...]:
        """Return the operands that TMA cannot load in place, one after another in the workspace."""
        packed: list[PackedOperand] = []
        begin: Expr = sympy.Integer(0)
        for operand, obstacle, rows, along_k in zip(
            self.operands, self.obstacles, self.rows, self.along_k, strict=True
        ):
            if not obstacle:
                continue
            batch_vars = {axis.var for axis in operand.batch.axes if axis.size != 1}
            per_batch = any(batch_vars & index.free_symbols for index in index_exprs(operand.value))
            packed.append(PackedOperand(operand, rows, along_k, per_batch, self._width, begin))
            begin += packed[-1].bytes
        return tuple(packed)

    def tensor(self, position: int) -> dict[str, str]:
        """Return pointer, shape and strides of the tensor that TMA loads: texts of the host
        function."""
        operand, rows = self.operands[position], self.rows[position]
        pack = next((pack for pack in self.packed_operands if pack.operand is operand), None)
        # A descriptor cannot have an empty axis, and one member of several may have no columns.
        extent = f"cutlass.max({rows}, 1)" if self._may_be_empty(rows) else rows
        if pack is not None:
            return pack.tensor(extent)
        access = self._hooks.tensor(operand)
        offset = "" if access.first == "0" else f" + {self._step(access.first)}"
        # CuTe's flat index varies fastest along the first axis.
        innermost_first = access.batch[::-1]
        batch = _mode(tuple(size for size, _ in innermost_first))
        plane = _mode(tuple(self._step(step) for _, step in innermost_first))
        strides = (self._step(access.row), self._step(access.k), plane)
        return _tensor(f"{access.pointer}{offset}", extent, batch, strides)

    def _may_be_empty(self, rows: str) -> bool:
        """Whether an operand may have no rows although there are results."""
        return self._interface.is_grouped and rows != self.rows[0]

    def _step(self, text: str) -> str:
        """Return a stride or an offset, with its known divisibility."""
        return text if text.isdigit() else f"cute.assume({text}, divby={self._width})"

    def pack_context(self, pack: PackedOperand) -> Mapping[str, object]:
        """Return the context of its kernel's template."""
        row = pack.operand.row.name
        run, line = ("k", row) if pack.along_k else (row, "k")
        texts = {"batch": "batch", row: row, "k": "k"}
        if pack.moves_runs:
            function = self._hooks.run_reader(pack.operand, pack.width)
            texts["elements"] = "elements"
        else:
            function = self._hooks.element_reader(pack.operand)
            texts[run] = f"{run} + i"
        return {
            "name": pack.name,
            "condition": f"K > 0 and {pack.rows} > 0" if self._may_be_empty(pack.rows) else "K > 0",
            "operand": pack.operand.name,
            "definition": function.definition,
            "read": function.call(**texts),
            "at_once": pack.moves_runs,
            "width": pack.width,
            "run": run,
            "run_extent": pack.run,
            "line": line,
            "line_extent": pack.lines,
            "whole": pack.is_whole,
            "batches": pack.batches,
            "pointer": pack.pointer,
            "blocks": print_int64(pack.blocks),
        }


def _mode(texts: tuple[str, ...]) -> str:
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def _tensor(pointer: str, rows: str, batch: str, strides: tuple[str, str, str]) -> dict[str, str]:
    # A descriptor cannot have an empty axis: with a k of 0 nothing is loaded.
    shape = f"({rows}, cutlass.max(K, 1), {batch})"
    return {"pointer": pointer, "shape": shape, "stride": f"({', '.join(strides)})"}
