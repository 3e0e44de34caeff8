"""Sums, products, shifts, comparisons and selections of the scalar unit."""

from __future__ import annotations

import operator
from collections.abc import Callable

from scheduler.isa.rocm.emulator.alu.row import Type
from scheduler.isa.rocm.emulator.scalar.row import ScalarRow

_M32 = 0xFFFF_FFFF
_M64 = 0xFFFF_FFFF_FFFF_FFFF
U16, I16 = Type.U16, Type.I16
U32, I32, B32 = Type.U32, Type.I32, Type.B32
U64, I64, B64 = Type.U64, Type.I64, Type.B64


def _add(a: int, b: int) -> tuple[int, int]:
    return a + b, (a + b) >> 32


def _add_carry(a: int, b: int, scc: int) -> tuple[int, int]:
    return a + b + scc, (a + b + scc) >> 32


def _subtract(a: int, b: int) -> tuple[int, int]:
    return a - b, int(b > a)


def _subtract_borrow(a: int, b: int, scc: int) -> tuple[int, int]:
    return a - b - scc, int(b + scc > a)


def _overflows(value: int) -> int:
    return int(not -(1 << 31) <= value < 1 << 31)


def _add_signed(a: int, b: int) -> tuple[int, int]:
    return a + b, _overflows(a + b)


def _subtract_signed(a: int, b: int) -> tuple[int, int]:
    return a - b, _overflows(a - b)


def _shift_add(shift: int) -> Callable[[int, int], tuple[int, int]]:
    def compute(a: int, b: int) -> tuple[int, int]:
        total = (a << shift) + b
        return total, int(total > _M32)

    return compute


def _nonzero(function: Callable[..., int], mask: int) -> Callable[..., tuple[int, int]]:
    """Set SCC if the result is not zero."""

    def compute(*sources: int) -> tuple[int, int]:
        result = function(*sources) & mask
        return result, int(result != 0)

    return compute


def _field(value: int, control: int, bits: int) -> int:
    """``control``: the first bit in its lower bits, the width from bit 16."""
    offset, width = control & (bits - 1), (control >> 16) & 0x7F
    return (value >> offset) & ((1 << min(width, bits)) - 1)


def _signed_field(value: int, control: int, bits: int) -> int:
    offset, width = control & (bits - 1), min((control >> 16) & 0x7F, bits)
    if not width:
        return 0
    found = (value >> offset) & ((1 << width) - 1)
    return found - ((found & (1 << (width - 1))) << 1)


def _mask_of(width: int, offset: int, bits: int) -> int:
    return ((1 << (width & (bits - 1))) - 1) << (offset & (bits - 1))


_COMPARED: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "lg": operator.ne,
    "gt": operator.gt,
    "ge": operator.ge,
    "lt": operator.lt,
    "le": operator.le,
}


def _compare(function: Callable[[int, int], bool]) -> Callable[[int, int], int]:
    return lambda a, b: int(function(a, b))


def _compares() -> tuple[ScalarRow, ...]:
    rows = []
    for name, function in _COMPARED.items():
        compute = _compare(function)
        for word, kind, short in (("i32", I32, I16), ("u32", U32, U16)):
            rows.append(ScalarRow(f"s_cmp_{name}_{word}", None, (kind, kind), compute, sets=True))
            rows.append(ScalarRow(f"s_cmpk_{name}_{word}", None, (kind, short), compute, sets=True))
        if name in ("eq", "lg"):
            rows.append(ScalarRow(f"s_cmp_{name}_u64", None, (U64, U64), compute, sets=True))
    return tuple(rows)


def _minimum(a: int, b: int) -> tuple[int, int]:
    return (a, 1) if a < b else (b, 0)


def _maximum(a: int, b: int) -> tuple[int, int]:
    return (a, 1) if a > b else (b, 0)


def _absolute(a: int) -> int:
    return abs(a)


