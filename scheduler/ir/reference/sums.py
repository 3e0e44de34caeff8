"""Reference of sums of products over given dimensions, and of sums without NaN."""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.ir.reference.matmul import cast_factor
from scheduler.ir.reference.rule import (
    Args,
    Array,
    as_float,
    compute_dtype,
    is_float,
    normalize_dims,
)


def _add_bias(a: Args, product: Array) -> Any:
    """Return beta * self + alpha * product; with beta = 0 ``self`` is ignored."""
    if product.dtype == np.bool_:
        return np.logical_or(a["self"], product) if a["beta"] else product
    alpha, beta = (cast_factor(a[name], product) for name in ("alpha", "beta"))
    product = product if alpha == 1 else product * alpha
    own = a["self"] if beta == 1 else a["self"] * beta
    return own + product if beta else np.broadcast_to(product, product.shape)


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
    for one, two in zip(a["dims_self"], a["dims_other"], strict=True):
        # An extent of 1 is broadcast.
        if x.shape[one] == 1 != y.shape[two]:
            x = np.repeat(x, y.shape[two], one)
        elif y.shape[two] == 1 != x.shape[one]:
            y = np.repeat(y, x.shape[one], two)
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
    made = np.einsum("...i,oij,...j->...o", x, as_float(a["weight"]), y, optimize=True)
    return made if a["bias"] is None else made + a["bias"]


def trilinear(a: Args) -> Any:
    parts = [as_float(a[name]) for name in ("i1", "i2", "i3")]
    rank = parts[0].ndim + len(a["expand1"])
    operands: list[Any] = []
    for part, repeated in zip(parts, (a["expand1"], a["expand2"], a["expand3"]), strict=True):
        operands += [part, [d for d in range(rank) if d not in repeated]]
    kept = [d for d in range(rank) if d not in a["sumdim"]]
    return np.einsum(*operands, kept, optimize=True)


def _axis_args(a: Args) -> dict[str, Any]:
    return {"axis": normalize_dims(a["dim"], np.ndim(a["self"])), "keepdims": bool(a["keepdim"])}


def nansum(a: Args) -> Any:
    x = a["self"]
    if a["dtype"] is not None:
        x = x.astype(compute_dtype(a["dtype"]))
    x = x if is_float(x) else x.astype(np.int64)
    return np.asarray(np.nansum(x, **_axis_args(a)))


def nanmean(a: Args) -> Any:
    x = as_float(a["self"])
    numbers = (~np.isnan(x)).sum(**_axis_args(a))
    return np.asarray(np.true_divide(np.nansum(x, **_axis_args(a)), numbers))
