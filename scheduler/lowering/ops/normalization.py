"""Rows of normalisations and softmax."""

from __future__ import annotations

from functools import partial

from scheduler.ir.ops import op
from scheduler.ir.reference import normalization as ref
from scheduler.ir.reference import reductions as ref_reductions
from scheduler.ir.reference.constraints import norm_parameters
from scheduler.lowering import normalization as rules
from scheduler.lowering import softmax

_norm_op = partial(op, requires=norm_parameters)

ROWS = (
    _norm_op(
        "aten.layer_norm",
        "input, normalized_shape, weight=None, bias=None, eps=1e-05, cudnn_enable=True",
        rules.layer_norm,
        ref.layer_norm_op,
    ),
    _norm_op(
        "aten.native_layer_norm",
        "input, normalized_shape, weight, bias, eps",
        rules.layer_norm,
        ref.layer_norm,
    ),
    _norm_op(
        "aten.rms_norm",
        "input, normalized_shape, weight=None, eps=None",
        rules.rms_norm,
        ref.rms_norm,
    ),
    _norm_op(
        "aten.group_norm",
        "input, num_groups, weight=None, bias=None, eps=1e-05, cudnn_enabled=True",
        rules.group_norm,
        ref.group_norm_op,
    ),
    _norm_op(
        "aten.native_group_norm",
        "input, weight, bias, N, C, HxW, group, eps",
        rules.native_group_norm,
        ref.group_norm,
    ),
    _norm_op(
        "aten._fused_rms_norm",
        "input, normalized_shape, weight, eps",
        rules.rms_norm,
        ref.fused_rms_norm,
    ),
    _norm_op(
        "aten.batch_norm",
        "input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled",
        rules.batch_norm,
        ref.batch_norm,
    ),
    _norm_op(
        "aten.native_batch_norm",
        "input, weight, bias, running_mean, running_var, training, momentum, eps",
        rules.batch_norm,
        ref.native_batch_norm,
    ),
    _norm_op(
        "aten._native_batch_norm_legit_no_training",
        "input, weight, bias, running_mean, running_var, momentum, eps",
        rules.batch_norm,
        ref.native_batch_norm,
    ),
    _norm_op(
        "aten._native_batch_norm_legit",
        "input, weight, bias, running_mean, running_var, training, momentum, eps; "
        "no_stats: input, weight, bias, training, momentum, eps",
        rules.batch_norm,
        ref.native_batch_norm,
    ),
    _norm_op(
        "aten._native_batch_norm_legit_functional",
        "input, weight, bias, running_mean, running_var, training, momentum, eps",
        rules.functional_batch_norm,
        ref.functional_batch_norm,
    ),
    _norm_op(
        "aten._batch_norm_with_update_functional",
        "input, weight, bias, running_mean, running_var, momentum, eps",
        rules.functional_batch_norm,
        ref.batch_norm_with_reserve(True, functional=True),
    ),
    _norm_op(
        "aten._batch_norm_with_update",
        "input, weight, bias, running_mean, running_var, momentum, eps",
        rules.batch_norm_with_reserve(training=True),
        ref.batch_norm_with_reserve(True),
    ),
    _norm_op(
        "aten._batch_norm_no_update",
        "input, weight, bias, running_mean, running_var, momentum, eps",
        rules.batch_norm_with_reserve(training=False),
        ref.batch_norm_with_reserve(False),
    ),
    _norm_op(
        "aten.instance_norm",
        "input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, "
        "cudnn_enabled",
        rules.instance_norm,
        ref.instance_norm,
    ),
    op("aten.softmax", "int: self, dim, dtype=None", softmax.softmax(log=False), ref.softmax_op),
    op(
        "aten.log_softmax", "int: self, dim, dtype=None", softmax.softmax(log=True), ref.log_softmax
    ),
    op("aten.special_softmax", "self, dim, dtype=None", softmax.softmax(log=False), ref.softmax_op),
    op(
        "aten.special_log_softmax",
        "self, dim, *, dtype=None",
        softmax.softmax(log=True),
        ref.log_softmax,
    ),
    op(
        "aten._safe_softmax",
        "self, dim, dtype=None",
        softmax.softmax(log=False, safe=True),
        ref.safe_softmax,
    ),
    op("aten._softmax", "self, dim, half_to_float", softmax.softmax(log=False), ref.softmax_op),
    op("aten._log_softmax", "self, dim, half_to_float", softmax.softmax(log=True), ref.log_softmax),
    op("aten.logsumexp", "self, dim, keepdim=False", softmax.logsumexp, ref_reductions.logsumexp),
)
