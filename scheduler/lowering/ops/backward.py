"""Rows of gradients: activation functions, softmax, classification losses, normalisations."""

from __future__ import annotations

from functools import partial

from scheduler.ir.ops import op
from scheduler.ir.reference import backward as ref
from scheduler.ir.reference.constraints import norm_parameters
from scheduler.lowering import activations_backward as rules
from scheduler.lowering import normalization_backward as norms
from scheduler.lowering import softmax_backward as softmax_rules

_TARGETS = "grad_output, self, target, weight, reduction, ignore_index, total_weight"
_norm_op = partial(op, requires=norm_parameters)

ROWS = (
    op(
        "aten.sigmoid_backward", "grad_output, output", rules.sigmoid_backward, ref.sigmoid_backward
    ),
    op("aten.tanh_backward", "grad_output, output", rules.tanh_backward, ref.tanh_backward),
    op("aten.silu_backward", "grad_output, self", rules.silu_backward, ref.silu_backward),
    op("aten.mish_backward", "grad_output, self", rules.mish_backward, ref.mish_backward),
    op(
        "aten.hardswish_backward",
        "grad_output, self",
        rules.hardswish_backward,
        ref.hardswish_backward,
    ),
    op(
        "aten.hardsigmoid_backward",
        "grad_output, self",
        rules.hardsigmoid_backward,
        ref.hardsigmoid_backward,
    ),
    op(
        "aten.gelu_backward",
        "grad_output, self, *, approximate='none'",
        rules.gelu_backward,
        ref.gelu_backward,
    ),
    op(
        "aten.threshold_backward",
        "grad_output, self, threshold",
        rules.threshold_backward,
        ref.threshold_backward,
    ),
    op(
        "aten.hardtanh_backward",
        "grad_output, self, min_val, max_val",
        rules.hardtanh_backward,
        ref.hardtanh_backward,
    ),
    op(
        "aten.leaky_relu_backward",
        "grad_output, self, negative_slope, self_is_result",
        rules.leaky_relu_backward,
        ref.leaky_relu_backward,
    ),
    op(
        "aten.rrelu_with_noise_backward",
        "grad_output, self, noise, lower, upper, training, self_is_result",
        rules.rrelu_backward,
        ref.rrelu_backward,
    ),
    op(
        "aten.elu_backward",
        "grad_output, alpha, scale, input_scale, is_result, self_or_result",
        rules.elu_backward,
        ref.elu_backward,
    ),
    op(
        "aten.softplus_backward",
        "grad_output, self, beta, threshold",
        rules.softplus_backward,
        ref.softplus_backward,
    ),
    op(
        "aten.log_sigmoid_backward",
        "grad_output, self, buffer",
        rules.log_sigmoid_backward,
        ref.log_sigmoid_backward,
    ),
    op(
        "aten.hardshrink_backward",
        "grad_out, self, lambd",
        rules.hardshrink_backward,
        ref.shrink_backward,
    ),
    op(
        "aten.softshrink_backward",
        "grad_output, self, lambd",
        rules.softshrink_backward,
        ref.shrink_backward,
    ),
    op(
        "aten.logit_backward",
        "grad_output, self, eps=None",
        rules.logit_backward,
        ref.logit_backward,
    ),
    op("aten.glu_backward", "grad_output, self, dim", rules.glu_backward, ref.glu_backward),
    op(
        "aten._prelu_kernel_backward",
        "grad_output, self, weight",
        rules.prelu_kernel_backward,
        ref.prelu_kernel_backward,
    ),
    op(
        "aten._softmax_backward_data",
        "grad_output, output, dim, input_dtype",
        softmax_rules.softmax_backward(log=False),
        ref.softmax_backward,
    ),
    op(
        "aten._log_softmax_backward_data",
        "grad_output, output, dim, input_dtype",
        softmax_rules.softmax_backward(log=True),
        ref.log_softmax_backward,
    ),
    op("aten.nll_loss_backward", _TARGETS, rules.nll_loss_backward, ref.nll_loss_backward),
    op("aten.nll_loss2d_backward", _TARGETS, rules.nll_loss_backward, ref.nll_loss_backward),
    _norm_op(
        "aten.native_layer_norm_backward",
        "grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask",
        norms.layer_norm_backward,
        ref.layer_norm_backward,
    ),
    _norm_op(
        "aten._fused_rms_norm_backward",
        "grad_out, input, normalized_shape, rstd, weight, output_mask",
        norms.layer_norm_backward,
        ref.rms_norm_backward,
    ),
    _norm_op(
        "aten.native_group_norm_backward",
        "grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask",
        norms.group_norm_backward,
        ref.group_norm_backward,
    ),
    _norm_op(
        "aten.native_batch_norm_backward",
        "grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, "
        "output_mask",
        norms.batch_norm_backward,
        ref.batch_norm_backward,
    ),
    _norm_op(
        "aten.batch_norm_backward",
        "grad_out, input, weight, running_mean, running_var, save_mean, save_var, update, eps, "
        "output_mask, reserve",
        norms.batch_norm_backward,
        ref.batch_norm_backward,
    ),
)
