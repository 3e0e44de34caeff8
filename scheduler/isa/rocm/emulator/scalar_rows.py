"""The scalar unit's instructions as functions of Python integers, exact at any width."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from scheduler.isa.rocm.emulator.alu.row import Type

U16, I16 = Type.U16, Type.I16
U32, I32, B32 = Type.U32, Type.I32, Type.B32
U64, I64, B64 = Type.U64, Type.I64, Type.B64


@dataclass(frozen=True)
class ScalarRow:
    """One instruction by its oldest name. ``compute`` takes its sources as integers (signed for
    signed types) and returns the result, which is truncated to the bits of ``result``.

    ``sets``: it returns (result, SCC), or SCC alone without a result. ``reads``: SCC is the last
    source. ``accumulates``: the old result is the first source and is not in the text.
    """

    name: str
    result: Type | None
    sources: tuple[Type, ...]
    compute: Callable[..., Any]
    sets: bool = False
    reads: bool = False
    accumulates: bool = False


LOGIC: dict[str, Callable[[int, int], int]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "andn2": lambda a, b: a & ~b,
    "orn2": lambda a, b: a | ~b,
    "nand": lambda a, b: ~(a & b),
    "nor": lambda a, b: ~(a | b),
    "xnor": lambda a, b: ~(a ^ b),
    "andn1": lambda a, b: ~a & b,
    "orn1": lambda a, b: ~a | b,
}
"""``s_<name>_b64`` of (S0, S1), ``s_<name>_saveexec_b64`` of (S0, EXEC)."""


def _nonzero(
    name: str, result: Type, sources: tuple[Type, ...], function: Callable[..., int], bits: int
) -> ScalarRow:
    """A row whose SCC is whether the result is not zero."""
    mask = (1 << bits) - 1

    def compute(*values: int) -> tuple[int, int]:
        truncated = function(*values) & mask
        return truncated, int(truncated != 0)

    return ScalarRow(name, result, sources, compute, sets=True)


def _field(value: int, control: int, bits: int, *, signed: bool) -> int:
    """``control``: the first bit in its lower bits, the width from bit 16."""
    offset, width = control & (bits - 1), min((control >> 16) & 0x7F, bits)
    field = (value >> offset) & ((1 << width) - 1)
    if signed and width:
        field -= (field & (1 << (width - 1))) << 1
    return field


def _leading_zeros(value: int, bits: int) -> int:
    """Count the zeros above the highest set bit; -1 without any."""
    return bits - value.bit_length() if value else -1


def _leading_signs(value: int, bits: int) -> int:
    """Count the bits from the top that equal the sign; -1 if all do."""
    return _leading_zeros(value ^ (((1 << bits) - 1) if value >> (bits - 1) & 1 else 0), bits)


def _lowest_one(value: int) -> int:
    """Return the position of the lowest set bit; -1 without any."""
    return (value & -value).bit_length() - 1


def _sized_rows(bits: int, unsigned: Type, signed: Type, plain: Type) -> Iterator[ScalarRow]:
    """Yield the instructions that exist for 32 and for 64 bits."""
    low, mask, quads = bits - 1, (1 << bits) - 1, range(0, bits, 4)
    for name, logic in LOGIC.items():
        yield _nonzero(f"s_{name}_b{bits}", plain, (plain, plain), logic, bits)
    unary: tuple[tuple[str, Type, Callable[[int], int]], ...] = (
        ("not", plain, lambda a: ~a),
        ("wqm", plain, lambda a: sum(15 << at for at in quads if a >> at & 15)),
        ("quadmask", plain, lambda a: sum(1 << (at // 4) for at in quads if a >> at & 15)),
        ("bcnt0_i32", I32, lambda a: bits - a.bit_count()),
        ("bcnt1_i32", I32, int.bit_count),
    )
    for name, result, compute in unary:
        yield _nonzero(f"s_{name}_b{bits}", result, (plain,), compute, bits)
    shifts: tuple[tuple[str, Type, Callable[[int, int], int]], ...] = (
        ("lshl_b", unsigned, lambda a, b: a << (b & low)),
        ("lshr_b", unsigned, lambda a, b: a >> (b & low)),
        ("ashr_i", signed, lambda a, b: a >> (b & low)),
        ("bfe_u", unsigned, lambda a, b: _field(a, b, bits, signed=False)),
        ("bfe_i", unsigned, lambda a, b: _field(a, b, bits, signed=True)),
    )
    for name, kind, shift in shifts:
        yield _nonzero(f"s_{name}{bits}", kind, (kind, U32), shift, bits)
    without_scc: tuple[tuple[str, Type, Callable[[int], int]], ...] = (
        ("mov", plain, lambda a: a),
        ("brev", plain, lambda a: int(f"{a:0{bits}b}"[::-1], 2)),
        ("ff0_i32", I32, lambda a: _lowest_one(a ^ mask)),
        ("ff1_i32", I32, _lowest_one),
        ("flbit_i32", I32, lambda a: _leading_zeros(a, bits)),
    )
    for name, result, compute in without_scc:
        yield ScalarRow(f"s_{name}_b{bits}", result, (plain,), compute)
    tests: tuple[tuple[str, Type | None, Callable[[int, int], int]], ...] = (
        ("bitset0", plain, lambda old, a: old & ~(1 << (a & low))),
        ("bitset1", plain, lambda old, a: old | 1 << (a & low)),
        ("bitcmp0", None, lambda a, b: 1 - (a >> (b & low) & 1)),
        ("bitcmp1", None, lambda a, b: a >> (b & low) & 1),
    )
    for name, kept, test in tests:
        is_test = kept is None
        yield ScalarRow(
            f"s_{name}_b{bits}", kept, (plain, U32), test, sets=is_test, accumulates=not is_test
        )
    yield ScalarRow(
        f"s_bfm_b{bits}", plain, (U32, U32), lambda w, at: ((1 << (w & low)) - 1) << (at & low)
    )
    yield ScalarRow(
        f"s_cselect_b{bits}", plain, (plain, plain), lambda a, b, scc: a if scc else b, reads=True
    )


def _compares() -> Iterator[ScalarRow]:
    for name, relation in (
        ("eq", operator.eq),
        ("lg", operator.ne),
        ("gt", operator.gt),
        ("ge", operator.ge),
        ("lt", operator.lt),
        ("le", operator.le),
    ):

        def compute(a: int, b: int, relation: Callable[[int, int], bool] = relation) -> int:
            return int(relation(a, b))

        for kind, short in ((I32, I16), (U32, U16)):
            yield ScalarRow(f"s_cmp_{name}_{kind}", None, (kind, kind), compute, sets=True)
            yield ScalarRow(f"s_cmpk_{name}_{kind}", None, (kind, short), compute, sets=True)
        if name in ("eq", "lg"):
            yield ScalarRow(f"s_cmp_{name}_u64", None, (U64, U64), compute, sets=True)


def _with_overflow(value: int) -> tuple[int, int]:
    return value, int(not -(1 << 31) <= value < 1 << 31)


def _with_carry(value: int) -> tuple[int, int]:
    return value, value >> 32


def _arithmetic() -> Iterator[ScalarRow]:
    two = (U32, U32)
    yield ScalarRow("s_add_u32", U32, two, lambda a, b: _with_carry(a + b), sets=True)
    yield ScalarRow("s_sub_u32", U32, two, lambda a, b: (a - b, int(b > a)), sets=True)
    yield ScalarRow(
        "s_addc_u32", U32, two, lambda a, b, scc: _with_carry(a + b + scc), sets=True, reads=True
    )
    yield ScalarRow(
        "s_subb_u32",
        *(U32, two, lambda a, b, scc: (a - b - scc, int(b + scc > a))),
        sets=True,
        reads=True,
    )
    yield ScalarRow("s_add_i32", I32, (I32, I32), lambda a, b: _with_overflow(a + b), sets=True)
    yield ScalarRow("s_sub_i32", I32, (I32, I32), lambda a, b: _with_overflow(a - b), sets=True)
    yield ScalarRow(
        "s_addk_i32",
        *(I32, (I32, I16), lambda a, b: _with_overflow(a + b)),
        sets=True,
        accumulates=True,
    )
    yield ScalarRow("s_mulk_i32", I32, (I32, I16), operator.mul, accumulates=True)
    for name, function in (("add", operator.add), ("sub", operator.sub)):
        yield ScalarRow(f"s_{name}_nc_u64", U64, (U64, U64), function)
        yield ScalarRow(f"s_{name}_u64", U64, (U64, U64), function)
    yield ScalarRow("s_mul_u64", U64, (U64, U64), operator.mul)
    yield ScalarRow("s_mul_i32", I32, (I32, I32), operator.mul)
    for kind in (U32, I32):
        yield ScalarRow(f"s_mul_hi_{kind}", kind, (kind, kind), lambda a, b: (a * b) >> 32)
        yield ScalarRow(
            f"s_min_{kind}", kind, (kind, kind), lambda a, b: (min(a, b), int(a < b)), sets=True
        )
        yield ScalarRow(
            f"s_max_{kind}", kind, (kind, kind), lambda a, b: (max(a, b), int(a > b)), sets=True
        )
    for shift in (1, 2, 3, 4):

        def shift_add(a: int, b: int, shift: int = shift) -> tuple[int, int]:
            total = (a << shift) + b
            return total, int(total > 0xFFFF_FFFF)

        yield ScalarRow(f"s_lshl{shift}_add_u32", U32, two, shift_add, sets=True)
    yield _nonzero("s_abs_i32", I32, (I32,), abs, 32)
    yield _nonzero("s_absdiff_i32", I32, (I32, I32), lambda a, b: abs(a - b), 32)
    for name, kind, source in (
        ("s_cmov_b32", B32, B32),
        ("s_cmov_b64", B64, B64),
        ("s_cmovk_i32", I32, I16),
    ):
        yield ScalarRow(
            name,
            *(kind, (kind, source), lambda old, a, scc: a if scc else old),
            reads=True,
            accumulates=True,
        )


def _sign_extended(value: int, bits: int) -> int:
    return ((value & ((1 << bits) - 1)) ^ 1 << (bits - 1)) - (1 << (bits - 1))


def _packs() -> Iterator[ScalarRow]:
    for name, low, high in (("ll", 0, 0), ("lh", 0, 16), ("hl", 16, 0), ("hh", 16, 16)):

        def compute(a: int, b: int, low: int = low, high: int = high) -> int:
            return (a >> low & 0xFFFF) | (b >> high & 0xFFFF) << 16

        yield ScalarRow(f"s_pack_{name}_b32_b16", B32, (B32, B32), compute)


SCALAR_ROWS: Mapping[str, ScalarRow] = MappingProxyType(
    {
        row.name: row
        for row in (
            *_compares(),
            *_arithmetic(),
            *_sized_rows(32, U32, I32, B32),
            *_sized_rows(64, U64, I64, B64),
            *_packs(),
            ScalarRow("s_movk_i32", I32, (I16,), lambda a: a),
            ScalarRow("s_flbit_i32", I32, (B32,), lambda a: _leading_signs(a, 32)),
            ScalarRow("s_flbit_i32_i64", I32, (B64,), lambda a: _leading_signs(a, 64)),
            ScalarRow("s_sext_i32_i8", I32, (B32,), lambda a: _sign_extended(a, 8)),
            ScalarRow("s_sext_i32_i16", I32, (B32,), lambda a: _sign_extended(a, 16)),
            ScalarRow(
                "s_bitreplicate_b64_b32",
                *(B64, (B32,), lambda a: sum(3 << (2 * at) for at in range(32) if a >> at & 1)),
            ),
        )
    }
)
