"""Rows of pooling over windows, and of its rules."""

from __future__ import annotations

import numpy as np

from scheduler.ir.ops import NoKernel, op
from scheduler.ir.reference import pooling as ref
from scheduler.ir.reference.constraints import plane_indices
from scheduler.lowering import pooling as rules

ROWS = (
    op(
        "aten.max_pool1d",
        "self, kernel_size, stride=(), padding=(0,), dilation=(1,), ceil_mode=False",
        rules.max_pool(1),
        ref.max_pool(1, False),
    ),
    op(
        "aten.max_pool2d",
        "self, kernel_size, stride=(), padding=(0, 0), dilation=(1, 1), ceil_mode=False",
        rules.max_pool(2),
        ref.max_pool(2, False),
    ),
    op(
        "aten.max_pool2d_with_indices",
        "self, kernel_size, stride=(), padding=(0, 0), dilation=(1, 1), ceil_mode=False",
        rules.max_pool(2),
        ref.max_pool(2, True),
    ),
    op(
        "aten.avg_pool1d",
        "self, kernel_size, stride=(), padding=(0,), ceil_mode=False, count_include_pad=True",
        rules.avg_pool(1),
        ref.avg_pool(1),
    ),
    op(
        "aten.avg_pool2d",
        "self, kernel_size, stride=(), padding=(0, 0), ceil_mode=False, "
        "count_include_pad=True, divisor_override=None",
        rules.avg_pool(2),
        ref.avg_pool(2),
    ),
    op(
        "aten.adaptive_avg_pool1d",
        "self, output_size",
        rules.adaptive_avg(1),
        ref.adaptive_pool(1, np.mean),
    ),
    op(
        "aten.adaptive_avg_pool2d",
        "self, output_size",
        rules.adaptive_avg(2),
        ref.adaptive_pool(2, np.mean),
    ),
    op(
        "aten._adaptive_avg_pool2d",
        "self, output_size",
        rules.adaptive_avg(2),
        ref.adaptive_pool(2, np.mean),
    ),
    op(
        "aten.adaptive_avg_pool3d",
        "self, output_size",
        rules.adaptive_avg(3),
        ref.adaptive_pool(3, np.mean),
    ),
    op(
        "aten._adaptive_avg_pool3d",
        "self, output_size",
        rules.adaptive_avg(3),
        ref.adaptive_pool(3, np.mean),
    ),
    *(
        op(
            f"aten.adaptive_max_pool{rank}d",
            "self, output_size",
            rules.adaptive_max(rank),
            ref.adaptive_max(rank),
        )
        for rank in (1, 2, 3)
    ),
    op(
        "aten.max_pool1d_with_indices",
        "self, kernel_size, stride=(), padding=(0,), dilation=(1,), ceil_mode=False",
        rules.max_pool(1),
        ref.max_pool(1, True),
    ),
    op(
        "aten.max_pool3d",
        "self, kernel_size, stride=(), padding=(0, 0, 0), dilation=(1, 1, 1), ceil_mode=False",
        rules.max_pool(3),
        ref.max_pool(3, False),
    ),
    op(
        "aten.max_pool3d_with_indices",
        "self, kernel_size, stride=(), padding=(0, 0, 0), dilation=(1, 1, 1), ceil_mode=False",
        rules.max_pool(3),
        ref.max_pool(3, True),
    ),
    op(
        "aten.avg_pool3d",
        "self, kernel_size, stride=(), padding=(0, 0, 0), ceil_mode=False, "
        "count_include_pad=True, divisor_override=None",
        rules.avg_pool(3),
        ref.avg_pool(3),
    ),
    *(
        op(
            f"aten.avg_pool{rank}d_backward",
            "grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, "
            "divisor_override",
            rules.avg_pool_backward(rank),
            ref.avg_pool_backward(rank),
        )
        for rank in (2, 3)
    ),
    *(
        op(
            f"aten.max_pool{rank}d_with_indices_backward",
            "grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices",
            rules.max_pool_backward(rank),
            ref.max_pool_backward(rank),
            requires=plane_indices(rank),
        )
        for rank in (2, 3)
    ),
    *(
        op(
            f"aten._adaptive_avg_pool{rank}d_backward",
            "grad_output, self",
            rules.adaptive_avg_backward(rank),
            ref.adaptive_avg_backward(rank),
        )
        for rank in (2, 3)
    ),
    *(
        op(
            f"aten.adaptive_max_pool{rank}d_backward",
            "grad_output, self, indices",
            rules.adaptive_max_backward(rank),
            ref.max_pool_backward(rank),
            requires=plane_indices(rank),
        )
        for rank in (2, 3)
    ),
    *(
        op(
            f"aten.fractional_max_pool{rank}d",
            "self, kernel_size, output_size, random_samples",
            NoKernel("no kernels are generated for pooling over random windows"),
            ref.fractional_max_pool(rank),
        )
        for rank in (2, 3)
    ),
)
