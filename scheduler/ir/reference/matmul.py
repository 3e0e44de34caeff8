"""Reference of matrix products: plain, grouped, and sums of products over given dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from scheduler.ir.reference.rule import (
    Args,
    Array,
    Result,
    Rule,
    as_float,
)


def _add_bias(a: Args, product: Array) -> Any:
    """Return beta * self + alpha * product; with beta = 0 ``self``, even NaN, is ignored. For
    integers the factors are truncated towards zero."""
    if product.dtype == np.bool_:
        return np.logical_or(a["self"], product) if a["beta"] else product
    alpha, beta = a["alpha"], a["beta"]
    if np.issubdtype(product.dtype, np.integer):
        alpha, beta = int(alpha), int(beta)
    scaled = product if alpha == 1 else product * alpha
    if beta == 0:
        return scaled
    return np.asarray(scaled + (a["self"] if beta == 1 else a["self"] * beta))


def product(left: str, right: str) -> Rule:
    """Return the matrix product of the arguments of these names."""
    return lambda a: a[left] @ a[right]


def biased_product(left: str, right: str) -> Rule:
    """Return ``beta * self + alpha * left @ right``."""
    return lambda a: _add_bias(a, a[left] @ a[right])


mm, matmul = product("self", "mat2"), product("self", "other")
dot, mv = product("self", "tensor"), product("self", "vec")
addmm, baddbmm = biased_product("mat1", "mat2"), biased_product("batch1", "batch2")
addmv = biased_product("mat", "vec")


def linear(a: Args) -> Array:
    product: Array = a["input"] @ a["weight"].T
    return product if a["bias"] is None else product + a["bias"]


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


def _groups(ends: Array, size: int) -> Iterator[tuple[int, slice]]:
    """Yield each group's number and slice, from the groups' ends along an axis of this size."""
    start = 0
    for group, end in enumerate(np.asarray(ends).tolist()):
        yield group, slice(start, min(max(end, start), size))
        start = min(max(end, start), size)


def rows_by_group(a: Args) -> Result:
    """[S, K] x [E, K, N] → [S, N]: rows up to ``offs[e]`` times matrix e; 0 for ungrouped rows."""
    return _rows(np.asarray(a["input"]), np.asarray(a["weight"]), a["offs"])


def _rows(x: Array, y: Array, ends: Array) -> Array:
    result = np.zeros((x.shape[0], y.shape[-1]), np.result_type(x, y))
    for group, position in _groups(ends, x.shape[0]):
        result[position] = x[position] @ y[group]
    return result


def grouped_mm(a: Args) -> Result:
    """torch's four forms: groups of rows, of columns, of the summed axis, or a batch."""
    x, y, ends = np.asarray(a["self"]), np.asarray(a["mat2"]), a["offs"]
    if x.ndim == y.ndim == 3:
        result = x @ y
    elif y.ndim == 3:
        result = _rows(x, y, ends)
    elif x.ndim == 3:
        result = np.swapaxes(_rows(y.T, np.swapaxes(x, 1, 2), ends), 0, 1)
    else:
        parts = [x[:, position] @ y[position] for _, position in _groups(ends, x.shape[1])]
        result = np.stack(parts)
    return result if a["bias"] is None else result + np.asarray(a["bias"])


def addbmm(a: Args) -> Any:
    return _add_bias(a, (a["batch1"] @ a["batch2"]).sum(axis=0))


def addr(a: Args) -> Any:
    x, y = a["vec1"], a["vec2"]
    outer = np.logical_and.outer(x, y) if x.dtype == np.bool_ else np.multiply.outer(x, y)
    return _add_bias(a, outer)


def inner(a: Args) -> Any:
    return np.asarray(np.inner(a["self"], a["other"]))


def tensordot(a: Args) -> Any:
    x, y = a["self"], a["other"]
    for x_dim, y_dim in zip(a["dims_self"], a["dims_other"], strict=True):
        # An extent of 1 is broadcast.
        if x.shape[x_dim] == 1 != y.shape[y_dim]:
            x = np.repeat(x, y.shape[y_dim], x_dim)
        elif y.shape[y_dim] == 1 != x.shape[x_dim]:
            y = np.repeat(y, x.shape[x_dim], y_dim)
    return np.tensordot(x, y, (a["dims_self"], a["dims_other"]))


def kron(a: Args) -> Any:
    return np.kron(a["self"], a["other"])


def chain_matmul(a: Args) -> Any:
    result = a["matrices"][0]
    for matrix in a["matrices"][1:]:
        result = result @ matrix
    return np.array(result)


def bilinear(a: Args) -> Any:
    x, y = as_float(a["input1"]), as_float(a["input2"])
    result = np.einsum("...i,oij,...j->...o", x, as_float(a["weight"]), y, optimize=True)
    return result if a["bias"] is None else result + a["bias"]


def trilinear(a: Args) -> Any:
    parts = [as_float(a[name]) for name in ("i1", "i2", "i3")]
    rank = parts[0].ndim + len(a["expand1"])
    operands: list[Any] = []
    for part, repeated in zip(parts, (a["expand1"], a["expand2"], a["expand3"]), strict=True):
        operands += [part, [d for d in range(rank) if d not in repeated]]
    kept = [d for d in range(rank) if d not in a["sumdim"]]
    return np.einsum(*operands, kept, optimize=True)
