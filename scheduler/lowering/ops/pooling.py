"""Rows of pooling over windows, and of its inverse."""

from __future__ import annotations

import numpy as np

from scheduler.ir.ops import op
from scheduler.ir.reference import pooling as ref
from scheduler.lowering import indexing, pooling

ROWS = (
    op(
        "aten.max_pool1d",
        "self, kernel_size, stride=(), padding=(0,), dilation=(1,), ceil_mode=False",
        pooling.max_pool(1),
        ref.max_pool(1, False),
    ),
    op(
        "aten.max_pool2d",
        "self, kernel_size, stride=(), padding=(0, 0), dilation=(1, 1), ceil_mode=False",
        pooling.max_pool(2),
        ref.max_pool(2, False),
    ),
    op(
        "aten.max_pool2d_with_indices",
        "self, kernel_size, stride=(), padding=(0, 0), dilation=(1, 1), ceil_mode=False",
        pooling.max_pool(2),
        ref.max_pool(2, True),
    ),
    op(
        "aten.avg_pool1d",
        "self, kernel_size, stride=(), padding=(0,), ceil_mode=False, count_include_pad=True",
        pooling.avg_pool(1),
        ref.avg_pool(1),
    ),
    op(
        "aten.avg_pool2d",
        "self, kernel_size, stride=(), padding=(0, 0), ceil_mode=False, "
        "count_include_pad=True, divisor_override=None",
        pooling.avg_pool(2),
        ref.avg_pool(2),
    ),
    op(
        "aten.adaptive_avg_pool1d",
        "self, output_size",
        pooling.adaptive_avg(1),
        ref.adaptive(1, np.mean),
    ),
    op(
        "aten.adaptive_avg_pool2d",
        "self, output_size",
        pooling.adaptive_avg(2),
        ref.adaptive(2, np.mean),
    ),
    op(
        "aten._adaptive_avg_pool2d",
        "self, output_size",
        pooling.adaptive_avg(2),
        ref.adaptive(2, np.mean),
    ),
    op("aten.adaptive_max_pool2d", "self, output_size", pooling.adaptive_max, ref.adaptive_max),
    op(
        "aten.upsample_nearest2d",
        "self, output_size, scales_h=None, scales_w=None; vec: input, output_size, scale_factors",
        indexing.upsample_nearest,
        ref.nearest,
    ),
)
