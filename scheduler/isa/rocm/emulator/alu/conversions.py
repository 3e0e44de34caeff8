"""Conversions between f16, bf16, f32, f64 and integers, and packing of two results.

Values beyond an integer's range saturate, NaN becomes 0. Floats of 8 bits and less are in
``scaled.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from scheduler.isa.rocm.emulator.alu.rounding import bfloat16_bits, to_bfloat16, towards_zero16
from scheduler.isa.rocm.emulator.alu.row import AluRow, Bits, Lanes, Type

_LIMITS: dict[Type, Any] = {
    Type.I16: np.iinfo(np.int16),
    Type.U16: np.iinfo(np.uint16),
    Type.I32: np.iinfo(np.int32),
    Type.U32: np.iinfo(np.uint32),
}


def to_integer(kind: Type, rounding: Callable[[Lanes], Lanes] = np.trunc) -> Callable[..., Lanes]:
    """Convert floats to integers of a type."""
    limits = _LIMITS[kind]

    def compute(a: Lanes) -> Lanes:
        rounded = np.clip(rounding(a.astype(np.float64)), limits.min, limits.max)
        result: Lanes = np.where(np.isnan(a), 0, rounded).astype(np.int64).astype(limits.dtype)
        return result

    return compute


def to_type(dtype: type) -> Callable[[Lanes], Lanes]:
    """Convert to the nearest values of a NumPy type."""

    def compute(a: Lanes) -> Lanes:
        result: Lanes = a.astype(dtype)
        return result

    return compute


def _byte(number: int) -> Callable[[Lanes], Lanes]:
    return lambda a: ((a >> np.uint32(8 * number)) & np.uint32(0xFF)).astype(np.float32)


def pack_halves(low: Lanes, high: Lanes) -> Bits:
    """Pack two arrays of 16 bits into registers."""
    low, high = np.broadcast_arrays(low, high)
    lower = np.ascontiguousarray(low).view(np.uint16).astype(np.uint32)
    upper = np.ascontiguousarray(high).view(np.uint16).astype(np.uint32)
    return lower | (upper << np.uint32(16))


def _normalized(kind: Type) -> Callable[[Lanes], Lanes]:
    """Map [-1, 1] or [0, 1] to the whole range of a 16-bit integer, rounding to nearest."""
    signed = kind is Type.I16
    factor = 32767.0 if signed else 65535.0
    least = -1.0 if signed else 0.0
    return to_integer(kind, lambda a: np.rint(np.clip(a, least, 1.0) * factor))


def _packed(convert: Callable[[Lanes], Lanes]) -> Callable[[Lanes, Lanes], Bits]:
    return lambda a, b: pack_halves(convert(a), convert(b))


def _clamped(kind: Type) -> Callable[[Lanes], Lanes]:
    limits = _LIMITS[kind]

    def compute(a: Lanes) -> Lanes:
        result: Lanes = np.clip(a.astype(np.int64), limits.min, limits.max).astype(limits.dtype)
        return result

    return compute


def _insert_byte(value: Lanes, place: Lanes, old: Lanes) -> Bits:
    """Round a float to the nearest byte and insert it into a register."""
    limited = np.rint(np.clip(np.nan_to_num(value), 0.0, 255.0)).astype(np.uint32)
    shift = (place & np.uint32(3)) * np.uint32(8)
    kept = old & ~(np.uint32(0xFF) << shift)
    return np.asarray(kept | (limited << shift), dtype=np.uint32)


def _shifted_bytes(least: int, most: int) -> Callable[[Lanes, Lanes, Lanes], Lanes]:
    """Shift two integers right, saturate them to a byte's range, and pack them."""

    def compute(a: Lanes, b: Lanes, shift: Lanes) -> Lanes:
        by = (shift & np.uint32(31)).astype(np.int32)
        low, high = (np.clip(each >> by, least, most) & 0xFF for each in (a, b))
        return np.asarray(low | (high << 8)).astype(np.uint16)

    return compute


def _stochastic(dropped: int, result: Callable[[Lanes], Lanes]) -> Callable[[Lanes, Lanes], Lanes]:
    """Stochastic rounding: add a random number below the last digit that is kept."""

    def compute(a: Lanes, random: Lanes) -> Lanes:
        bits = np.ascontiguousarray(a).view(np.uint32)
        noise = random >> np.uint32(32 - dropped)
        moved = ((bits + noise) >> np.uint32(dropped)) << np.uint32(dropped)
        return result(np.where(np.isfinite(a), moved, bits).astype(np.uint32).view(np.float32))

    return compute


