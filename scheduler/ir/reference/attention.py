"""Reference of attention ops with additional results, and of their gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from scheduler.ir.reference.normalization import softmax_or_zeros
from scheduler.ir.reference.random import keep_mask
from scheduler.ir.reference.rule import (
    Args,
    Array,
    UnsupportedUseError,
)


def _mask(a: Args) -> Any:
    return a["attn_mask"] if "attn_mask" in a else a.get("attn_bias")


def _scores(a: Args) -> Array:
    query, key, mask = a["query"], a["key"], _mask(a)
    scale = 1 / math.sqrt(query.shape[-1]) if a["scale"] is None else a["scale"]
    scores = np.asarray((query @ np.swapaxes(key, -1, -2)) * scale)
    if a["is_causal"]:
        rows, columns = np.arange(query.shape[-2])[:, None], np.arange(key.shape[-2])
        scores = np.where(columns <= rows, scores, -np.inf)
    if mask is None:
        return scores
    return np.where(mask, scores, -np.inf) if mask.dtype == np.bool_ else scores + mask


def _attention_args(a: Args) -> Args:
    if a["dropout_p"]:
        raise UnsupportedUseError(
            "attention with dropout and a gradient that reuses its mask is not supported"
        )
    return {"enable_gqa": False, **a, "attn_mask": _mask(a)}


def attention_with_sums(a: Args) -> tuple[Any, ...]:
    scores = _scores(a)
    highest = scores.max(axis=-1, initial=-np.inf, keepdims=True)
    top = np.where(np.isinf(highest), 0.0, highest)
    sums = np.log(np.exp(scores - top).sum(axis=-1, keepdims=True)) + top
    zero = np.zeros((), np.int64)
    return attention(_attention_args(a)), sums[..., 0], *[zero] * 7


def attention_math(a: Args) -> tuple[Any, ...]:
    if a["enable_gqa"]:
        raise UnsupportedUseError(
            "grouped-query attention that returns its weights is not supported"
        )
    scores = _scores(a)
    highest = scores.max(axis=-1, initial=-np.inf, keepdims=True)
    powers = np.exp(scores - np.where(np.isinf(highest), 0.0, highest))
    total = powers.sum(axis=-1, keepdims=True)
    return attention(_attention_args(a)), powers / np.where(total == 0, 1.0, total)


def attention_backward(a: Args) -> tuple[Any, ...]:
    """torch's decomposition of the CPU attention passes the weights as ``logsumexp``."""
    if a["dropout_p"]:
        raise UnsupportedUseError("dropout is not supported: it is random")
    if a.get("grad_input_mask", (False,) * 4)[3]:
        raise UnsupportedUseError(
            "the gradient of attention with respect to its mask is not supported"
        )
    grad = a["grad_out"] if "grad_out" in a else a["grad_out_"]
    query, key, value = a["query"], a["key"], a["value"]
    scale = 1 / math.sqrt(query.shape[-1]) if a["scale"] is None else a["scale"]
    weights = a["logsumexp"]
    if weights.ndim < query.ndim:
        scores, rows = _scores(a), weights[..., : query.shape[-2], None]
        weights = np.where(np.isneginf(scores), 0.0, np.exp(scores - rows))
    inner = grad @ np.swapaxes(value, -1, -2) - (grad * a["out"]).sum(axis=-1, keepdims=True)
    moved = weights * inner * scale
    result = (
        moved @ key,
        np.swapaxes(moved, -1, -2) @ query,
        np.swapaxes(weights, -1, -2) @ grad,
        None,
    )
    return result if "grad_input_mask" in a else result[:3]


def attention(a: Args) -> Array:
    """softmax(scale q k^T + mask) v, one head at a time to limit the memory of scores; dropout is
    applied to the weights.

    Causal is aligned top-left; a row whose scores are all minus infinity gives zeros. Grouped
    queries: head h reads key head h // (heads / key heads).
    """
    query, key, value, mask = a["query"], a["key"], a["value"], a["attn_mask"]
    if a["enable_gqa"]:
        key = np.repeat(key, query.shape[-3] // key.shape[-3], axis=-3)
        value = np.repeat(value, query.shape[-3] // value.shape[-3], axis=-3)
    rows, columns = query.shape[-2], key.shape[-2]
    batch = np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    query, key, value = (np.broadcast_to(t, batch + t.shape[-2:]) for t in (query, key, value))
    scale = 1 / math.sqrt(max(query.shape[-1], 1)) if a["scale"] is None else a["scale"]
    if mask is not None:
        mask = np.broadcast_to(mask, (*batch, rows, columns))
    causal = np.arange(columns) <= np.arange(rows)[:, None] if a["is_causal"] else None
    chance = a["dropout_p"]
    kept = keep_mask(a, (*batch, rows, columns), chance) if 0 < chance < 1 else None
    result = np.empty((*batch, rows, value.shape[-1]))
    for index in np.ndindex(*batch):
        scores = (query[index] * scale) @ key[index].swapaxes(-1, -2)
        if mask is not None and mask.dtype == np.bool_:
            scores = np.where(mask[index], scores, -np.inf)
        elif mask is not None:
            scores = scores + mask[index]
        if causal is not None:
            scores = np.where(causal, scores, -np.inf)
        weights = softmax_or_zeros(scores, -1)
        if chance:
            weights = (
                np.zeros_like(scores) if kept is None else weights * kept[index] / (1 - chance)
            )
        result[index] = weights @ value[index]
    return result
