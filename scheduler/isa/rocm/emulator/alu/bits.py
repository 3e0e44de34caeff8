"""Moves, logic, shifts, fields and permutations of bits in the vector unit."""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.isa.rocm.emulator.alu.row import AluRow, Bits, BlockRow, Modifiers, Type

B16, U16, I16 = Type.B16, Type.U16, Type.I16
B32, U32, I32 = Type.B32, Type.U32, Type.I32
B64, U64, I64, MASK = Type.B64, Type.U64, Type.I64, Type.MASK
_31 = np.uint32(31)
_1 = np.uint32(1)
_MINUS = np.int32(-1)


def _field(value: Any, offset: Any, width: Any) -> Any:
    width = width & _31
    return (value >> (offset & _31)) & ((_1 << width) - _1)


def _signed_field(value: Any, offset: Any, width: Any) -> Any:
    width = width & _31
    found = _field(value, offset, width)
    sign = np.where(width == 0, np.uint32(0), _1 << ((width - _1) & _31))
    return (found ^ sign) - sign


def _leading(value: Any) -> Any:
    """Count the zeros above the highest set bit; -1 without any."""
    exponent = np.frexp(value.astype(np.float64))[1]
    return np.where(value == 0, _MINUS, (32 - exponent).astype(np.int32))


def _leading_signs(value: Any) -> Any:
    signed = value.view(np.int32)
    return _leading((signed ^ (signed >> np.int32(31))).view(np.uint32))


def _trailing(value: Any) -> Any:
    lowest = value & (~value + _1)
    exponent = np.frexp(lowest.astype(np.float64))[1]
    return np.where(value == 0, _MINUS, (exponent - 1).astype(np.int32))


def _reversed(value: Any) -> Any:
    for shift, mask in ((1, 0x5555_5555), (2, 0x3333_3333), (4, 0x0F0F_0F0F)):
        low, bits = np.uint32(shift), np.uint32(mask)
        value = ((value >> low) & bits) | ((value & bits) << low)
    return value.byteswap()


def _joined(high: Any, low: Any) -> Any:
    return (high.astype(np.uint64) << np.uint64(32)) | low


def _align_bits(high: Any, low: Any, shift: Any) -> Any:
    return (_joined(high, low) >> (shift & _31).astype(np.uint64)).astype(np.uint32)


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
        found = (joined >> shift.astype(np.uint64)).astype(np.uint32) & np.uint32(255)
        sign = (found & _1) * np.uint32(255)
        byte = np.where(chosen < 8, found, np.where(chosen < 12, sign, np.uint32(255)))
        result |= np.where(chosen == 12, np.uint32(0), byte) << at
    return result


def _shifts() -> tuple[AluRow, ...]:
    rows = []
    for bits, unsigned, signed in ((16, U16, I16), (32, U32, I32), (64, U64, I64)):
        low = np.uint32(bits - 1)
        amount = {16: np.uint16, 32: np.uint32, 64: np.uint64}[bits]
        by = U16 if bits == 16 else U32
        signed_amount = {16: np.int16, 32: np.int32, 64: np.int64}[bits]

        def left(shift: Any, value: Any, low: Any = low, amount: Any = amount) -> Any:
            return value << (shift & low).astype(amount)

        def right(shift: Any, value: Any, low: Any = low, amount: Any = amount) -> Any:
            return value >> (shift & low).astype(amount)

        rows += [
            AluRow(f"v_lshlrev_b{bits}", (unsigned,), (by, unsigned), left),
            AluRow(f"v_lshrrev_b{bits}", (unsigned,), (by, unsigned), right),
            AluRow(
                f"v_ashrrev_i{bits}",
                *((signed,), (by, signed)),
                lambda shift, value, low=low, amount=signed_amount: (
                    value >> (shift & low).astype(amount)
                ),
            ),
        ]
    return tuple(rows)


def _logic() -> tuple[AluRow, ...]:
    rows = []
    for bits, kind in ((16, B16), (32, B32)):
        rows += [
            AluRow(f"v_and_b{bits}", (kind,), (kind, kind), np.bitwise_and),
            AluRow(f"v_or_b{bits}", (kind,), (kind, kind), np.bitwise_or),
            AluRow(f"v_xor_b{bits}", (kind,), (kind, kind), np.bitwise_xor),
            AluRow(f"v_not_b{bits}", (kind,), (kind,), np.invert),
            AluRow(f"v_mov_b{bits}", (kind,), (kind,), lambda a: a),
            AluRow(
                f"v_cndmask_b{bits}",
                *((kind,), (kind, kind, MASK), lambda a, b, mask: np.where(mask, b, a)),
            ),
        ]
    return tuple(rows)