def _offset(a: Lanes) -> Lanes:
    """Convert a signed 4-bit integer to sixteenths."""
    low = (a & np.uint32(15)).astype(np.int32)
    result: Lanes = (np.where(low > 7, low - 16, low) / np.float32(16)).astype(np.float32)
    return result


def _rows() -> Iterator[AluRow]:
    f16, f32, f64, b32 = Type.F16, Type.F32, Type.F64, Type.B32
    numpy_types = {f16: np.float16, f32: np.float32, f64: np.float64}
    for result, source in (
        *((f32, each) for each in (f16, f64, Type.I32, Type.U32, Type.BF16)),
        *((f16, each) for each in (f32, Type.U16, Type.I16)),
        *((f64, each) for each in (f32, Type.I32, Type.U32)),
    ):
        yield AluRow(f"v_cvt_{result}_{source}", (result,), (source,), to_type(numpy_types[result]))
    for result, source in (
        *((each, number) for each in (Type.I32, Type.U32) for number in (f32, f64)),
        *((each, f16) for each in (Type.I16, Type.U16)),
    ):
        yield AluRow(f"v_cvt_{result}_{source}", (result,), (source,), to_integer(result))
    for number in range(4):
        yield AluRow(f"v_cvt_f32_ubyte{number}", (f32,), (b32,), _byte(number))
    down, nearest = to_integer(Type.I32, np.floor), lambda a: np.floor(a + 0.5)
    yield AluRow("v_cvt_flr_i32_f32", (Type.I32,), (f32,), down)
    yield AluRow("v_cvt_rpi_i32_f32", (Type.I32,), (f32,), to_integer(Type.I32, nearest))
    yield AluRow("v_cvt_off_f32_i4", (f32,), (b32,), _offset)
    yield AluRow("v_cvt_i32_i16", (Type.I32,), (Type.I16,), to_type(np.int32))
    yield AluRow("v_cvt_u32_u16", (Type.U32,), (Type.U16,), to_type(np.uint32))
    for kind in (Type.I16, Type.U16):
        normalized = _normalized(kind)
        yield AluRow(f"v_cvt_norm_{kind}_f16", (kind,), (f16,), normalized)
        for source in (f16, f32):
            yield AluRow(
                f"v_cvt_pknorm_{kind}_{source}", (b32,), (source, source), _packed(normalized)
            )
        yield AluRow(f"v_cvt_pk_{kind}_f32", (b32,), (f32, f32), _packed(to_integer(kind)))
        wide = Type.I32 if kind is Type.I16 else Type.U32
        yield AluRow(f"v_cvt_pk_{kind}_{wide}", (b32,), (wide, wide), _packed(_clamped(kind)))
    yield AluRow("v_cvt_pkrtz_f16_f32", (b32,), (f32, f32), _packed(towards_zero16))
    yield AluRow("v_cvt_pk_f16_f32", (b32,), (f32, f32), _packed(to_type(np.float16)))
    yield AluRow("v_cvt_pk_bf16_f32", (b32,), (f32, f32), _packed(bfloat16_bits))
    yield AluRow("v_cvt_bf16_f32", (Type.BF16,), (f32,), to_bfloat16)
    yield AluRow("v_pack_b32_f16", (b32,), (f16, f16), pack_halves)
    yield AluRow("v_cvt_pk_u8_f32", (b32,), (f32, b32, b32), _insert_byte)
    yield AluRow("v_cvt_pkaccum_u8_f32", (b32,), (f32, b32, b32), _insert_byte)
    for name, limits in (("i8", (-128, 127)), ("u8", (0, 255))):
        yield AluRow(
            f"v_ashr_pk_{name}_i32",
            (Type.B16,),
            (Type.I32, Type.I32, Type.U32),
            _shifted_bytes(*limits),
        )
    yield AluRow("v_cvt_sr_f16_f32", (f16,), (f32, b32), _stochastic(13, to_type(np.float16)))
    yield AluRow("v_cvt_sr_bf16_f32", (Type.BF16,), (f32, b32), _stochastic(16, lambda a: a))


ROWS = tuple(_rows())
