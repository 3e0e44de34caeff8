"""How a contraction's operand is read: the contiguous direction, and the maximum load width."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.codegen.contraction.indices import (
    IndexGroup,
    address,
    collapsed_stride,
)
from scheduler.ir.dtypes import DType
from scheduler.ir.index.affine import Affine
from scheduler.ir.index.facts import is_multiple
from scheduler.ir.index.ranges import loop_ranges
from scheduler.ir.index.trees import index_exprs
from scheduler.ir.operations import Buffer
from scheduler.ir.values import Cast, Const, Load, Masked, Value, walk

# Element size of the matrices that reads from shared memory can transpose.
_TRANSPOSED_BYTES = 2
# 8-bit types that kernels read several elements of at a time and convert in registers.
CONVERTIBLE_DTYPES = (DType.I8, DType.U8, *(dtype for dtype in DType if dtype.is_float8))


@dataclass(frozen=True)
class Operand:
    """One operand of a contraction, ``value`` over the axes of ``batch``, ``row`` and ``k``.

    ``load`` is set if an element is one strided read (under ``condition``, else 0): only such
    operands can be read several elements at a time. In a kernel that converts operands it may read
    an 8-bit type. ``along_k`` is the direction of neighbouring threads, so that they read
    neighbouring memory.
    """

    name: str
    value: Value
    element: DType
    batch: IndexGroup
    row: IndexGroup
    k: IndexGroup
    load: Load | None
    condition: Value | None
    form: Affine | None
    along_k: bool

    @property
    def memory_dtype(self) -> DType:
        """Return the type that is read."""
        return self.element if self.load is None else self.load.dtype

    @property
    def is_converted(self) -> bool:
        """Whether a read value is converted to become an element."""
        return self.memory_dtype is not self.element

    @property
    def masked(self) -> bool:
        """Whether an element is more than one strided read."""
        return self.form is None or self.condition is not None

    def vector_obstacle(self, elements: int) -> str:
        """Return why ``elements`` cannot be read with one load, or "" if they can.

        Whole vectors must be inside or outside of the tensor, and start at multiples of their size;
        buffers start at multiples of 16 bytes.
        """
        if elements == 1:
            return ""
        if self.form is None:
            return f"{self.name} is computed element by element"
        contiguous_group = self.k if self.along_k else self.row
        inner_axis = contiguous_group.innermost
        if inner_axis is None or self.form.at(inner_axis.var) != 1:
            return f"no axis of {self.name} is contiguous"
        collapses = collapsed_stride(self.form, contiguous_group) == 1 and self.condition is None
        extent = contiguous_group.extent if collapses else inner_axis.size
        if not is_multiple(extent, elements):
            return (
                f"the contiguous axis of {self.name} has {extent} elements, which is not a"
                f" multiple of {elements}"
            )
        mask_indices = () if self.condition is None else index_exprs(self.condition)
        if any(inner_axis.var in index.free_symbols for index in mask_indices):
            return f"the mask of {self.name} changes along its contiguous axis"
        steps = (
            []
            if collapses
            else [s for v, s in self.form.coefficients.items() if v is not inner_axis.var]
        )
        for group in (self.batch, self.row, self.k):
            if group is not contiguous_group:
                steps += [self.form.at(axis.var) for axis in group.axes if axis.size != 1]
        for step in (*steps, self.form.rest):
            if not is_multiple(step, elements):
                return (
                    f"{self.name} has a stride or offset of {step}, which is not a multiple of"
                    f" {elements}"
                )
        return ""

    @property
    def copy_obstacle(self) -> str:
        """Return why it cannot be copied to shared memory unchanged, or "" if it can."""
        if self.load is None:
            return f"{self.name} is computed element by element"
        if self.is_converted:
            return f"{self.name} is converted from {self.memory_dtype.label} while it is loaded"
        if self.along_k or self.element.itemsize == _TRANSPOSED_BYTES:
            return ""
        return (
            f"{self.name} is transposed while it is loaded, which is supported only for "
            "16-bit elements"
        )


def analyse_operand(
    name: str,
    value: Value,
    element: DType,
    groups: tuple[IndexGroup, IndexGroup, IndexGroup],
    buffers: Mapping[str, Buffer],
    *,
    converts: bool = False,
) -> Operand:
    """Return the operand over (batch, row, k). ``converts``: the kernel converts 8-bit elements."""
    batch, row, k = groups
    load, condition = _find_strided_load(value, element, converts=converts)
    ranges = loop_ranges(*(group.axes for group in groups))
    form = address(load, buffers[load.buffer], ranges) if load else None
    layout_form = form
    for subvalue in walk(value) if form is None else ():
        if layout_form is None and isinstance(subvalue, Load):
            layout_form = address(subvalue, buffers[subvalue.buffer], ranges)
    inner_row = row.innermost
    along_k = True
    if layout_form is not None and inner_row is not None and layout_form.at(inner_row.var) == 1:
        inner_k = k.innermost
        along_k = inner_k is not None and layout_form.at(inner_k.var) == 1
    if form is None:
        load, condition = None, None
    return Operand(name, value, element, batch, row, k, load, condition, form, along_k)


def _find_strided_load(
    value: Value, element: DType, *, converts: bool
) -> tuple[Load | None, Value | None]:
    condition: Value | None = None
    # A 0 is the same in any type (f32 for f16).
    if isinstance(value, Masked) and isinstance(value.other, Const) and value.other.value == 0:
        condition, value = value.condition, value.value
    if isinstance(value, Cast) and converts and value.dtype is element:
        value = value.value
        if value.dtype not in CONVERTIBLE_DTYPES:
            return None, None
    elif value.dtype is not element:
        return None, None
    if isinstance(value, Load) and not value.indirect:
        return value, condition
    return None, None
