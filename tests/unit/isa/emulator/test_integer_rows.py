"""Rows of integers and bits equal Python's integers, on edges and at random."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from scheduler.isa.rocm.emulator.alu import bits, integer_compares, integers
from scheduler.isa.rocm.emulator.alu.row import AluRow, Type
from scheduler.isa.rocm.emulator.constants import bit_width
from scheduler.isa.rocm.emulator.sources import DTYPES

ROWS = {row.name: row for row in (*bits.ROWS, *integers.ROWS, *integer_compares.ROWS)}
EDGES = (0, 1, 2, 7, 31, 32, 33, 63, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x10000)
EDGES += (0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 0x5555_AAAA, 0x0102_0304, 0xFF_FFFF, 0x80_0000)
WIDE = (*EDGES, 0x7FFF_FFFF_FFFF_FFFF, 0x8000_0000_0000_0000, 0xFFFF_FFFF_FFFF_FFFF)
M16, M32, M64 = 0xFFFF, 0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF


def signed(value: int, bits_: int) -> int:
    value &= (1 << bits_) - 1
    return value - ((value >> (bits_ - 1)) << bits_)


def s24(value: int) -> int:
    return signed(value, 24)


def u24(value: int) -> int:
    return value & 0xFF_FFFF


def perm(high: int, low: int, selector: int) -> int:
    """As the ISA reference has V_PERM_B32, byte by byte."""
    source = (high << 32 | low).to_bytes(8, "little")
    result = 0
    for place in range(4):
        choice = selector >> 8 * place & 255
        if choice >= 13:
            byte = 255
        elif choice == 12:
            byte = 0
        elif choice >= 8:
            byte = 255 if source[2 * (choice - 8) + 1] & 0x80 else 0
        else:
            byte = source[choice]
        result |= byte << 8 * place
    return result


def field(value: int, offset: int, count: int) -> int:
    return value >> (offset & 31) & ((1 << (count & 31)) - 1)


def signed_field(value: int, offset: int, count: int) -> int:
    return signed(field(value, offset, count), count & 31) if count & 31 else 0


def leading(value: int) -> int:
    return 32 - value.bit_length() if value else -1


def leading_signs(value: int) -> int:
    return leading(value ^ M32 if value >> 31 else value)


def trailing(value: int) -> int:
    return (value & -value).bit_length() - 1


#: What each row gives, of its sources as their types have them; masks (carries) as booleans.
MEANT: dict[str, Callable[..., object]] = {
    "v_add_co_u32": lambda a, b: (a + b, a + b > M32),
    "v_sub_co_u32": lambda a, b: (a - b, b > a),
    "v_subrev_co_u32": lambda a, b: (b - a, a > b),
    "v_addc_co_u32": lambda a, b, c: (a + b + c, a + b + c > M32),
    "v_subb_co_u32": lambda a, b, c: (a - b - c, b + c > a),
    "v_subbrev_co_u32": lambda a, b, c: (b - a - c, a + c > b),
    "v_add_u32": lambda a, b: a + b,
    "v_subrev_u32": lambda a, b: b - a,
    "v_sub_u16": lambda a, b: a - b,
    "v_add3_u32": lambda a, b, c: a + b + c,
    "v_mul_lo_u32": lambda a, b: a * b,
    "v_mul_hi_u32": lambda a, b: a * b >> 32,
    "v_mul_hi_i32": lambda a, b: a * b >> 32,
    "v_mul_u32_u24": lambda a, b: u24(a) * u24(b),
    "v_mul_hi_u32_u24": lambda a, b: u24(a) * u24(b) >> 32,
    "v_mul_i32_i24": lambda a, b: s24(a) * s24(b),
    "v_mul_hi_i32_i24": lambda a, b: s24(a) * s24(b) >> 32,
    "v_mad_u32_u24": lambda a, b, c: u24(a) * u24(b) + c,
    "v_mad_i32_i24": lambda a, b, c: s24(a) * s24(b) + c,
    "v_mad_u32_u16": lambda a, b, c: a * b + c,
    "v_mad_i32_i16": lambda a, b, c: a * b + c,
    "v_mad_u64_u32": lambda a, b, c: (a * b + c, a * b + c > M64),
    "v_mad_i64_i32": lambda a, b, c: (a * b + c, not -(1 << 63) <= a * b + c < 1 << 63),
    "v_min3_i32": min,
    "v_max3_u32": max,
    "v_med3_i32": lambda a, b, c: sorted((a, b, c))[1],
    "v_sad_u32": lambda a, b, c: abs(a - b) + c,
    "v_sad_u8": lambda a, b, c: (
        sum(abs((a >> s & 255) - (b >> s & 255)) for s in (0, 8, 16, 24)) + c
    ),
    "v_lshlrev_b32": lambda a, b: b << (a & 31),
    "v_lshrrev_b32": lambda a, b: b >> (a & 31),
    "v_ashrrev_i32": lambda a, b: b >> (a & 31),
    "v_lshlrev_b64": lambda a, b: b << (a & 63),
    "v_lshrrev_b64": lambda a, b: b >> (a & 63),
    "v_ashrrev_i64": lambda a, b: b >> (a & 63),
    "v_lshlrev_b16": lambda a, b: b << (a & 15),
    "v_ashrrev_i16": lambda a, b: b >> (a & 15),
    "v_lshl_add_u64": lambda a, b, c: (a << (b & 7)) + c,
    "v_lshl_add_u32": lambda a, b, c: (a << (b & 31)) + c,
    "v_lshl_or_b32": lambda a, b, c: a << (b & 31) | c,
    "v_add_lshl_u32": lambda a, b, c: (a + b) << (c & 31),
    "v_xad_u32": lambda a, b, c: (a ^ b) + c,
    "v_and_or_b32": lambda a, b, c: a & b | c,
    "v_or3_b32": lambda a, b, c: a | b | c,
    "v_xor3_b32": lambda a, b, c: a ^ b ^ c,
    "v_not_b32": lambda a: ~a,
    "v_xnor_b32": lambda a, b: ~(a ^ b),
    "v_bfe_u32": field,
    "v_bfe_i32": signed_field,
    "v_bfi_b32": lambda a, b, c: a & b | ~a & c,
    "v_bfm_b32": lambda a, b: ((1 << (a & 31)) - 1) << (b & 31),
    "v_bfrev_b32": lambda a: int(f"{a:032b}"[::-1], 2),
    "v_ffbh_u32": leading,
    "v_ffbh_i32": leading_signs,
    "v_ffbl_b32": trailing,
    "v_bcnt_u32_b32": lambda a, b: a.bit_count() + b,
    "v_alignbit_b32": lambda a, b, c: (a << 32 | b) >> (c & 31),
    "v_alignbyte_b32": lambda a, b, c: (a << 32 | b) >> 8 * (c & 3),
    "v_perm_b32": perm,
    "v_cmp_lt_i32": lambda a, b: a < b,
    "v_cmp_ge_u32": lambda a, b: a >= b,
    "v_cmp_gt_i64": lambda a, b: a > b,
    "v_cmp_ne_u64": lambda a, b: a != b,
    "v_cmp_le_i16": lambda a, b: a <= b,
}


def sources_of(row: AluRow, seed: int) -> list[tuple[int, ...]]:
    """Edges against edges, then numbers at random."""
    kinds = row.sources
    pools = [
        (0, 1) if kind is Type.MASK else WIDE if bit_width(kind) == 64 else EDGES for kind in kinds
    ]
    every = list(product(*pools))
    draw = np.random.default_rng(seed)
    chosen = [every[at] for at in draw.integers(0, len(every), min(len(every), 3000))]
    for _ in range(500):
        chosen.append(
            tuple(
                int(draw.integers(0, 2))
                if kind is Type.MASK
                else int(draw.integers(0, 1 << bit_width(kind), dtype=np.uint64))
                if bit_width(kind) == 64
                else int(draw.integers(0, 1 << bit_width(kind)))
                for kind in kinds
            )
        )
    return chosen


def arrays(row: AluRow, sources: list[tuple[int, ...]]) -> list[np.ndarray]:
    result = []
    for kind, column in zip(row.sources, zip(*sources, strict=True), strict=True):
        if kind is Type.MASK:
            result.append(np.array(column, bool)[None])
            continue
        mask = (1 << bit_width(kind)) - 1
        unsigned = {16: np.uint16, 32: np.uint32, 64: np.uint64}[bit_width(kind)]
        result.append(np.array([each & mask for each in column], unsigned).view(DTYPES[kind])[None])
    return result


@pytest.mark.full(but=["v_add3_u32", "v_xor3_b32", "v_xnor_b32"])
@pytest.mark.parametrize("name", sorted(MEANT))
def test_a_row_gives_what_integers_give(name: str) -> None:
    row = ROWS[name]
    sources = sources_of(row, len(name))
    given = arrays(row, sources)
    before = [each.copy() for each in given]
    with np.errstate(all="ignore"):
        found = row.compute(*given)
    assert all(np.array_equal(one, other) for one, other in zip(before, given, strict=True))
    results = found if isinstance(found, tuple) else (found,)
    for lane, _ in enumerate(sources):
        meant = MEANT[name](*(int(each[0, lane]) for each in given))
        expected = meant if isinstance(meant, tuple) else (meant,)
        for kind, result, number in zip(row.results, results, expected, strict=True):
            mask = 1 if kind is Type.MASK else (1 << bit_width(kind)) - 1
            assert int(result[0, lane]) & mask == int(number) & mask, sources[lane]


def test_every_comparison_of_integers_is_there() -> None:
    for name, function in (("lt", np.less), ("eq", np.equal), ("ge", np.greater_equal)):
        for kind in ("i16", "u16", "i32", "u32", "i64", "u64"):
            assert ROWS[f"v_cmp_{name}_{kind}"].compute is function
