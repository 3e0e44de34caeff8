"""Reference of ops that draw random numbers (docs/random.md describes the algorithms).

Implemented from Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011), and from that
page, independently of the code that kernels use.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from scheduler.ir.dtypes import DType
from scheduler.ir.encoding import round_to_dtype
from scheduler.ir.reference.rule import (
    OWN_DTYPE,
    RANDOM,
    Args,
    Array,
    Rule,
    UnsupportedUseError,
    compute_dtype,
    compute_dtype_or,
)
from scheduler.limits import MAX_RESULT_ELEMENTS

_SELU = 1.7580993408473766  # minus its least value
_ROUNDS = 10
_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def philox(counters: Array, key: tuple[int, int]) -> Array:
    """Return four 32-bit words, ``[..., 4]`` in uint64, for four-word counters ``[..., 4]``."""
    a, b, c, d = (counters[..., position].astype(np.uint64) for position in range(4))
    first, second = key
    for _ in range(_ROUNDS):
        left, right = a * _MULTIPLIERS[0], c * _MULTIPLIERS[1]
        a, b, c, d = (
            (right >> _HALF) ^ b ^ np.uint64(first),
            right & _LOW,
            (left >> _HALF) ^ d ^ np.uint64(second),
            left & _LOW,
        )
        first, second = (first + _WEYL[0]) % 2**32, (second + _WEYL[1]) % 2**32
    return np.stack([a, b, c, d], axis=-1)


def _words(a: Args, size: Any, first: int = 0) -> tuple[Array, Array]:
    """Return two words of each element: the first two, or the next two."""
    shape = tuple(int(extent) for extent in size)
    if math.prod(shape) > MAX_RESULT_ELEMENTS:
        raise UnsupportedUseError(f"a result of {math.prod(shape)} random numbers is too large")
    number = np.arange(math.prod(shape), dtype=np.uint64)
    none = np.zeros_like(number)
    result = philox(np.stack([number & _LOW, number >> _HALF, none, none], axis=-1), a[RANDOM])
    return result[:, first].reshape(shape), result[:, first + 1].reshape(shape)


def _uniform(a: Args, size: Any, dtype: DType | None) -> Array:
    """Return numbers in [0, 1), with as many bits as the type's significand."""
    first, second = _words(a, size)
    if dtype is DType.F64:
        return _join_53_bits(first, second)
    if dtype is DType.C128:
        return _join_53_bits(first, second) + 1j * _join_53_bits(*_words(a, size, 2))
    if dtype is DType.C64:
        real, imaginary = (
            (word >> np.uint64(8)).astype(np.float64) * 2.0**-24 for word in (first, second)
        )
        return real + 1j * imaginary
    bits = {DType.F16: 11, DType.BF16: 8}.get(dtype or DType.F32, 24)
    return (first >> np.uint64(32 - bits)).astype(np.float64) * 2.0**-bits


def _join_53_bits(first: Array, second: Array) -> Array:
    high, low = first >> np.uint64(5), second >> np.uint64(6)
    return np.asarray((high.astype(np.float64) * 2.0**26 + low) * 2.0**-53)


def _above_zero(words: Array) -> Any:
    return ((words >> np.uint64(8)).astype(np.float64) + 1) * 2.0**-24


def _normal(a: Args, size: Any, dtype: DType | None = None) -> Array:
    """Box-Muller's cosine; for complex numbers also the sine, both with variance 1/2."""
    first, second = _words(a, size)
    angle = 2 * np.pi * ((second >> np.uint64(8)).astype(np.float64) * 2.0**-24)
    logarithm = np.log(_above_zero(first))
    if dtype is not None and dtype.is_complex:
        return np.asarray(np.sqrt(-logarithm) * (np.cos(angle) + 1j * np.sin(angle)))
    return np.asarray(np.sqrt(-2 * logarithm) * np.cos(angle))


def _size(a: Args) -> Any:
    return a["size"] if "size" in a else np.shape(a["self"])


def _requested_dtype(a: Args) -> DType | None:
    """Return the requested type, else the type of ``self``."""
    if a.get("dtype") is not None:
        dtype: DType = a["dtype"]
        return dtype
    own_dtype: DType | None = a[OWN_DTYPE]
    return own_dtype if "self" in a else None


def rand(a: Args) -> Any:
    return _uniform(a, _size(a), _requested_dtype(a))


def randn(a: Args) -> Any:
    return _normal(a, _size(a), _requested_dtype(a))


def randint(a: Args) -> Any:
    low = a.get("low", 0)
    first, second = _words(a, _size(a))
    span = int(a["high"]) - int(low)
    if span <= 0:
        raise UnsupportedUseError(
            f"random integers from {low} to below {a['high']} are not supported"
        )
    drawn = (first << np.uint64(31)) | (second >> np.uint64(1))
    result = (drawn % np.uint64(span)).astype(np.int64) + int(low)
    own_dtype = a[OWN_DTYPE] if "self" in a else None
    return result.astype(
        compute_dtype(own_dtype)
        if a["dtype"] is None and own_dtype
        else compute_dtype_or(a["dtype"], np.int64)
    )


def randperm(a: Args) -> Any:
    """Return the sort order of random 63-bit numbers."""
    first, second = _words(a, (a["n"],))
    keys = (first << np.uint64(31)) | (second >> np.uint64(1))
    return np.argsort(keys, kind="stable").astype(compute_dtype_or(a["dtype"], np.int64))


def bernoulli(a: Args) -> Any:
    x = a["self"]
    chance = a.get("p", x)
    drawn = _uniform(a, x.shape, DType.F32) < chance
    return drawn.astype(x.dtype)


