"""Logic and bit operations of the scalar unit."""

from __future__ import annotations

from collections.abc import Callable

from scheduler.isa.rocm.emulator.alu.row import Type
from scheduler.isa.rocm.emulator.scalar.row import ScalarRow

I16, U32, I32, B32, B64 = Type.I16, Type.U32, Type.I32, Type.B32, Type.B64
_WIDTHS = ((32, B32, 0xFFFF_FFFF), (64, B64, 0xFFFF_FFFF_FFFF_FFFF))

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


def _nonzero(function: Callable[..., int], mask: int) -> Callable[..., tuple[int, int]]:
    def compute(*sources: int) -> tuple[int, int]:
        result = function(*sources) & mask
        return result, int(result != 0)

    return compute


def _reverse(value: int, bits: int) -> int:
    return int(f"{value:0{bits}b}"[::-1], 2)


def _first_one(value: int) -> int:
    """Return the position of the lowest set bit; -1 without any."""
    return (value & -value).bit_length() - 1


def _leading(value: int, bits: int) -> int:
    """Count the zeros above the highest set bit; -1 without any."""
    return bits - value.bit_length() if value else -1


def _leading_signs(value: int, bits: int) -> int:
    """Count the bits from the top that equal the sign; -1 if all do."""
    top = value >> (bits - 1) & 1
    return _leading(value ^ (((1 << bits) - 1) if top else 0), bits)


def _quads(value: int, bits: int) -> int:
    """Return one bit for each four bits of which any is set."""
    return sum(1 << (at // 4) for at in range(0, bits, 4) if value >> at & 15)


def _whole_quads(value: int, bits: int) -> int:
    return sum(15 << at for at in range(0, bits, 4) if value >> at & 15)


def _replicate(value: int) -> int:
    return sum(3 << (2 * at) for at in range(32) if value >> at & 1)


def _packed(low: int, high: int) -> Callable[[int, int], int]:
    return lambda a, b: (a >> low & 0xFFFF) | (b >> high & 0xFFFF) << 16


def _logic() -> tuple[ScalarRow, ...]:
    return tuple(
        ScalarRow(f"s_{name}_b{bits}", kind, (kind, kind), _nonzero(function, mask), sets=True)
        for name, function in LOGIC.items()
        for bits, kind, mask in _WIDTHS
    )


def _sized() -> tuple[ScalarRow, ...]:
    rows = []
    for bits, kind, mask in _WIDTHS:
        rows += [
            ScalarRow(f"s_mov_b{bits}", kind, (kind,), lambda a: a),
            ScalarRow(f"s_not_b{bits}", kind, (kind,), _nonzero(lambda a: ~a, mask), sets=True),
            ScalarRow(
                f"s_wqm_b{bits}",
                *(kind, (kind,), _nonzero(lambda a, n=bits: _whole_quads(a, n), mask)),
                sets=True,
            ),
            ScalarRow(
                f"s_quadmask_b{bits}",
                *(kind, (kind,), _nonzero(lambda a, n=bits: _quads(a, n), mask)),
                sets=True,
            ),
            ScalarRow(f"s_brev_b{bits}", kind, (kind,), lambda a, n=bits: _reverse(a, n)),
            ScalarRow(
                f"s_bcnt0_i32_b{bits}", I32, (kind,), _nonzero(_zeros(bits), mask), sets=True
            ),
            ScalarRow(
                f"s_bcnt1_i32_b{bits}", I32, (kind,), _nonzero(int.bit_count, mask), sets=True
            ),
            ScalarRow(f"s_ff0_i32_b{bits}", I32, (kind,), lambda a, m=mask: _first_one(a ^ m)),
            ScalarRow(f"s_ff1_i32_b{bits}", I32, (kind,), _first_one),
            ScalarRow(f"s_flbit_i32_b{bits}", I32, (kind,), lambda a, n=bits: _leading(a, n)),
            ScalarRow(
                f"s_bitset0_b{bits}",
                *(kind, (kind, U32), lambda old, a, n=bits: old & ~(1 << (a & (n - 1)))),
                accumulates=True,
            ),
            ScalarRow(
                f"s_bitset1_b{bits}",
                *(kind, (kind, U32), lambda old, a, n=bits: old | 1 << (a & (n - 1))),
                accumulates=True,
            ),
            ScalarRow(
                f"s_bitcmp0_b{bits}",
                *(None, (kind, U32), lambda a, b, n=bits: 1 - (a >> (b & (n - 1)) & 1)),
                sets=True,
            ),
            ScalarRow(
                f"s_bitcmp1_b{bits}",
                *(None, (kind, U32), lambda a, b, n=bits: a >> (b & (n - 1)) & 1),
                sets=True,
            ),
        ]
    return tuple(rows)


def _zeros(bits: int) -> Callable[[int], int]:
    return lambda a: bits - a.bit_count()


def _sign_extended(bits: int) -> Callable[[int], int]:
    def compute(value: int) -> int:
        value &= (1 << bits) - 1
        return value - ((value >> (bits - 1)) << bits)

    return compute


ROWS: tuple[ScalarRow, ...] = (
    *_logic(),
    *_sized(),
    ScalarRow("s_movk_i32", I32, (I16,), lambda a: a),
    ScalarRow("s_flbit_i32", I32, (B32,), lambda a: _leading_signs(a, 32)),
    ScalarRow("s_flbit_i32_i64", I32, (B64,), lambda a: _leading_signs(a, 64)),
    ScalarRow("s_sext_i32_i8", I32, (B32,), _sign_extended(8)),
    ScalarRow("s_sext_i32_i16", I32, (B32,), _sign_extended(16)),
    ScalarRow("s_bitreplicate_b64_b32", B64, (B32,), _replicate),
    ScalarRow("s_pack_ll_b32_b16", B32, (B32, B32), _packed(0, 0)),
    ScalarRow("s_pack_lh_b32_b16", B32, (B32, B32), _packed(0, 16)),
    ScalarRow("s_pack_hl_b32_b16", B32, (B32, B32), _packed(16, 0)),
    ScalarRow("s_pack_hh_b32_b16", B32, (B32, B32), _packed(16, 16)),
)
