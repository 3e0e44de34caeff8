"""Moves, logic, shifts, fields and permutations of bits in the vector unit."""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.isa.rocm.emulator.alu.row import AluRow, Bits, BlockRow, Modifiers, Type, computes

B16, U16, I16 = Type.B16, Type.U16, Type.I16
B32, U32, I32 = Type.B32, Type.U32, Type.I32
B64, U64, I64, MASK = Type.B64, Type.U64, Type.I64, Type.MASK
_31 = np.uint32(31)
_1 = np.uint32(1)
_MINUS = np.int32(-1)

ROWS: list[AluRow] = []


@computes(ROWS, "v_bfe_u32", (U32,), (U32, U32, U32))
def _field(value: Any, offset: Any, width: Any) -> Any:
    width = width & _31
    return (value >> (offset & _31)) & ((_1 << width) - _1)


@computes(ROWS, "v_bfe_i32", (U32,), (U32, U32, U32))
def _signed_field(value: Any, offset: Any, width: Any) -> Any:
    width = width & _31
    field = _field(value, offset, width)
    sign = np.where(width == 0, np.uint32(0), _1 << ((width - _1) & _31))
    return (field ^ sign) - sign


@computes(ROWS, "v_ffbh_u32", (I32,), (U32,))
def _leading(value: Any) -> Any:
    """Count the zeros above the highest set bit; -1 without any."""
    exponent = np.frexp(value.astype(np.float64))[1]
    return np.where(value == 0, _MINUS, (32 - exponent).astype(np.int32))


@computes(ROWS, "v_ffbh_i32", (I32,), (U32,))
def _leading_signs(value: Any) -> Any:
    signed = value.view(np.int32)
    return _leading((signed ^ (signed >> np.int32(31))).view(np.uint32))


@computes(ROWS, "v_ffbl_b32", (I32,), (U32,))
def _trailing(value: Any) -> Any:
    lowest = value & (~value + _1)
    exponent = np.frexp(lowest.astype(np.float64))[1]
    return np.where(value == 0, _MINUS, (exponent - 1).astype(np.int32))


@computes(ROWS, "v_bfrev_b32", (B32,), (B32,))
def _reversed(value: Any) -> Any:
    for shift, mask in ((1, 0x5555_5555), (2, 0x3333_3333), (4, 0x0F0F_0F0F)):
        low, bits = np.uint32(shift), np.uint32(mask)
        value = ((value >> low) & bits) | ((value & bits) << low)
    return value.byteswap()


def _joined(high: Any, low: Any) -> Any:
    return (high.astype(np.uint64) << np.uint64(32)) | low


@computes(ROWS, "v_alignbit_b32", (B32,), (B32, B32, U32))
def _align_bits(high: Any, low: Any, shift: Any) -> Any:
    return (_joined(high, low) >> (shift & _31).astype(np.uint64)).astype(np.uint32)


@computes(ROWS, "v_perm_b32", (B32,), (B32, B32, B32))
def permute_bytes(high: Any, low: Any, selector: Any) -> Any:
    """v_perm_b32: each byte of the selector chooses one of eight bytes (0 to 3 of ``low``, 4 to 7
    of ``high``), 8 to 11 a sign (of the bytes 1, 3, 5, 7), 12 zeros, from 13 ones."""
    joined = _joined(high, low)
    result = np.zeros(np.broadcast_shapes(joined.shape, selector.shape), np.uint32)
    for place in range(4):
        at = np.uint32(8 * place)
        chosen = (selector >> at) & np.uint32(255)
        signs = (chosen - np.uint32(8)) * np.uint32(16) + np.uint32(15)
        shift = np.where(chosen < 8, chosen << np.uint32(3), signs & np.uint32(63))
        selected_bytes = (joined >> shift.astype(np.uint64)).astype(np.uint32) & np.uint32(255)
        sign = (selected_bytes & _1) * np.uint32(255)
        byte = np.where(chosen < 8, selected_bytes, np.where(chosen < 12, sign, np.uint32(255)))
        result |= np.where(chosen == 12, np.uint32(0), byte) << at
    return result


def _amount(shift: Any, value: Any) -> Any:
    """Return the low bits of a shift amount, as a number of the value's type."""
    return (shift & shift.dtype.type(8 * value.itemsize - 1)).astype(value.dtype)


def _shift_left(shift: Any, value: Any) -> Any:
    return value << _amount(shift, value)


def _shift_right(shift: Any, value: Any) -> Any:
    return value >> _amount(shift, value)


def _copy(value: Any) -> Any:
    return value


@computes(ROWS, "v_sat_pk_u8_i16", (B32,), (B32,))
def _saturated_bytes(value: Any) -> Any:
    low = np.clip(value.astype(np.uint16).view(np.int16), 0, 255).astype(np.uint32)
    high = np.clip((value >> np.uint32(16)).astype(np.uint16).view(np.int16), 0, 255)
    return low | high.astype(np.uint32) << np.uint32(8)


