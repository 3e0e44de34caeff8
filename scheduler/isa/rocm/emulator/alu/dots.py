"""Dot products of two, four or eight elements of a register, plus an accumulator.

Float products are added one at a time, each sum rounded (CDNA4 ISA, V_DOT2_F32_F16), or as in
``matrix.py`` if the documents do not say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from scheduler.isa.rocm.emulator.alu.elements import ELEMENTS, encode_values, unpack_codes
from scheduler.isa.rocm.emulator.alu.row import Bits, BlockRow, Lanes, Modifiers
from scheduler.targets.amd import Feature

# Integers: elements per register, and the types' widths.
_INTEGERS = ((2, 16), (4, 8), (8, 4))


def _select_codes(block: Bits, bits: int, number: int, modifiers: Modifiers) -> Lanes:
    """Return the codes of a source, its halves selected by ``op_sel`` and ``op_sel_hi``."""
    codes = unpack_codes(block, bits)
    if bits != 16:
        return codes
    low = (*modifiers.get("op_sel", ()), 0, 0, 0)[number]
    high = (*modifiers.get("op_sel_hi", ()), 1, 1, 1)[number]
    return codes[:, [low, high]]


def _signs(modifiers: Modifiers, number: int) -> Lanes:
    low = (*modifiers.get("neg_lo", ()), 0, 0, 0)[number]
    high = (*modifiers.get("neg_hi", ()), 0, 0, 0)[number]
    return np.array([-1.0 if low else 1.0, -1.0 if high else 1.0])[:, None]


def _floats(element: str) -> Callable[..., Bits]:
    decode = ELEMENTS[element].decode

    def compute(a: Bits, b: Bits, c: Bits, *, modifiers: Modifiers) -> Bits:
        left = decode(_select_codes(a, 16, 0, modifiers)) * _signs(modifiers, 0)
        right = decode(_select_codes(b, 16, 1, modifiers)) * _signs(modifiers, 1)
        total = c.view(np.float32)[:, 0] * _signs(modifiers, 2)[0].astype(np.float32)
        for number in range(2):
            total = (total + left[:, number] * right[:, number]).astype(np.float32)
        return encode_values(total, "f32")[:, None]

    return compute


def _halves(element: str) -> Callable[..., Bits]:
    """Compute 16-bit results in the half that ``op_sel`` selects; the other half is unchanged."""
    decode = ELEMENTS[element].decode

    def compute(a: Bits, b: Bits, c: Bits, old: Bits, *, modifiers: Modifiers) -> Bits:
        select = (*modifiers.get("op_sel", ()), 0, 0, 0, 0)[:4]
        left, right = decode(unpack_codes(a, 16)), decode(unpack_codes(b, 16))
        total = (left * right).sum(axis=1) + decode(unpack_codes(c, 16))[:, select[2]]
        at = np.uint32(16 * select[3])
        kept = old[:, 0] & ~(np.uint32(0xFFFF) << at)
        result: Bits = kept | (encode_values(total, element).astype(np.uint32) << at)
        return result[:, None]

    return compute


def _integers(bits: int, signed: tuple[bool, bool] | None) -> Callable[..., Bits]:
    """``signed``: whether A and B are signed; None: as ``neg_lo`` says."""

    def compute(a: Bits, b: Bits, c: Bits, *, modifiers: Modifiers) -> Bits:
        flags = signed or tuple(map(bool, (*modifiers.get("neg_lo", ()), 0, 0)[:2]))
        decoded = []
        for number, (block, flag) in enumerate(zip((a, b), flags, strict=True)):
            codes = _select_codes(block, bits, number, modifiers).astype(np.int64)
            decoded.append(codes - ((codes >> (bits - 1)) << bits) if flag else codes)
        total = (decoded[0] * decoded[1]).sum(axis=1) + c[:, 0].astype(np.int64)
        result: Bits = (total & 0xFFFFFFFF).astype(np.uint32)
        return result[:, None]

    return compute


def _bytes(left: str, right: str) -> Callable[..., Bits]:
    """Four 8-bit floats."""
    decode_left, decode_right = ELEMENTS[left].decode, ELEMENTS[right].decode

    def compute(a: Bits, b: Bits, c: Bits, *, modifiers: Modifiers) -> Bits:
        del modifiers
        products = decode_left(unpack_codes(a, 8)) * decode_right(unpack_codes(b, 8))
        total = products.sum(axis=1) + c.view(np.float32)[:, 0]
        return encode_values(total, "f32")[:, None]

    return compute


def _rows() -> Iterator[BlockRow]:
    for element in ("f16", "bf16"):
        compute = _floats(element)
        yield BlockRow(f"v_dot2_f32_{element}", 1, (1, 1, 1), compute)
        yield BlockRow(f"v_dot2c_f32_{element}", 1, (1, 1), compute, reads_old=True)
        name = f"v_dot2_{element}_{element}"
        yield BlockRow(name, 1, (1, 1, 1), _halves(element), reads_old=True)
    for count, bits in _INTEGERS:
        signed = _integers(bits, (True, True))
        yield BlockRow(f"v_dot{count}_i32_i{bits}", 1, (1, 1, 1), signed)
        yield BlockRow(f"v_dot{count}c_i32_i{bits}", 1, (1, 1), signed, reads_old=True)
        yield BlockRow(f"v_dot{count}_u32_u{bits}", 1, (1, 1, 1), _integers(bits, (False, False)))
        if bits != 16:
            yield BlockRow(f"v_dot{count}_i32_iu{bits}", 1, (1, 1, 1), _integers(bits, None))
    for a in ("fp8", "bf8"):
        for b in ("fp8", "bf8"):
            name = f"v_dot4_f32_{a}_{b}"
            yield BlockRow(name, 1, (1, 1, 1), _bytes(a, b), needs=Feature.RDNA4_FLOAT8)


BLOCK_ROWS = tuple(_rows())
