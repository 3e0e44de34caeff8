"""Rows of grid sampling, im2col, reflection and replication padding, and max unpooling."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler.ir.ops import Elements, Op, op
from scheduler.ir.reference import grid_sampler as ref
from scheduler.ir.reference import indexing as ref_indexing
from scheduler.ir.reference import pooling as ref_pooling
from scheduler.ir.reference.constraints import plane_indices
from scheduler.lowering import grid_sampler as rules
from scheduler.lowering import im2col, padding

_GRID = "input, grid, interpolation_mode, padding_mode, align_corners"
_WINDOWS = "kernel_size, dilation, padding, stride"


def _paddings() -> Iterator[Op]:
    for start, mode in (("reflection", "reflect"), ("replication", "replicate")):
        for rank in (1, 2, 3):
            name = f"aten.{start}_pad{rank}d"
            yield op(
                name,
                "self, padding",
                padding.pad(mode),
                ref_indexing.padding(mode),
                Elements.COPIED,
            )
            yield op(
                f"{name}_backward",
                "grad_output, self, padding",
                padding.pad_backward(mode),
                ref_indexing.padding_backward(mode),
            )


ROWS = (
    op("aten.grid_sampler", _GRID, rules.grid_sampler, ref.grid_sampler),
    op("aten.grid_sampler_2d", _GRID, rules.grid_sampler, ref.grid_sampler),
    op("aten.grid_sampler_3d", _GRID, rules.grid_sampler, ref.grid_sampler),
    op(
        "aten.affine_grid_generator",
        "theta, size, align_corners",
        rules.affine_grid,
        ref.affine_grid,
    ),
    op("aten.im2col", f"self, {_WINDOWS}", im2col.im2col, ref.im2col),
    op("aten.col2im", f"self, output_size, {_WINDOWS}", im2col.col2im, ref.col2im),
    *_paddings(),
    op(
        "aten.max_unpool2d",
        "self, indices, output_size",
        padding.max_unpool(2),
        ref_pooling.max_unpool(2),
        requires=plane_indices(2),
    ),
    op(
        "aten.max_unpool3d",
        "self, indices, output_size, stride, padding",
        padding.max_unpool(3),
        ref_pooling.max_unpool(3),
        requires=plane_indices(3),
    ),
)
