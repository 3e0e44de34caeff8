"""Reference of ``hash_tensor``: exclusive or of all elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.ir.reference.rounding import round_to_dtype
from scheduler.ir.reference.rule import OWN_DTYPE, Args, UnsupportedUseError, is_float


def hash_tensor(a: Args) -> Any:
    """Hash the elements' bits as float64 or int64 over the given dimensions; over all without
    any."""
    x = np.asarray(a["self"])
    if a["mode"] != 0 or np.iscomplexobj(x):
        raise UnsupportedUseError(
            "a hash of complex numbers, or by another reduction than xor, is not supported"
        )
    own = a[OWN_DTYPE]
    x = x if own is None else round_to_dtype(x, own)  # the type's own values
    wide = x.astype(np.float64) if is_float(x) else x.astype(np.int64)
    named = (a["dim"],) if isinstance(a["dim"], int) else tuple(a["dim"])
    axes = tuple(d % max(x.ndim, 1) for d in named) if x.ndim else ()
    over = axes or tuple(range(x.ndim))
    return np.bitwise_xor.reduce(wide.view(np.uint64), axis=over, keepdims=a["keepdim"])
