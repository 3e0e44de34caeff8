"""Reference of products of quantized tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.ir.reference.rounding import rounded
from scheduler.ir.reference.rule import OWN_DTYPE, Args, UnsupportedUseError


def scaled_mm(a: Args) -> Any:
    x, y, rows, columns = a["self"], a["mat2"], a["scale_a"], a["scale_b"]
    out = a["out_dtype"] or a[OWN_DTYPE]
    if out is None or (a["scale_result"] is not None and out.is_float8):
        raise UnsupportedUseError("a scale of the result, which torch takes on GPUs alone")
    if (np.size(rows) != 1 and np.shape(rows) != (x.shape[0], 1)) or (
        np.size(columns) != 1 and np.shape(columns) != (1, y.shape[1])
    ):
        raise UnsupportedUseError("scales of blocks")
    rows, columns = (s.reshape(()) if np.size(s) == 1 else s for s in (rows, columns))
    result = (x * rows) @ (y * columns)
    if a["bias"] is not None:
        result = result + a["bias"]
    return rounded(result, out) if out.is_float8 else result