ROWS: tuple[ScalarRow, ...] = (
    *_compares(),
    ScalarRow("s_add_u32", U32, (U32, U32), _add, sets=True),
    ScalarRow("s_sub_u32", U32, (U32, U32), _subtract, sets=True),
    ScalarRow("s_add_i32", I32, (I32, I32), _add_signed, sets=True),
    ScalarRow("s_sub_i32", I32, (I32, I32), _subtract_signed, sets=True),
    ScalarRow("s_addc_u32", U32, (U32, U32), _add_carry, sets=True, reads=True),
    ScalarRow("s_subb_u32", U32, (U32, U32), _subtract_borrow, sets=True, reads=True),
    ScalarRow("s_addk_i32", I32, (I32, I16), _add_signed, sets=True, accumulates=True),
    ScalarRow("s_mulk_i32", I32, (I32, I16), operator.mul, accumulates=True),
    ScalarRow("s_add_nc_u64", U64, (U64, U64), operator.add),
    ScalarRow("s_sub_nc_u64", U64, (U64, U64), operator.sub),
    ScalarRow("s_add_u64", U64, (U64, U64), operator.add),
    ScalarRow("s_sub_u64", U64, (U64, U64), operator.sub),
    ScalarRow("s_mul_u64", U64, (U64, U64), operator.mul),
    ScalarRow("s_mul_i32", I32, (I32, I32), operator.mul),
    ScalarRow("s_mul_hi_u32", U32, (U32, U32), lambda a, b: (a * b) >> 32),
    ScalarRow("s_mul_hi_i32", I32, (I32, I32), lambda a, b: (a * b) >> 32),
    ScalarRow("s_min_i32", I32, (I32, I32), _minimum, sets=True),
    ScalarRow("s_min_u32", U32, (U32, U32), _minimum, sets=True),
    ScalarRow("s_max_i32", I32, (I32, I32), _maximum, sets=True),
    ScalarRow("s_max_u32", U32, (U32, U32), _maximum, sets=True),
    *(
        ScalarRow(f"s_lshl{shift}_add_u32", U32, (U32, U32), _shift_add(shift), sets=True)
        for shift in (1, 2, 3, 4)
    ),
    ScalarRow("s_abs_i32", I32, (I32,), _nonzero(_absolute, _M32), sets=True),
    ScalarRow("s_absdiff_i32", I32, (I32, I32), _nonzero(lambda a, b: abs(a - b), _M32), sets=True),
    *(
        ScalarRow(
            f"s_lshl_b{n}", u, (u, U32), _nonzero(lambda a, b, n=n: a << (b & (n - 1)), m), True
        )
        for n, u, m in ((32, U32, _M32), (64, U64, _M64))
    ),
    *(
        ScalarRow(
            f"s_lshr_b{n}", u, (u, U32), _nonzero(lambda a, b, n=n: a >> (b & (n - 1)), m), True
        )
        for n, u, m in ((32, U32, _M32), (64, U64, _M64))
    ),
    *(
        ScalarRow(
            f"s_ashr_i{n}", u, (u, U32), _nonzero(lambda a, b, n=n: a >> (b & (n - 1)), m), True
        )
        for n, u, m in ((32, I32, _M32), (64, I64, _M64))
    ),
    *(
        ScalarRow(f"s_bfe_u{n}", u, (u, U32), _nonzero(lambda a, b, n=n: _field(a, b, n), m), True)
        for n, u, m in ((32, U32, _M32), (64, U64, _M64))
    ),
    *(
        ScalarRow(
            f"s_bfe_i{n}", u, (u, U32), _nonzero(lambda a, b, n=n: _signed_field(a, b, n), m), True
        )
        for n, u, m in ((32, U32, _M32), (64, U64, _M64))
    ),
    ScalarRow("s_bfm_b32", B32, (U32, U32), lambda width, at: _mask_of(width, at, 32)),
    ScalarRow("s_bfm_b64", B64, (U32, U32), lambda width, at: _mask_of(width, at, 64)),
    ScalarRow("s_cselect_b32", B32, (B32, B32), lambda a, b, scc: a if scc else b, reads=True),
    ScalarRow("s_cselect_b64", B64, (B64, B64), lambda a, b, scc: a if scc else b, reads=True),
    *(
        ScalarRow(
            name, kind, (kind, given), lambda old, a, scc: a if scc else old, False, True, True
        )
        for name, kind, given in (
            ("s_cmov_b32", B32, B32),
            ("s_cmov_b64", B64, B64),
            ("s_cmovk_i32", I32, I16),
        )
    ),
)