for _bits, _kind in ((16, B16), (32, B32)):
    ROWS += [
        AluRow(f"v_and_b{_bits}", (_kind,), (_kind, _kind), np.bitwise_and),
        AluRow(f"v_or_b{_bits}", (_kind,), (_kind, _kind), np.bitwise_or),
        AluRow(f"v_xor_b{_bits}", (_kind,), (_kind, _kind), np.bitwise_xor),
        AluRow(f"v_not_b{_bits}", (_kind,), (_kind,), np.invert),
        AluRow(f"v_mov_b{_bits}", (_kind,), (_kind,), _copy),
        AluRow(
            f"v_cndmask_b{_bits}",
            *((_kind,), (_kind, _kind, MASK), lambda a, b, mask: np.where(mask, b, a)),
        ),
    ]
for _bits, _unsigned, _signed, _by in (
    (16, U16, I16, U16),
    (32, U32, I32, U32),
    (64, U64, I64, U32),
):
    ROWS += [
        AluRow(f"v_lshlrev_b{_bits}", (_unsigned,), (_by, _unsigned), _shift_left),
        AluRow(f"v_lshrrev_b{_bits}", (_unsigned,), (_by, _unsigned), _shift_right),
        AluRow(f"v_ashrrev_i{_bits}", (_signed,), (_by, _signed), _shift_right),
    ]
ROWS += [
    AluRow("v_xnor_b32", (B32,), (B32, B32), lambda a, b: ~(a ^ b)),
    AluRow("v_mov_b64", (B64,), (B64,), _copy),
    AluRow("v_accvgpr_read_b32", (B32,), (B32,), _copy),
    AluRow("v_accvgpr_write_b32", (B32,), (B32,), _copy),
    AluRow("v_accvgpr_mov_b32", (B32,), (B32,), _copy),
    AluRow("v_bfi_b32", (B32,), (B32, B32, B32), lambda mask, a, b: (mask & a) | (~mask & b)),
    AluRow("v_bfm_b32", (B32,), (U32, U32), lambda w, at: ((_1 << (w & _31)) - _1) << (at & _31)),
    AluRow(
        "v_bcnt_u32_b32",
        *((U32,), (U32, U32)),
        lambda value, base: np.bitwise_count(value).astype(np.uint32) + base,
    ),
    AluRow(
        "v_alignbyte_b32",
        *((B32,), (B32, B32, U32)),
        lambda high, low, shift: _align_bits(high, low, (shift & np.uint32(3)) << np.uint32(3)),
    ),
    AluRow("v_and_or_b32", (B32,), (B32, B32, B32), lambda a, b, c: (a & b) | c),
    AluRow("v_or3_b32", (B32,), (B32, B32, B32), lambda a, b, c: a | b | c),
    AluRow("v_xor3_b32", (B32,), (B32, B32, B32), lambda a, b, c: a ^ b ^ c),
    AluRow("v_xad_u32", (U32,), (U32, U32, U32), lambda a, b, c: (a ^ b) + c),
    AluRow("v_lshl_or_b32", (U32,), (U32, U32, U32), lambda a, b, c: (a << (b & _31)) | c),
    AluRow("v_lshl_add_u32", (U32,), (U32, U32, U32), lambda a, b, c: (a << (b & _31)) + c),
    AluRow("v_add_lshl_u32", (U32,), (U32, U32, U32), lambda a, b, c: (a + b) << (c & _31)),
    AluRow(
        "v_lshl_add_u64",
        *((U64,), (U64, U32, U64)),
        lambda a, b, c: (a << (b & np.uint32(7)).astype(np.uint64)) + c,
    ),
]


# gfx950's arbitrary functions of three bits, by truth table (CDNA4 ISA, V_BITOP3_B32).


def _bitop(a: Bits, b: Bits, c: Bits, *, modifiers: Modifiers) -> Bits:
    truth = modifiers.get("bitop3", (0,))[0]
    result = np.zeros(np.broadcast_shapes(a.shape, b.shape, c.shape), np.uint32)
    for case in range(8):
        if truth >> case & 1:
            chosen = [
                source if case >> place & 1 else ~source
                for source, place in ((a, 2), (b, 1), (c, 0))
            ]
            result |= chosen[0] & chosen[1] & chosen[2]
    return result


def _bitop_b16(a: Bits, b: Bits, c: Bits, old: Bits, *, modifiers: Modifiers) -> Bits:
    """Use the halves that ``op_sel`` selects; the destination's other half is unchanged."""
    select = (*modifiers.get("op_sel", ()), 0, 0, 0, 0)[:4]
    halves = [
        source >> np.uint32(16 * half) for source, half in zip((a, b, c), select[:3], strict=True)
    ]
    half_word = _bitop(*halves, modifiers=modifiers) & np.uint32(0xFFFF)
    at = np.uint32(16 * select[3])
    result: Bits = (old & ~(np.uint32(0xFFFF) << at)) | (half_word << at)
    return result


BLOCK_ROWS = (
    BlockRow("v_bitop3_b32", 1, (1, 1, 1), _bitop),
    BlockRow("v_bitop3_b16", 1, (1, 1, 1), _bitop_b16, reads_old=True),
)
