"""The effect of atomic instructions on one memory location: (old value, lane's value) → new
value."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from scheduler.isa.rocm.emulator.alu.rounding import bfloat16_bits

Words = npt.NDArray[np.uint32]
_32, _16 = np.uint64(32), np.uint32(16)


@dataclass(frozen=True)
class AtomicOperation:
    """``words`` of memory; ``compute(old, data)`` of arrays of ``dtype`` [n]. If it ``compares``,
    the data has twice the words: the new value and the value to compare with."""

    words: int
    dtype: type[np.generic]
    compute: Callable[[Any, Any], Any]
    compares: bool = False

    def apply(self, old: Words, data: Words) -> Words:
        """Return [words, n] from [words, n] and [words, n] (or twice as many words)."""
        if self.compares:
            fresh, expected = data[: self.words], data[self.words :]
            same = (old == expected).all(axis=0)
            return np.where(same, fresh, old)
        values = self.compute(_joined(old, self.dtype), _joined(data, self.dtype))
        if self.words == 1:
            return np.ascontiguousarray(values.view(np.uint32)[None])
        number = values.view(np.uint64)
        return np.stack([number.astype(np.uint32), (number >> _32).astype(np.uint32)])


def _joined(words: Words, dtype: type[np.generic]) -> Any:
    if len(words) == 1:
        return np.ascontiguousarray(words[0]).view(dtype)
    return (words[1].astype(np.uint64) << _32 | words[0]).view(dtype)


def _add_f16(old: Any, data: Any) -> Any:
    """Return the sums of two f16 in a word."""
    return (old.view(np.float16) + data.view(np.float16)).view(np.uint32)


def _add_bf16(old: Any, data: Any) -> Any:
    """Return the sums of two bf16 in a word."""
    result = np.zeros_like(old)
    for shift in (np.uint32(0), _16):
        parts = [((codes >> shift) << _16).view(np.float32) for codes in (old, data)]
        result |= bfloat16_bits(parts[0] + parts[1]).astype(np.uint32) << shift
    return result


def _subtract_clamped(old: Any, data: Any) -> Any:
    return np.where(old < data, old.dtype.type(0), old - data)


_INTEGERS: dict[str, tuple[bool, Callable[[Any, Any], Any]]] = {
    "swap": (False, lambda _, data: data),
    "add": (False, lambda old, data: old + data),
    "sub": (False, lambda old, data: old - data),
    "rsub": (False, lambda old, data: data - old),
    "smin": (True, np.minimum),
    "smax": (True, np.maximum),
    "umin": (False, np.minimum),
    "umax": (False, np.maximum),
    "and": (False, np.bitwise_and),
    "or": (False, np.bitwise_or),
    "xor": (False, np.bitwise_xor),
    "inc": (
        False,
        lambda old, limit: np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1)),
    ),
    "dec": (
        False,
        lambda old, limit: np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1)),
    ),
    "csub": (False, _subtract_clamped),
    "sub_clamp": (False, _subtract_clamped),
    "cond_sub": (False, lambda old, data: np.where(old >= data, old - data, old)),
}
_FLOATS: dict[str, AtomicOperation] = {
    "pk_add_f16": AtomicOperation(1, np.uint32, _add_f16),
    "pk_add_bf16": AtomicOperation(1, np.uint32, _add_bf16),
}
for _word, _dtype, _count in (("f32", np.float32, 1), ("f64", np.float64, 2)):
    _FLOATS[f"add_{_word}"] = AtomicOperation(_count, _dtype, np.add)
    for _verb, _function in (("min", np.fmin), ("max", np.fmax)):
        for _num in ("", "_num"):
            _FLOATS[f"{_verb}{_num}_{_word}"] = AtomicOperation(_count, _dtype, _function)

_GLOBAL = re.compile(r"(\w+?)(_x2)?")
_LDS = re.compile(r"ds_(\w+?)_(?:rtn_)?([uibf])(32|64)")
_LDS_PACKED = re.compile(r"ds_(pk_add)_(?:rtn_)?(b?f16)")


def memory_operation(name: str) -> AtomicOperation | None:
    """Find an operation by the suffix of ``global_atomic_`` (in the older spelling: ``add_x2``,
    ``smin``)."""
    if name in _FLOATS:
        return _FLOATS[name]
    match = _GLOBAL.fullmatch(name)
    if not match:
        return None
    words = 2 if match[2] else 1
    if match[1] in ("cmpswap", "fcmpswap"):
        return _compare_and_swap(words)
    return _integers(match[1].removesuffix("_u32"), words)


def lds_operation(name: str) -> AtomicOperation | None:
    """Find an operation by the whole mnemonic (``ds_add_rtn_u32``)."""
    packed = _LDS_PACKED.fullmatch(name)
    if packed:
        return _FLOATS[f"{packed[1]}_{packed[2]}"]
    match = _LDS.fullmatch(name)
    if not match:
        return None
    verb, kind, bits = match[1], match[2], int(match[3])
    if verb in ("cmpst", "cmpstore"):
        return _compare_and_swap(bits // 32)
    if verb in ("wrxchg", "storexchg"):
        return _integers("swap", bits // 32)
    if kind == "f":
        return _FLOATS.get(f"{verb}_f{bits}")
    if verb in ("min", "max"):
        verb = ("s" if kind == "i" else "u") + verb
    return _integers(verb, bits // 32)


def _integers(verb: str, words: int) -> AtomicOperation | None:
    integer_operation = _INTEGERS.get(verb)
    if integer_operation is None:
        return None
    signed = (np.int32, np.int64)
    unsigned = (np.uint32, np.uint64)
    return AtomicOperation(
        words, (signed if integer_operation[0] else unsigned)[words - 1], integer_operation[1]
    )


def _compare_and_swap(words: int) -> AtomicOperation:
    return AtomicOperation(words, np.uint32, lambda _, data: data, compares=True)
