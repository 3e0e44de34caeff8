"""Reference of derivatives by finite differences (``torch.gradient``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.ir.reference.rule import Args, Array, UnsupportedUseError, as_float


def gradient(a: Args) -> tuple[Array, ...]:
    """Return a result for each requested dimension."""
    x, spacing, dim, order = a["self"], a.get("spacing"), a["dim"], a["edge_order"]
    dims = range(x.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    steps = spacing if isinstance(spacing, tuple | list) else [spacing] * len(dims)
    if order not in (1, 2) or len(steps) != len(dims):
        raise UnsupportedUseError(
            f"a gradient with edge_order={order} and {len(steps)} spacings is not supported"
        )
    return tuple(_along(x, d, h, order) for d, h in zip(dims, steps, strict=True))


def _along(x: Array, dim: int, spacing: Any, order: int) -> Array:
    line = np.moveaxis(x, dim, 0)
    if len(line) < order + 1:
        raise UnsupportedUseError(
            f"a gradient with edge_order={order} along a dimension of {len(line)} is not supported"
        )
    if np.ndim(spacing):
        places: Any = as_float(spacing)
        made = np.gradient(as_float(line), places, axis=0, edge_order=2 if order == 2 else 1)
        return np.moveaxis(made, 0, dim)
    step = 1 if spacing is None else spacing
    # Differences and doubles of integers wrap in their own type.
    inner = as_float(line[2:] - line[:-2]) / step / 2
    if order == 1:
        ends = [as_float(line[i + 1 : i + 2] - line[i : i + 1]) for i in (0, len(line) - 2)]
    else:
        f, twice = as_float(line), as_float(2 * line)
        ends = [-1.5 * f[:1] + twice[1:2] - 0.5 * f[2:3]]
        ends.append(0.5 * f[-3:-2] - twice[-2:-1] + 1.5 * f[-1:])
    return np.moveaxis(np.concatenate([ends[0] / step, inner, ends[1] / step]), 0, dim)
