"""Rows of convolutions and their gradients."""

from __future__ import annotations

from scheduler.ir.ops import op
from scheduler.ir.reference import convolution as ref
from scheduler.ir.reference.constraints import weight_fan_in
from scheduler.lowering import convolution, convolution_backward

ROWS = (
    op(
        "aten.conv1d",
        "input, weight, bias=None, stride=(1,), padding=(0,), dilation=(1,), groups=1; "
        "padding: input, weight, bias=None, stride=(1,), padding='valid', dilation=(1,), "
        "groups=1",
        convolution.convolution,
        ref.convolution,
        requires=weight_fan_in("weight", 1),
    ),
    op(
        "aten.conv2d",
        "input, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1; "
        "padding: input, weight, bias=None, stride=(1, 1), padding='valid', dilation=(1, "
        "1), groups=1",
        convolution.convolution,
        ref.convolution,
        requires=weight_fan_in("weight", 1),
    ),
    op(
        "aten.conv3d",
        "input, weight, bias=None, stride=(1, 1, 1), padding=(0, 0, 0), dilation=(1, 1, "
        "1), groups=1; "
        "padding: input, weight, bias=None, stride=(1, 1, 1), padding='valid', "
        "dilation=(1, 1, 1), groups=1",
        convolution.convolution,
        ref.convolution,
        requires=weight_fan_in("weight", 1),
    ),
    op(
        "aten.convolution",
        "input, weight, bias, stride, padding, dilation, transposed, output_padding, groups",
        convolution.convolution,
        ref.convolution,
        requires=weight_fan_in("weight", 1),
    ),
    op(
        "aten._convolution",
        "input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, "
        "benchmark, deterministic, cudnn_enabled, allow_tf32; "
        "deprecated: input, weight, bias, stride, padding, dilation, transposed, output_padding, "
        "groups, benchmark, deterministic, cudnn_enabled",
        convolution.convolution,
        ref.convolution,
        requires=weight_fan_in("weight", 1),
    ),
    op(
        "aten.conv_transpose1d",
        "input, weight, bias=None, stride=(1,), padding=(0,), output_padding=(0,), groups=1, "
        "dilation=(1,)",
        convolution.conv_transpose,
        ref.conv_transpose,
        requires=weight_fan_in("weight", 0),
    ),
    op(
        "aten.conv_transpose2d",
        "input: input, weight, bias=None, stride=(1, 1), padding=(0, 0), "
        "output_padding=(0, 0), groups=1, dilation=(1, 1)",
        convolution.conv_transpose,
        ref.conv_transpose,
        requires=weight_fan_in("weight", 0),
    ),
    op(
        "aten.conv_transpose3d",
        "input: input, weight, bias=None, stride=(1, 1, 1), padding=(0, 0, 0), "
        "output_padding=(0, 0, 0), groups=1, dilation=(1, 1, 1)",
        convolution.conv_transpose,
        ref.conv_transpose,
        requires=weight_fan_in("weight", 0),
    ),
    op(
        "aten.convolution_backward",
        "grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, "
        "output_padding, groups, output_mask",
        convolution_backward.convolution_backward,
        ref.convolution_backward,
        requires=weight_fan_in("weight", 1),
    ),
)
