"""Windows of an image as TMA loads them in its im2col mode: rows are output pixels, k the window
positions with the channels innermost, and elements outside the image are 0.

The CUDA driver API's cuTensorMapEncodeIm2col and the PTX ISA ("Im2col mode") define the limits.
CuTe always requires three dimensions of pixels, whose corners have five bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sympy

from scheduler.codegen.contraction.addressing import conjuncts, edge_comparison
from scheduler.codegen.contraction.operand import Operand
from scheduler.ir.graph import Expr
from scheduler.ir.index.affine import affine
from scheduler.ir.index.facts import is_equal
from scheduler.ir.operations import Axis, Buffer
from scheduler.ir.values import Value

# A step of k in f16 or bf16 has this many channels, or twice: all at one window position.
CHANNEL_MULTIPLE = 64
_MAX_DIMENSIONS = 3
_MIN_CORNER, _MAX_CORNER = -16, 15
_MAX_STRIDE = 8
_ONE = sympy.Integer(1)


@dataclass(frozen=True)
class SpatialDim:
    """One dimension of the pixels: ``size`` of the image and ``step`` from one to the next in
    elements; ``window_size`` window positions ``dilation`` apart, ``stride`` apart from output
    pixel to output pixel (``pixels`` of them), the first ``padding`` before the image."""

    size: int
    step: int
    pixels: int
    window_size: int
    stride: int
    dilation: int
    padding: int

    @property
    def reach(self) -> int:
        """Return the distance from the window's first position to its last."""
        return (self.window_size - 1) * self.dilation

    @property
    def padding_after(self) -> int:
        """Return the padding at the end that gives as many windows as output pixels."""
        return (self.pixels - 1) * self.stride + self.reach + 1 - self.size - self.padding

    @property
    def obstacle(self) -> str:
        """Return the descriptor field that cannot hold it, or "" if all can."""
        if not 1 <= self.stride <= _MAX_STRIDE:
            return f"a stride of {self.stride}, which exceeds the limit of {_MAX_STRIDE}"
        corners = (-self.padding, self.padding_after - self.reach)
        if not all(_MIN_CORNER <= corner <= _MAX_CORNER for corner in corners):
            return f"corners of {corners}, which are outside {_MIN_CORNER} to {_MAX_CORNER}"
        return ""


@dataclass(frozen=True)
class Im2col:
    """``sides`` innermost first; the images are ``image_step`` elements apart."""

    sides: tuple[SpatialDim, ...]
    channels: int
    image_step: int

    def context(self, pointer: str) -> dict[str, str]:
        """Return texts for the host function: the image as a tensor of ((w, h, d, images),
        channels), and the descriptor's other fields, of (w, h, d)."""
        missing = _MAX_DIMENSIONS - len(self.sides)
        step = self.image_step
        unit = SpatialDim(
            size=1, step=step, pixels=1, window_size=1, stride=1, dilation=1, padding=0
        )
        sides = (*self.sides, *[unit] * missing)
        image_pixels = math.prod(side.pixels for side in sides)
        return {
            "pointer": pointer,
            "shape": _tuple([*(side.size for side in sides), f"tiles(M, {image_pixels})"]),
            "stride": _tuple([*(side.step for side in sides), self.image_step]),
            "channels": str(self.channels),
            "lower_corner": _tuple(-side.padding for side in sides),
            "upper_corner": _tuple(side.padding_after - side.reach for side in sides),
            "lower_padding": _tuple(side.padding for side in sides),
            "upper_padding": _tuple(side.padding_after for side in sides),
            "strides": _tuple(side.stride for side in sides),
            "dilations": _tuple(side.dilation for side in sides),
        }


def _tuple(values: Iterable[int | str]) -> str:
    return f"({', '.join(map(str, values))})"


