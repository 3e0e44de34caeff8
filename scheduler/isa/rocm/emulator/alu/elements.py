"""The elements in registers, packed from the lowest bit of the first register."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from scheduler.ir import encoding
from scheduler.ir.encoding import bfloat16_to_float32
from scheduler.isa.rocm.emulator.alu.rounding import to_bfloat16
from scheduler.isa.rocm.emulator.alu.row import Bits, Lanes

_NORMAL32 = 2.0**-126


@dataclass(frozen=True)
class Element:
    """``bits`` wide; ``decode`` converts codes (unsigned, in the low bits) to float64 or int64."""

    bits: int
    decode: Callable[[Lanes], Lanes]


def unpack_codes(block: Bits, bits: int) -> Lanes:
    """Return codes [waves, items, lanes] from registers [waves, registers, lanes]."""
    if bits == 32:
        return block
    waves, registers, lanes = block.shape
    if bits == 64:
        low, high = block[:, ::2].astype(np.uint64), block[:, 1::2].astype(np.uint64)
        return low | (high << np.uint64(32))
    if 32 % bits:  # codes straddle registers
        wide = np.concatenate([block, np.zeros_like(block[:, :1])], axis=1).astype(np.uint64)
        starts = np.arange(registers * 32 // bits) * bits
        first, shift = starts // 32, (starts % 32).astype(np.uint64)[:, None]
        pairs = wide[:, first] | (wide[:, first + 1] << np.uint64(32))
        straddling: Lanes = ((pairs >> shift) & np.uint64((1 << bits) - 1)).astype(np.uint32)
        return straddling
    per_word = 32 // bits
    shifts = (np.arange(per_word, dtype=np.uint32) * np.uint32(bits))[:, None]
    codes: Lanes = (block[:, :, None] >> shifts) & np.uint32((1 << bits) - 1)
    return codes.reshape(waves, registers * per_word, lanes)


def pack_codes(codes: Lanes, bits: int) -> Bits:
    """Return registers [waves, registers, lanes] from codes [waves, items, lanes]: the inverse of
    ``unpack_codes``."""
    waves, count, lanes = codes.shape
    if bits == 32:
        return codes.astype(np.uint32)
    if bits == 64:
        both = np.stack([codes & np.uint64(0xFFFFFFFF), codes >> np.uint64(32)], axis=2)
        return both.astype(np.uint32).reshape(waves, 2 * count, lanes)
    block = np.zeros((waves, count * bits // 32 + 1, lanes), np.uint64)
    for item in range(count):
        first, shift = divmod(item * bits, 32)
        placed = codes[:, item].astype(np.uint64) << np.uint64(shift)
        block[:, first] |= placed & np.uint64(0xFFFFFFFF)
        block[:, first + 1] |= placed >> np.uint64(32)
    return block[:, :-1].astype(np.uint32)


def _view_as(dtype: Any, codes: Any) -> Callable[[Lanes], Lanes]:
    def decode(values: Lanes) -> Lanes:
        result: Lanes = np.ascontiguousarray(values.astype(codes)).view(dtype).astype(np.float64)
        return result

    return decode


def _bfloat16(values: Lanes) -> Lanes:
    return bfloat16_to_float32(values.astype(np.uint16)).astype(np.float64)


def _table(table: Lanes) -> Callable[[Lanes], Lanes]:
    wide = table.astype(np.float64)

    def decode(values: Lanes) -> Lanes:
        result: Lanes = wide[values]
        return result

    return decode


def small_floats(exponent: int, fraction: int, bias: int) -> Lanes:
    """Return the numbers of a format without infinities and NaN, by code."""
    codes = np.arange(1 << (exponent + fraction))
    power, part = codes >> fraction, codes & ((1 << fraction) - 1)
    normal = power > 0
    significand = part / (1 << fraction) + normal
    magnitudes = significand * 2.0 ** (np.where(normal, power, 1) - bias)
    return np.concatenate([magnitudes, -magnitudes])


def _signed(bits: int) -> Callable[[Lanes], Lanes]:
    def decode(values: Lanes) -> Lanes:
        wide = values.astype(np.int64)
        result: Lanes = wide - ((wide >> (bits - 1)) << bits)
        return result

    return decode


def _cut_to_11_bits(values: Lanes) -> Lanes:
    """Truncate f32 to 10 bits of fraction (as gfx942 does: ROCm/rocm-libraries, pull request 9176);
    a NaN with only truncated bits stays NaN."""
    bits = values.astype(np.uint32)
    single = np.where(np.isnan(bits.view(np.float32)), bits, bits & np.uint32(0xFFFFE000))
    return single.astype(np.uint32).view(np.float32).astype(np.float64)


def flush_denormals(decode: Callable[[Lanes], Lanes], normal: float) -> Callable[[Lanes], Lanes]:
    """Return ``decode`` with denormals as zeros."""

    def decoded(values: Lanes) -> Lanes:
        plain = decode(values)
        return np.where(np.abs(plain) < normal, 0.0 * plain, plain)

    return decoded


FP8, BF8 = _table(encoding.E4M3FN.values), _table(encoding.E5M2.values)
FP8_FNUZ, BF8_FNUZ = _table(encoding.E4M3FNUZ.values), _table(encoding.E5M2FNUZ.values)
_F16, _UNSIGNED = _view_as(np.float16, np.uint16), lambda values: values.astype(np.int64)

#: By the names that instructions use; the 8-bit ones are the OCP's.
ELEMENTS: Mapping[str, Element] = {
    "f64": Element(64, _view_as(np.float64, np.uint64)),
    "f32": Element(32, _view_as(np.float32, np.uint32)),
    "xf32": Element(32, _cut_to_11_bits),
    "f16": Element(16, _F16),
    "bf16": Element(16, _bfloat16),
    "i32": Element(32, _signed(32)),
    "i8": Element(8, _signed(8)),
    "u8": Element(8, _UNSIGNED),
    "i4": Element(4, _signed(4)),
    "u4": Element(4, _UNSIGNED),
    "fp8": Element(8, FP8),
    "bf8": Element(8, BF8),
    "fp6": Element(6, _table(small_floats(2, 3, 1))),
    "bf6": Element(6, _table(small_floats(3, 2, 3))),
    "fp4": Element(4, _table(small_floats(2, 1, 1))),
}
#: As in gfx940 to gfx942.
FNUZ: Mapping[str, Element] = {"fp8": Element(8, FP8_FNUZ), "bf8": Element(8, BF8_FNUZ)}
#: As gfx90a's matrix instructions read them: without denormals.
FLUSHED: Mapping[str, Element] = {
    "f16": Element(16, flush_denormals(_F16, 2.0**-14)),
    "bf16": Element(16, flush_denormals(_bfloat16, _NORMAL32)),
}


def encode_values(values: Lanes, element: str) -> Lanes:
    """Return codes of the nearest f64, f32, f16, bf16, or of int64 modulo 2**32."""
    if element == "i32":
        return (values.astype(np.int64) & 0xFFFFFFFF).astype(np.uint32)
    if element == "f64":
        return np.ascontiguousarray(values, np.float64).view(np.uint64)
    if element == "f32":
        return values.astype(np.float32).view(np.uint32)
    if element == "f16":
        return values.astype(np.float16).view(np.uint16)
    return to_bfloat16(values).view(np.uint32) >> np.uint32(16)
