"""Rows of convolutions and their gradients."""

from __future__ import annotations

from functools import partial

from scheduler.ir.ops import op
from scheduler.ir.reference import convolution as ref
from scheduler.ir.reference.constraints import weight_fan_in
from scheduler.lowering import convolution as rules

_convolution_op = partial(op, requires=weight_fan_in("weight", 1))

ROWS = (
    _convolution_op(
        "aten.conv1d",
        "input, weight, bias=None, stride=(1,), padding=(0,), dilation=(1,), groups=1; "
        "padding: input, weight, bias=None, stride=(1,), padding='valid', dilation=(1,), "
        "groups=1",
        rules.convolution,
        ref.convolution,
    ),
    _convolution_op(
        "aten.conv2d",
        "input, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1; "
        "padding: input, weight, bias=None, stride=(1, 1), padding='valid', dilation=(1, "
        "1), groups=1",
        rules.convolution,
        ref.convolution,
    ),
    _convolution_op(
        "aten.conv3d",
        "input, weight, bias=None, stride=(1, 1, 1), padding=(0, 0, 0), dilation=(1, 1, "
        "1), groups=1; "
        "padding: input, weight, bias=None, stride=(1, 1, 1), padding='valid', "
        "dilation=(1, 1, 1), groups=1",
        rules.convolution,
        ref.convolution,
    ),
    _convolution_op(
        "aten.convolution",
        "input, weight, bias, stride, padding, dilation, transposed, output_padding, groups",
        rules.convolution,
        ref.convolution,
    ),
    _convolution_op(
        "aten._convolution",
        "input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, "
        "benchmark, deterministic, cudnn_enabled, allow_tf32; "
        "deprecated: input, weight, bias, stride, padding, dilation, transposed, output_padding, "
        "groups, benchmark, deterministic, cudnn_enabled",
        rules.convolution,
        ref.convolution,
    ),
    op(
        "aten.conv_transpose1d",
        "input, weight, bias=None, stride=(1,), padding=(0,), output_padding=(0,), groups=1, "
        "dilation=(1,)",
        rules.conv_transpose,
        ref.conv_transpose,
        requires=weight_fan_in("weight", 0),
    ),
    op(
        "aten.conv_transpose2d",
        "input: input, weight, bias=None, stride=(1, 1), padding=(0, 0), "
        "output_padding=(0, 0), groups=1, dilation=(1, 1)",
        rules.conv_transpose,
        ref.conv_transpose,
        requires=weight_fan_in("weight", 0),
    ),
    op(
        "aten.conv_transpose3d",
        "input: input, weight, bias=None, stride=(1, 1, 1), padding=(0, 0, 0), "
        "output_padding=(0, 0, 0), groups=1, dilation=(1, 1, 1)",
        rules.conv_transpose,
        ref.conv_transpose,
        requires=weight_fan_in("weight", 0),
    ),
    _convolution_op(
        "aten.convolution_backward",
        "grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, "
        "output_padding, groups, output_mask",
        rules.convolution_backward,
        ref.convolution_backward,
    ),
)