def _saturated_bytes(value: Any) -> Any:
    low = np.clip(value.astype(np.uint16).view(np.int16), 0, 255).astype(np.uint32)
    high = np.clip((value >> np.uint32(16)).astype(np.uint16).view(np.int16), 0, 255)
    return low | high.astype(np.uint32) << np.uint32(8)


ROWS: tuple[AluRow, ...] = (
    *_logic(),
    *_shifts(),
    AluRow("v_xnor_b32", (B32,), (B32, B32), lambda a, b: ~(a ^ b)),
    AluRow("v_mov_b64", (B64,), (B64,), lambda a: a),
    AluRow("v_accvgpr_read_b32", (B32,), (B32,), lambda a: a),
    AluRow("v_accvgpr_write_b32", (B32,), (B32,), lambda a: a),
    AluRow("v_accvgpr_mov_b32", (B32,), (B32,), lambda a: a),
    AluRow("v_bfe_u32", (U32,), (U32, U32, U32), _field),
    AluRow("v_bfe_i32", (U32,), (U32, U32, U32), _signed_field),
    AluRow("v_bfi_b32", (B32,), (B32, B32, B32), lambda mask, a, b: (mask & a) | (~mask & b)),
    AluRow("v_bfm_b32", (B32,), (U32, U32), lambda w, at: ((_1 << (w & _31)) - _1) << (at & _31)),
    AluRow("v_bfrev_b32", (B32,), (B32,), _reversed),
    AluRow("v_ffbh_u32", (I32,), (U32,), _leading),
    AluRow("v_ffbh_i32", (I32,), (U32,), _leading_signs),
    AluRow("v_ffbl_b32", (I32,), (U32,), _trailing),
    AluRow(
        "v_bcnt_u32_b32",
        *((U32,), (U32, U32)),
        lambda value, base: np.bitwise_count(value).astype(np.uint32) + base,
    ),
    AluRow("v_alignbit_b32", (B32,), (B32, B32, U32), _align_bits),
    AluRow(
        "v_alignbyte_b32",
        *((B32,), (B32, B32, U32)),
        lambda high, low, shift: _align_bits(high, low, (shift & np.uint32(3)) << np.uint32(3)),
    ),
    AluRow("v_perm_b32", (B32,), (B32, B32, B32), permute_bytes),
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
    AluRow("v_sat_pk_u8_i16", (B32,), (B32,), _saturated_bytes),
)


# gfx950's arbitrary functions of three bits, by truth table (CDNA4 ISA, V_BITOP3_B32).


def _apply_truth_table(a: Bits, b: Bits, c: Bits, truth: int) -> Bits:
    result = np.zeros(np.broadcast_shapes(a.shape, b.shape, c.shape), np.uint32)
    for case in range(8):
        if truth >> case & 1:
            chosen = [
                each if case >> place & 1 else ~each for each, place in ((a, 2), (b, 1), (c, 0))
            ]
            result |= chosen[0] & chosen[1] & chosen[2]
    return result


def _bitop_b32(a: Bits, b: Bits, c: Bits, *, modifiers: Modifiers) -> Bits:
    return _apply_truth_table(a, b, c, modifiers.get("bitop3", (0,))[0])


def _bitop_b16(a: Bits, b: Bits, c: Bits, old: Bits, *, modifiers: Modifiers) -> Bits:
    """Use the halves that ``op_sel`` selects; the destination's other half is unchanged."""
    select = (*modifiers.get("op_sel", ()), 0, 0, 0, 0)[:4]
    one, other, third = (
        each >> np.uint32(16 * place) for each, place in zip((a, b, c), select[:3], strict=True)
    )
    truth = modifiers.get("bitop3", (0,))[0]
    found = _apply_truth_table(one, other, third, truth) & np.uint32(0xFFFF)
    at = np.uint32(16 * select[3])
    result: Bits = (old & ~(np.uint32(0xFFFF) << at)) | (found << at)
    return result


BLOCK_ROWS = (
    BlockRow("v_bitop3_b32", 1, (1, 1, 1), _bitop_b32),
    BlockRow("v_bitop3_b16", 1, (1, 1, 1), _bitop_b16, reads_old=True),
)
