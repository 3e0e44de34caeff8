"""The contents of a launch's buffers: given elements, or random ones as for a problem."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from scheduler.cycles.launch_inputs import buffer_filler
from scheduler.ir.dtypes import DType
from scheduler.ir.encoding import encode_values
from scheduler.isa.rocm.emulator.memory import Filler

DTYPES = {dtype.torch.removeprefix("torch."): dtype for dtype in DType}
"""Element types by torch's names."""


def random_values(dtype: DType, seed: int, below: int | None = None) -> Filler | None:
    """Return floats around 0, integers from 0 up to ``below``; None if all are zero."""
    if below is None and not dtype.is_inexact:
        return None
    return buffer_filler(dtype, below, np.random.default_rng(seed))


def pack_values(dtype: DType, values: Sequence[float]) -> bytes:
    """Return the elements as bytes. ``ValueError`` for a value outside the type."""
    if dtype.is_inexact:
        return encode_values(np.array(values, np.float64), dtype).astype(dtype.numpy).tobytes()
    held = np.array(values, object)
    limits = np.iinfo(dtype.numpy) if dtype is not DType.BOOL else None
    least, most = (int(limits.min), int(limits.max)) if limits else (0, 1)
    for value in values:
        if not math.isfinite(value) or value != int(value) or not least <= value <= most:
            name = dtype.torch.removeprefix("torch.")
            raise ValueError(f"{value} is not {'an' if name.startswith('int') else 'a'} {name}")
    return held.astype(dtype.numpy).tobytes()
