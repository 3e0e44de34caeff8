"""Rows of quantized tensors: products with scales, and the conversions of exported quantized models
(PyTorch's ``quantized_decomposed``, torchao's)."""

from __future__ import annotations

from scheduler.ir.ops import NoKernel, op
from scheduler.ir.reference import quantized as ref
from scheduler.ir.reference.constraints import weight_fan_in
from scheduler.lowering import quantized as rules

_RANGE = "quant_min, quant_max, dtype"

ROWS = (
    op(
        "aten._scaled_mm",
        "self, mat2, scale_a, scale_b, bias=None, scale_result=None, out_dtype=None, "
        "use_fast_accum=False",
        rules.scaled_mm,
        ref.scaled_mm,
        requires=weight_fan_in("mat2", -2, -1),
    ),
    op(
        "aten._scaled_mm_v2",
        "self, mat2, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, bias, out_dtype, "
        "contraction_dim=(), use_fast_accum=False",
        rules.scaled_mm_v2,
        ref.scaled_mm_v2,
        requires=weight_fan_in("mat2", -2, -1),
    ),
    op("aten._int_mm", "self, mat2", rules.int_mm, ref.int_mm),
    op(
        "aten._weight_int8pack_mm",
        "self, mat2, scales",
        rules.weight_int8pack_mm,
        ref.weight_int8pack_mm,
    ),
    op(
        "aten._weight_int4pack_mm",
        "self, mat2, qGroupSize, qScaleAndZeros",
        NoKernel("its weights are packed in an order that depends on the machine that packed them"),
        ref.packed_weights,
    ),
    op(
        "torchao.quantize_affine",
        "default: input, block_size, scale, zero_point, output_dtype, quant_min=None, "
        "quant_max=None",
        rules.affine_rule("block", quantize=True),
        ref.quantize_affine,
    ),
    op(
        "torchao.dequantize_affine",
        "default: input, block_size, scale, zero_point, input_dtype, quant_min=None, "
        "quant_max=None, output_dtype=None",
        rules.affine_rule("block", quantize=False),
        ref.dequantize_affine,
    ),
    op(
        "torchao.choose_qparams_affine",
        "default: input, mapping_type, block_size, target_dtype, quant_min=None, quant_max=None, "
        "eps=None, scale_dtype=None, zero_point_dtype=None, keepdim=False",
        rules.choose_qparams_affine,
        ref.choose_qparams_affine,
    ),
    op(
        "quantized_decomposed.quantize_per_tensor",
        f"default tensor tensor2: input, scale, zero_point, {_RANGE}",
        rules.affine_rule("tensor", quantize=True),
        ref.per_tensor(quantize=True),
    ),
    op(
        "quantized_decomposed.dequantize_per_tensor",
        f"default tensor tensor2: input, scale, zero_point, {_RANGE}, *, out_dtype=None",
        rules.affine_rule("tensor", quantize=False),
        ref.per_tensor(quantize=False),
    ),
    op(
        "quantized_decomposed.quantize_per_channel",
        f"default: input, scales, zero_points, axis, {_RANGE}",
        rules.affine_rule("channel", quantize=True),
        ref.per_channel(quantize=True),
    ),
    op(
        "quantized_decomposed.dequantize_per_channel",
        f"default: input, scales, zero_points, axis, {_RANGE}, *, out_dtype=None",
        rules.affine_rule("channel", quantize=False),
        ref.per_channel(quantize=False),
    ),
    op(
        "quantized_decomposed.quantize_per_token",
        f"default: input, scales, zero_points, {_RANGE}",
        rules.affine_rule("token", quantize=True),
        ref.per_token(quantize=True),
    ),
    op(
        "quantized_decomposed.dequantize_per_token",
        f"default: input, scales, zero_points, {_RANGE}, output_dtype",
        rules.affine_rule("token", quantize=False),
        ref.per_token(quantize=False),
    ),
    op(
        "quantized_decomposed.quantize_per_channel_group",
        f"default: input, scales, zero_points, {_RANGE}, group_size",
        rules.affine_rule("group", quantize=True),
        ref.per_channel_group(quantize=True),
    ),
    op(
        "quantized_decomposed.dequantize_per_channel_group",
        f"default: input, scales, zero_points, {_RANGE}, group_size, output_dtype",
        rules.affine_rule("group", quantize=False),
        ref.per_channel_group(quantize=False),
    ),
)
