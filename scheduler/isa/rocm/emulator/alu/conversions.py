"""Conversions between f16, bf16, f32, f64 and integers, and packing of two results.

Values beyond an integer's range saturate, NaN becomes 0. Floats of 8 bits and less are in
``scaled.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from scheduler.isa.rocm.emulator.alu.rounding import bfloat16_bits, to_bfloat16, towards_zero16
from scheduler.isa.rocm.emulator.alu.row import AluRow, Bits, Lanes, Type, computes

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


def pack_halves(low: Lanes, high: Lanes) -> Bits:
    """Pack two arrays of 16 bits into registers."""
    low, high = np.broadcast_arrays(low, high)
    lower = np.ascontiguousarray(low).view(np.uint16).astype(np.uint32)
    upper = np.ascontiguousarray(high).view(np.uint16).astype(np.uint32)
    return lower | (upper << np.uint32(16))


def _packed(convert: Callable[[Lanes], Lanes]) -> Callable[[Lanes, Lanes], Bits]:
    return lambda a, b: pack_halves(convert(a), convert(b))


def _insert_byte(value: Lanes, place: Lanes, old: Lanes) -> Bits:
    """Round a float to the nearest byte and insert it into a register."""
    limited = np.rint(np.clip(np.nan_to_num(value), 0.0, 255.0)).astype(np.uint32)
    shift = (place & np.uint32(3)) * np.uint32(8)
    kept = old & ~(np.uint32(0xFF) << shift)
    return np.asarray(kept | (limited << shift), dtype=np.uint32)


def _stochastic(dropped: int, result: Callable[[Lanes], Lanes]) -> Callable[[Lanes, Lanes], Lanes]:
    """Stochastic rounding: add a random number below the last digit that is kept."""

    def compute(a: Lanes, random: Lanes) -> Lanes:
        bits = np.ascontiguousarray(a).view(np.uint32)
        noise = random >> np.uint32(32 - dropped)
        moved = ((bits + noise) >> np.uint32(dropped)) << np.uint32(dropped)
        return result(np.where(np.isfinite(a), moved, bits).astype(np.uint32).view(np.float32))

    return compute


def _rows() -> Iterator[AluRow]:
    """Yield the conversions between the types of NumPy."""
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
    yield AluRow("v_cvt_i32_i16", (Type.I32,), (Type.I16,), to_type(np.int32))
    yield AluRow("v_cvt_u32_u16", (Type.U32,), (Type.U16,), to_type(np.uint32))
    for number in range(4):

        def byte(a: Lanes, number: int = number) -> Lanes:
            result: Lanes = ((a >> np.uint32(8 * number)) & np.uint32(0xFF)).astype(np.float32)
            return result

        yield AluRow(f"v_cvt_f32_ubyte{number}", (f32,), (b32,), byte)
    for word, least, most in (("i8", -128, 127), ("u8", 0, 255)):

        def shift_bytes(
            a: Lanes, b: Lanes, by: Lanes, least: int = least, most: int = most
        ) -> Lanes:
            """Shift two integers right, saturate them to a byte's range, and pack them."""
            shift = (by & np.uint32(31)).astype(np.int32)
            low, high = (np.clip(each >> shift, least, most) & 0xFF for each in (a, b))
            return np.asarray(low | (high << 8)).astype(np.uint16)

        sources = (Type.I32, Type.I32, Type.U32)
        yield AluRow(f"v_ashr_pk_{word}_i32", (Type.B16,), sources, shift_bytes)


def _packed_rows() -> Iterator[AluRow]:
    """Yield the conversions to two integers of 16 bits."""
    f16, f32, b32 = Type.F16, Type.F32, Type.B32
    for kind, wide, least, most in (
        (Type.I16, Type.I32, -1.0, 32767.0),
        (Type.U16, Type.U32, 0.0, 65535.0),
    ):

        def normalized(a: Lanes, least: float = least, most: float = most) -> Lanes:
            """Map [-1, 1] or [0, 1] to the whole range, rounding to nearest."""
            return np.rint(np.clip(a, least, 1.0) * most)

        def clamped(a: Lanes, limits: Any = _LIMITS[kind]) -> Lanes:
            return np.clip(a.astype(np.int64), limits.min, limits.max).astype(limits.dtype)

        to_normalized = to_integer(kind, normalized)
        yield AluRow(f"v_cvt_norm_{kind}_f16", (kind,), (f16,), to_normalized)
        for name, source, convert in (
            (f"pknorm_{kind}_f16", f16, to_normalized),
            (f"pknorm_{kind}_f32", f32, to_normalized),
            (f"pk_{kind}_f32", f32, to_integer(kind)),
            (f"pk_{kind}_{wide}", wide, clamped),
        ):
            yield AluRow(f"v_cvt_{name}", (b32,), (source, source), _packed(convert))


_F16, _F32, _B32 = Type.F16, Type.F32, Type.B32
ROWS = [
    *_rows(),
    *_packed_rows(),
    AluRow("v_cvt_flr_i32_f32", (Type.I32,), (_F32,), to_integer(Type.I32, np.floor)),
    AluRow(
        "v_cvt_rpi_i32_f32",
        *((Type.I32,), (_F32,), to_integer(Type.I32, lambda a: np.floor(a + 0.5))),
    ),
    AluRow("v_cvt_pkrtz_f16_f32", (_B32,), (_F32, _F32), _packed(towards_zero16)),
    AluRow("v_cvt_pk_f16_f32", (_B32,), (_F32, _F32), _packed(to_type(np.float16))),
    AluRow("v_cvt_pk_bf16_f32", (_B32,), (_F32, _F32), _packed(bfloat16_bits)),
    AluRow("v_cvt_bf16_f32", (Type.BF16,), (_F32,), to_bfloat16),
    AluRow("v_pack_b32_f16", (_B32,), (_F16, _F16), pack_halves),
    AluRow("v_cvt_pk_u8_f32", (_B32,), (_F32, _B32, _B32), _insert_byte),
    AluRow("v_cvt_pkaccum_u8_f32", (_B32,), (_F32, _B32, _B32), _insert_byte),
    AluRow("v_cvt_sr_f16_f32", (_F16,), (_F32, _B32), _stochastic(13, to_type(np.float16))),
    AluRow("v_cvt_sr_bf16_f32", (Type.BF16,), (_F32, _B32), _stochastic(16, lambda a: a)),
]


@computes(ROWS, "v_cvt_off_f32_i4", (_F32,), (_B32,))
def _offset(a: Lanes) -> Lanes:
    """Convert a signed 4-bit integer to sixteenths."""
    low = (a & np.uint32(15)).astype(np.int32)
    result: Lanes = (np.where(low > 7, low - 16, low) / np.float32(16)).astype(np.float32)
    return result