def im2col_of(operand: Operand, buffers: Mapping[str, Buffer], width: int) -> Im2col | str:
    """Return an operand as windows, or the reason why it is not one that TMA can load. ``width``
    elements are 16 bytes."""
    load, form, name = operand.load, operand.form, operand.name
    if load is None or form is None:
        return f"{name} is computed element by element"
    if any(axis.size != 1 for axis in operand.batch.axes):
        return f"{name} has grouped windows"
    row_axes, window_axes = (
        [axis for axis in group.axes if axis.size != 1] for group in (operand.row, operand.k)
    )
    if not window_axes or form.at(window_axes[-1].var) != _ONE:
        return f"the channels of {name} are not contiguous"
    channels = _integer(window_axes[-1].size)
    if not channels or channels % CHANNEL_MULTIPLE:
        return (
            f"a window of {name} has {window_axes[-1].size} channels, which is not a multiple "
            f"of {CHANNEL_MULTIPLE}"
        )
    buffer = buffers[load.buffer]
    if operand.condition is not None and not _is_edge_mask(operand.condition, load.index, buffer):
        return f"the mask of {name} is not the edge of the image"
    # An axis of one point stays at 0.
    axes = (*operand.batch.axes, *operand.row.axes, *operand.k.axes)
    fixed = {axis.var: sympy.Integer(0) for axis in axes if axis.size == 1}
    index = tuple(expr.xreplace(fixed) for expr in load.index)
    dims = _spatial_dims(index, buffer, row_axes, window_axes)
    if isinstance(dims, str):
        return f"{name} has {dims}"
    sides, image_step = dims
    if any(step % width for step in (image_step, *(side.step for side in sides))):
        return f"{name} has a stride that is not a multiple of 16 bytes"
    return Im2col(sides, channels, image_step)


def _spatial_dims(
    index: tuple[Expr, ...], buffer: Buffer, row_axes: list[Axis], window_axes: list[Axis]
) -> tuple[tuple[SpatialDim, ...], int] | str:
    """Return the dimensions of the pixels, innermost first, and the step from image to image; or
    the obstacle."""
    variables = {axis.var for axis in (*row_axes, *window_axes)}
    channel = window_axes[-1].var
    sides: list[SpatialDim] = []
    order: list[sympy.Symbol] = []
    image_step: int | None = None
    for expr, size, step in zip(index, buffer.size, buffer.stride, strict=True):
        if expr == channel or (expr == 0 and size == 1):
            continue
        form = affine(expr, variables)
        coefficients = form.coefficients if form is not None else {channel: _ONE}
        groups = row_axes, window_axes
        axes = [[axis for axis in group if axis.var in coefficients] for group in groups]
        if form is None or channel in coefficients or any(len(group) > 1 for group in axes):
            return "an index that is not a window"
        order += [axis.var for group in axes for axis in group]
        if image_step is None and not sides and row_axes and expr == row_axes[0].var:
            image_step = _integer(step)
            continue
        extents = [group[0].size if group else _ONE for group in axes]
        steps = [form.at(group[0].var) if group else _ONE for group in axes]
        numbers = [_integer(value) for value in (size, step, *extents, *steps, -form.rest)]
        if None in numbers:
            return "sizes that are known only at run time"
        side = SpatialDim(*numbers)  # type: ignore[arg-type]
        if side.obstacle:
            return side.obstacle
        sides.append(side)
    if not 1 <= len(sides) <= _MAX_DIMENSIONS:
        return f"windows of {len(sides)} dimensions"
    for group in (row_axes, window_axes[:-1]):
        expected = [axis.var for axis in group]
        if [var for var in order if var in expected] != expected:
            return "axes that are not in memory order"
    return tuple(sides[::-1]), image_step or sides[0].size * sides[0].step


def _integer(value: Expr) -> int | None:
    return int(value) if value.is_Integer else None


def _is_edge_mask(condition: Value, index: tuple[Expr, ...], buffer: Buffer) -> bool:
    """Whether a mask only checks that indices are in the image: TMA gives 0 outside of it in any
    case."""
    for test in conjuncts(condition):
        comparison = edge_comparison(test)
        if comparison is None:
            return False
        value, limit = comparison
        sizes = [size for expr, size in zip(index, buffer.size, strict=True) if expr == value]
        if not any(limit is None or is_equal(limit, size) for size in sizes):
            return False
    return True
