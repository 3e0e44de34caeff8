# ruff: noqa: ARG001 - rules have the signature of their op
"""Attention as in torch's kernels, which also return the logarithms of the row sums, and its
gradients: products around the weights, which are recomputed from those logarithms."""

from __future__ import annotations

from typing import Any

import sympy

from scheduler.ir.values import Value, call, const, upcast
from scheduler.lowering import trees
from scheduler.lowering.attention import (
    attention,
    compute_scores,
    exp_scores,
    score_epilogue,
    softmax_scale,
    softmax_weights,
)
from scheduler.lowering.builder import Builder
from scheduler.lowering.creation import full
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.matmul import product
from scheduler.lowering.pointwise import materialize
from scheduler.lowering.reductions import sum_over
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.views import transpose

_ZERO = sympy.Integer(0)


def attention_with_sums(
    b: Builder,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    attn_mask: Tensor | None = None,
    attn_bias: Tensor | None = None,
    scale: float | None = None,
    compute_log_sumexp: bool = True,
    **_: Any,
) -> tuple[Tensor | None, ...]:
    """The result and the logarithms of the row sums. The random number states after them are zero,
    because no number is drawn."""
    mask = attn_bias if attn_mask is None else attn_mask
    _check_dropout(dropout_p)
    result = attention(b, query, key, value, mask, 0.0, is_causal, scale)
    assert b.node is not None
    sums = _log_sums(b, query, key, mask, bool(is_causal), scale)
    zero_outputs = (_zero_output(b, k) for k in range(2, len(b.node.outputs)))
    return result, sums, *zero_outputs


def _zero_output(b: Builder, output_number: int) -> Tensor | None:
    assert b.node is not None
    if b.node.outputs[output_number] not in b.graph.tensors:
        return None
    meta = b.output_meta(output_number)
    return full(meta.size, 0, meta.dtype)


def _log_sums(
    b: Builder,
    query: Tensor,
    key: Tensor,
    mask: Tensor | None,
    is_causal: bool,
    scale: float | None,
) -> Tensor:
    """log(sum(exp(scores))) of each row. If it is not read, nothing is computed."""
    meta, compute_dtype = b.output_meta(1), query.dtype.compute_dtype
    size = (*query.size[:-1], key.size[-2])
    if meta.size[: len(size) - 2] != size[:-2]:
        raise Unsupported(
            "attention whose log-sum-exp has another shape than its rows is not supported"
        )
    scores = compute_scores(b, query, key, mask, is_causal, scale, size, compute_dtype)
    maximum, exp_shifted = exp_scores(b, scores)
    result = sum_over(
        b,
        scores,
        (scores.rank - 1,),
        dtype=compute_dtype,
        before=exp_shifted,
        after=lambda acc, i: call("log", acc) + maximum.at((*i[:-1], _ZERO)),
    )

    def read(index: Index) -> Value:
        value = result.at((*index, _ZERO))
        if meta.size[-1] == size[-2]:
            return value
        # Some kernels pad rows to a multiple of their tile size.
        return trees.masked_value(
            trees.less_than(index[-1], size[-2]), value, const(0, compute_dtype)
        )

    return materialize(b, Tensor(meta.size, meta.dtype, read))


def _check_dropout(probability: float) -> None:
    """Reject dropout in forms with further results: the gradient would need torch's random state to
    know the dropped weights."""
    if probability:
        raise Unsupported(
            "attention with dropout and a gradient that reuses its mask is not supported"
        )


def attention_math(
    b: Builder,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[Tensor, Tensor]:
    """Attention that also returns the weights."""
    if enable_gqa:
        raise Unsupported("grouped-query attention that returns its weights is not supported")
    _check_dropout(dropout_p)
    result = attention(b, query, key, value, attn_mask, 0.0, is_causal, scale)
    meta, compute_dtype = b.output_meta(1), query.dtype.compute_dtype
    scores = compute_scores(
        b, query, key, attn_mask, bool(is_causal), scale, meta.size, compute_dtype
    )
    return result, softmax_weights(b, scores, meta.dtype)


def attention_backward(
    b: Builder,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    grad_out: Tensor | None = None,
    grad_out_: Tensor | None = None,
    attn_mask: Tensor | None = None,
    attn_bias: Tensor | None = None,
    scale: float | None = None,
    grad_input_mask: tuple[bool, ...] = (True, True, True, False),
    **_: Any,
) -> tuple[Tensor | None, ...]:
    """Gradients with respect to queries, keys and values.

    With P the weights and D the row sums of ``grad * out``: the gradient of the values is ``P^T
    grad``; those of queries and keys use ``P (grad value^T - D) scale`` in place of the scores.
    """
    grad = grad_out or grad_out_
    assert grad is not None
    assert b.node is not None
    leading = query.size[:-2]
    _check_dropout(dropout_p)
    if key.size[:-2] != leading or value.size[:-2] != leading:
        raise Unsupported("the gradient of attention with shared heads is not supported")
    if len(grad_input_mask) > 3 and grad_input_mask[3]:
        raise Unsupported("the gradient of attention with respect to its mask is not supported")
    compute_dtype = query.dtype.compute_dtype
    size = (*leading, query.size[-2], key.size[-2])
    mask = attn_bias if attn_mask is None else attn_mask
    weights = logsumexp  # torch's decomposition of CPU attention passes the weights here
    if logsumexp.rank < query.rank:
        scored = score_epilogue(scale, query.size[-1], bool(is_causal), mask, size, compute_dtype)

        def weight(acc: Value, index: Index) -> Value:
            """exp(score - logarithm of the row's sum); 0 where the score is -inf."""
            score = scored(acc, index)
            exponential = call("exp", score - upcast(logsumexp.at(index[:-1]), compute_dtype))
            return call("where", call("eq", score, -float("inf")), 0, exponential)

        columns = transpose(key, -2, -1)
        weights = product(b, "attention weights", query, columns, size, compute_dtype, weight)
    row_sums = sum_over(
        b,
        grad,
        (grad.rank - 1,),
        dtype=compute_dtype,
        before=lambda value, index: value * upcast(out.at(index), compute_dtype),
    )
    factor = softmax_scale(scale, query.size[-1], compute_dtype)

    def score_gradient(acc: Value, index: Index) -> Value:
        centred = acc - row_sums.at((*index[:-1], _ZERO))
        return upcast(weights.at(index), compute_dtype) * centred * factor

    transposed_value = transpose(value, -2, -1)
    scores = product(
        b, "attention scores", grad, transposed_value, size, compute_dtype, score_gradient
    )
    products = [
        (scores, key, query),
        (transpose(scores, -2, -1), query, key),
        (transpose(weights, -2, -1), grad, value),
    ]
    gradients = [
        product(b, "attention gradient", x, y, operand.size, operand.dtype, None)
        if needed
        else _zero_output(b, k)
        for k, ((x, y, operand), needed) in enumerate(zip(products, grad_input_mask, strict=False))
    ]
    return (*gradients, *(_zero_output(b, k) for k in range(3, len(b.node.outputs))))
