"""Reference of ``rngprims.philox_rand``; docs/random.md describes the numbers torch draws."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from scheduler.ir.dtypes import DType
from scheduler.ir.reference.random import philox
from scheduler.ir.reference.rounding import round_to_dtype
from scheduler.ir.reference.rule import RANDOM, Args, Array, UnsupportedUseError
from scheduler.limits import MAX_RESULT_ELEMENTS

_TYPES = (DType.F16, DType.BF16, DType.F32, DType.F64)


def philox_rand(a: Args) -> Any:
    """Return the numbers, and by how much the generator's offset advances.

    Threads in blocks of 256, each with its own sequence, take elements in turn.
    """
    shape, dtype = tuple(int(extent) for extent in a["size"]), a["dtype"] or DType.F32
    count = math.prod(shape)
    if dtype not in _TYPES or a["stride"] is not None:
        raise UnsupportedUseError(
            f"torch's uniform random numbers of type {dtype.label} are not supported"
        )
    if count > MAX_RESULT_ELEMENTS:
        raise UnsupportedUseError(f"a result of {count} random numbers is too large")
    seed, offset = (int(np.asarray(a[name]).reshape(())) % 2**64 for name in ("seed", "offset"))
    threads = 256 * max(1, min(-(-count // 256), int(a[RANDOM])))
    drawn = 2 if dtype is DType.F64 else 4
    turn, thread = np.divmod(np.arange(count), threads)
    call, number = np.divmod(turn, drawn)
    counter = (offset // 4 + call.astype(object)) % 2**64 if offset >> 62 else offset // 4 + call
    low, high = (np.array(part, np.uint64) for part in (counter % 2**32, counter // 2**32))
    nothing = np.zeros(count, np.uint64)
    counters = np.stack([low, high, thread.astype(np.uint64), nothing], axis=-1)
    words = philox(counters, (seed % 2**32, seed // 2**32))
    made = _doubles(words, number) if dtype is DType.F64 else _singles(words, number, dtype)
    consumed = 4 * ((count - 1) // (4 * threads) + 1)
    return np.where(made == 1, 0.0, made).reshape(shape), np.int64(consumed)


def _singles(words: Array, number: Array, dtype: DType) -> Array:
    word = np.take_along_axis(words, number[:, None], 1)[:, 0].astype(np.float32)
    exact = word.astype(np.float64) * 2.0**-32 + 2.0**-33
    return round_to_dtype(round_to_dtype(exact, DType.F32), dtype)


def _doubles(words: Array, number: Array) -> Array:
    first, second = (np.take_along_axis(words, 2 * number[:, None] + at, 1)[:, 0] for at in (0, 1))
    whole = first ^ (second << np.uint64(21))
    return np.asarray(whole.astype(np.float64) * 2.0**-53 + 2.0**-54)
