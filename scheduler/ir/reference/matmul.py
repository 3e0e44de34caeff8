"""Reference of matrix multiplications, convolutions and attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from scheduler.ir.reference.random import keep_mask
from scheduler.ir.reference.rule import Args, Array


def cast_factor(number: Any, product: Array) -> Any:
    """Convert a factor to the product's type: for integers it is truncated towards zero."""
    return int(number) if np.issubdtype(product.dtype, np.integer) else number


def _add_bias(bias: Any, product: Array, a: Args) -> Array:
    """Return beta * bias + alpha * product; with beta = 0 the bias, even NaN, is ignored."""
    alpha, beta = (cast_factor(a[name], product) for name in ("alpha", "beta"))
    scaled = product if alpha == 1 else product * alpha
    if beta == 0:
        return scaled
    return np.asarray(scaled + (bias if beta == 1 else bias * beta))


def linear(a: Args) -> Array:
    product: Array = a["input"] @ a["weight"].T
    return product if a["bias"] is None else product + a["bias"]


def softmax(x: Array, axis: int) -> Array:
    """Return exp(x) divided by its sum, shifted by the maximum."""
    if x.size == 0:
        return x.copy()
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return np.asarray(powers / powers.sum(axis=axis, keepdims=True))


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
    left = keep_mask(a, (*batch, rows, columns), chance) if 0 < chance < 1 else None
    result = np.empty((*batch, rows, value.shape[-1]))
    for at in np.ndindex(*batch):
        scores = (query[at] * scale) @ key[at].swapaxes(-1, -2)
        if mask is not None and mask.dtype == np.bool_:
            scores = np.where(mask[at], scores, -np.inf)
        elif mask is not None:
            scores = scores + mask[at]
        if causal is not None:
            scores = np.where(causal, scores, -np.inf)
        weights = _safe_softmax(scores)
        if chance:
            weights = np.zeros_like(scores) if left is None else weights * left[at] / (1 - chance)
        result[at] = weights @ value[at]
    return result


def _safe_softmax(scores: Array) -> Array:
    if scores.size == 0:
        return scores
    highest = scores.max(axis=-1, keepdims=True)
    powers = np.exp(scores - np.where(highest == -np.inf, 0.0, highest))
    total = powers.sum(axis=-1, keepdims=True)
    return np.asarray(powers / np.where(highest == -np.inf, 1.0, total))


def mm(a: Args) -> Any:
    return a["self"] @ a["mat2"]


def addmm(a: Args) -> Any:
    return _add_bias(a["self"], a["mat1"] @ a["mat2"], a)


def baddbmm(a: Args) -> Any:
    return _add_bias(a["self"], a["batch1"] @ a["batch2"], a)


def addmv(a: Args) -> Any:
    return _add_bias(a["self"], a["mat"] @ a["vec"], a)


def matmul(a: Args) -> Any:
    return a["self"] @ a["other"]


def dot(a: Args) -> Any:
    return a["self"] @ a["tensor"]


def mv(a: Args) -> Any:
    return a["self"] @ a["vec"]


def outer(a: Args) -> Any:
    return np.multiply.outer(a["self"], a["vec2"])


def einsum(a: Args) -> Any:
    tensors, equation = a["tensors"], str(a["equation"]).replace(" ", "")
    left, _, right = equation.partition("->")
    letters = left.replace(",", "")
    # torch first sums a dimension that only one operand has, integers as int64.
    alone = any(letters.count(x) == 1 and x not in right for x in letters) and "->" in equation
    if alone and np.result_type(*tensors).kind in "biu":
        tensors = [x.astype(np.int64) for x in tensors]
    return np.einsum(equation, *tensors, optimize=True)
