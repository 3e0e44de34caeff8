"""Reference of distances between the rows of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.ir.reference.reductions import norm as vector_norm
from scheduler.ir.reference.rule import Args, Array, as_float


def frobenius_norm(a: Args) -> Array:
    return vector_norm({**a, "ord": 2})


def _norm(x: Array, p: float, dim: Any) -> Array:
    if x.ndim and x.shape[-1] == 0 and dim == -1:
        return np.zeros(x.shape[:-1])
    return vector_norm({"self": x, "ord": p, "dim": dim, "keepdim": False})


def cdist(a: Args) -> Array:
    first, second = as_float(a["x1"]), as_float(a["x2"])
    p = a.get("p", 2.0)
    lead = np.broadcast_shapes(first.shape[:-2], second.shape[:-2])
    made = np.empty((*lead, first.shape[-2], second.shape[-2]))
    for row in range(first.shape[-2]):  # all differences at once could be many
        made[..., row, :] = _norm(first[..., row, None, :] - second, p, -1)
    return made


def pdist(a: Args) -> Array:
    x = as_float(a["self"])
    i, j = np.triu_indices(x.shape[0], 1)
    return _norm(x[i] - x[j], a["p"], -1)
