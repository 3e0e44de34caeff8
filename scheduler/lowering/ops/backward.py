"""Rows of gradients: activation functions, softmax, classification losses, normalisations."""

from __future__ import annotations

from functools import partial

from scheduler.ir.ops import op
from scheduler.ir.reference import backward as ref
from scheduler.ir.reference.constraints import norm_parameters
from scheduler.lowering import activations_backward as rules
from scheduler.lowering import cross_entropy, softmax
from scheduler.lowering import normalization_backward as norms
from scheduler.lowering.ops.activations import formula_op

_TARGETS = "grad_output, self, target, weight, reduction, ignore_index, total_weight"
_norm_op = partial(op, requires=norm_parameters)

ROWS = (
    formula_op("sigmoid_backward", "grad_output, output", rules.sigmoid, ref.sigmoid_backward),
    formula_op("tanh_backward", "grad_output, output", rules.tanh, ref.tanh_backward),
    formula_op("silu_backward", "grad_output, self", rules.silu, ref.silu_backward),
    formula_op("mish_backward", "grad_output, self", rules.mish, ref.mish_backward),
    formula_op("hardswish_backward", "grad_output, self", rules.hard_swish, ref.hardswish_backward),
    formula_op(
        "hardsigmoid_backward", "grad_output, self", rules.hard_sigmoid, ref.hardsigmoid_backward
    ),
    formula_op(
        "gelu_backward", "grad_output, self, *, approximate='none'", rules.gelu, ref.gelu_backward
    ),
    formula_op(
        "threshold_backward",
        "grad_output, self, threshold",
        rules.threshold,
        ref.threshold_backward,
    ),
    formula_op(
        "hardtanh_backward",
        "grad_output, self, min_val, max_val",
        rules.hardtanh,
        ref.hardtanh_backward,
    ),
    formula_op(
        "leaky_relu_backward",
        "grad_output, self, negative_slope, self_is_result",
        rules.leaky_relu,
        ref.leaky_relu_backward,
    ),
    formula_op(
        "rrelu_with_noise_backward",
        "grad_output, self, noise, lower, upper, training, self_is_result",
        rules.rrelu,
        ref.rrelu_backward,
    ),
    formula_op(
        "elu_backward",
        "grad_output, alpha, scale, input_scale, is_result, self_or_result",
        rules.elu,
        ref.elu_backward,
    ),
    formula_op(
        "softplus_backward",
        "grad_output, self, beta, threshold",
        rules.softplus,
        ref.softplus_backward,
    ),
    formula_op(
        "log_sigmoid_backward",
        "grad_output, self, buffer",
        rules.log_sigmoid,
        ref.log_sigmoid_backward,
    ),
    formula_op("hardshrink_backward", "grad_out, self, lambd", rules.shrink, ref.shrink_backward),
    formula_op(
        "softshrink_backward", "grad_output, self, lambd", rules.shrink, ref.shrink_backward
    ),
    formula_op("logit_backward", "grad_output, self, eps=None", rules.logit, ref.logit_backward),
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
        softmax.softmax_backward(log=False),
        ref.softmax_backward,
    ),
    op(
        "aten._log_softmax_backward_data",
        "grad_output, output, dim, input_dtype",
        softmax.softmax_backward(log=True),
        ref.log_softmax_backward,
    ),
    op("aten.nll_loss_backward", _TARGETS, cross_entropy.nll_loss_backward, ref.nll_loss_backward),
    op(
        "aten.nll_loss2d_backward", _TARGETS, cross_entropy.nll_loss_backward, ref.nll_loss_backward
    ),
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