def uniform(a: Args) -> Any:
    x = a["self"]
    return a["from"] + (a["to"] - a["from"]) * _uniform(a, x.shape, a[OWN_DTYPE])


def normal(a: Args) -> Any:
    mean, std = a["mean"], a["std"]
    if "size" in a:
        size = a["size"]
    elif "self" in a:
        size = np.shape(a["self"])
    else:
        size = np.broadcast_shapes(np.shape(mean), np.shape(std))
    return mean + std * _normal(a, size)


def log_normal(a: Args) -> Any:
    return np.exp(normal(a))


def exponential(a: Args) -> Any:
    first, _ = _words(a, a["self"].shape)
    return -np.log(_above_zero(first)) / a["lambd"]


def cauchy(a: Args) -> Any:
    angle = np.pi * (_uniform(a, a["self"].shape, DType.F32) - 0.5)
    return a["median"] + a["sigma"] * np.tan(angle)


def geometric(a: Args) -> Any:
    first, _ = _words(a, a["self"].shape)
    result = np.maximum(np.ceil(np.log(_above_zero(first)) / np.log1p(-a["p"])), 1)
    return result.astype(a["self"].dtype)


def multinomial(a: Args) -> Any:
    """Draw by cumulative probabilities with replacement, else by the least waiting times."""
    x = np.atleast_2d(np.asarray(a["self"], np.float64))
    count = a["num_samples"]
    if a["replacement"]:
        drawn = _uniform(a, (len(x), count), DType.F64)
        sums = x.cumsum(axis=1)
        positions = [
            np.searchsorted(s / s[-1], u, side="right") for s, u in zip(sums, drawn, strict=True)
        ]
        result = np.minimum(np.array(positions), x.shape[1] - 1)
    else:
        first, _ = _words(a, x.shape)
        with np.errstate(divide="ignore"):
            waiting = -np.log(_above_zero(first)) / x
        result = np.argsort(waiting, axis=1, kind="stable")[:, :count]
    result = result.reshape(len(x), count).astype(np.int64)
    return result if np.ndim(a["self"]) == 2 else result[0]


def keep_mask(a: Args, size: Any, chance: float) -> Array:
    """Return the mask of the elements that dropout keeps."""
    return _uniform(a, size, DType.F32) >= chance


def dropout(a: Args) -> Any:
    x, p = a["input"], a["p"]
    if not a["train"] or p == 0:
        return x
    return np.zeros_like(x) if p == 1 else np.where(keep_mask(a, x.shape, p), x / (1 - p), 0.0)


def noise_dropout(*, feature: bool, alpha: bool) -> Rule:
    """Dropout by channel (``feature``); or with SELU's minimum, keeping mean and variance."""

    def rule(a: Args) -> Any:
        x, p = a["input"], a["p"]
        if not a["train"] or p == 0:
            return x
        if feature and x.ndim < 2:
            raise UnsupportedUseError(
                "dropping channels of a tensor without channels is not supported"
            )
        if p == 1:
            return np.zeros_like(x)
        channels = x[(slice(None), slice(None), *(slice(1),) * (x.ndim - 2))] if feature else x
        noise = _uniform(a, channels.shape, DType.F32) >= p
        if not alpha:
            return x * (noise / (1 - p))
        factor = 1 / math.sqrt((_SELU**2 * p + 1) * (1 - p))
        return x * (noise * factor) + (noise - 1.0) * _SELU * factor + _SELU * factor * p

    return rule


def poisson(a: Args) -> Any:
    """Return the least count whose cumulative probability reaches the element's number."""
    from scipy import special  # noqa: PLC0415

    rate = np.asarray(a["self"], np.float64)
    drawn = _uniform(a, rate.shape, DType.F64)
    count = np.ceil(special.pdtrik(drawn, rate))
    less = np.maximum(count - 1, 0)
    result = np.where(special.pdtr(less, rate) >= drawn, less, count)
    return np.where(rate == 0, 0.0, result)


def native_dropout(a: Args) -> Any:
    x, p = a["input"], a["p"]
    if a["train"] is False or p == 0:
        return np.array(x), np.ones(x.shape, bool)
    kept = np.zeros(x.shape, bool) if p == 1 else keep_mask(a, x.shape, p)
    return np.where(kept, x / (1 - p if p != 1 else 1), 0.0), kept


def native_dropout_backward(a: Args) -> Any:
    return a["grad_output"] * a["mask"] * a["scale"]


def rrelu(a: Args) -> Any:
    x, low, high = a["self"], a["lower"], a["upper"]
    slope: Any = (low + high) / 2
    if a["training"]:
        slope = low + (high - low) * _uniform(a, x.shape, DType.F32)
    return np.where(x > 0, x, x * slope)


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
    if dtype is DType.F64:
        first, second = (
            np.take_along_axis(words, 2 * number[:, None] + half, 1)[:, 0] for half in (0, 1)
        )
        joined = first ^ (second << np.uint64(21))
        result = joined.astype(np.float64) * 2.0**-53 + 2.0**-54
    else:
        word = np.take_along_axis(words, number[:, None], 1)[:, 0].astype(np.float32)
        exact = word.astype(np.float64) * 2.0**-32 + 2.0**-33
        result = round_to_dtype(round_to_dtype(exact, DType.F32), dtype)
    consumed = 4 * ((count - 1) // (4 * threads) + 1)
    return np.where(result == 1, 0.0, result).reshape(shape), np.int64(consumed)
