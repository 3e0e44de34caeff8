"""Rows of attention variants with further results, as torch's kernels return them, and of
gradients."""

from __future__ import annotations

from scheduler.ir.ops import op
from scheduler.ir.reference import attention as ref
from scheduler.lowering import attention_backward as rules

_SAVED = "cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, philox_seed, philox_offset"

ROWS = (
    op(
        "aten._scaled_dot_product_attention_math",
        "query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, dropout_mask=None, *, "
        "scale=None, enable_gqa=False",
        rules.attention_math,
        ref.attention_math,
    ),
    op(
        "aten._scaled_dot_product_flash_attention_for_cpu",
        "query, key, value, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None",
        rules.attention_with_sums,
        ref.attention_with_sums,
    ),
    op(
        "aten._scaled_dot_product_flash_attention",
        "query, key, value, dropout_p=0.0, is_causal=False, return_debug_mask=False, *, scale=None",
        rules.attention_with_sums,
        ref.attention_with_sums,
    ),
    op(
        "aten._scaled_dot_product_efficient_attention",
        "query, key, value, attn_bias, compute_log_sumexp, dropout_p=0.0, is_causal=False, *, "
        "scale=None",
        rules.attention_with_sums,
        ref.attention_with_sums,
    ),
    op(
        "aten._scaled_dot_product_cudnn_attention",
        "query, key, value, attn_bias, compute_log_sumexp, dropout_p=0.0, is_causal=False, "
        "return_debug_mask=False, *, scale=None",
        rules.attention_with_sums,
        ref.attention_with_sums,
    ),
    op(
        "aten._scaled_dot_product_fused_attention_overrideable",
        "query, key, value, attn_bias=None, dropout_p=0.0, is_causal=False, "
        "return_debug_mask=False, *, scale=None",
        rules.attention_with_sums,
        ref.attention_with_sums,
    ),
    op(
        "aten._scaled_dot_product_flash_attention_for_cpu_backward",
        "grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, *, attn_mask=None, "
        "scale=None",
        rules.attention_backward,
        ref.attention_backward,
    ),
    op(
        "aten._scaled_dot_product_flash_attention_backward",
        f"grad_out, query, key, value, out, logsumexp, {_SAVED}, *, scale=None",
        rules.attention_backward,
        ref.attention_backward,
    ),
    op(
        "aten._scaled_dot_product_efficient_attention_backward",
        "grad_out_, query, key, value, attn_bias, out, logsumexp, philox_seed, philox_offset, "
        "dropout_p, grad_input_mask, is_causal=False, *, scale=None",
        rules.attention_backward,
        ref.attention_backward,
    ),
)
