"""Packed arithmetic: two elements per lane. ``compute`` handles one element."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from scheduler.isa.rocm.emulator.alu.floats import (
    FMA,
    maximum,
    maximum_number,
    minimum,
    minimum_number,
)
from scheduler.isa.rocm.emulator.alu.rounding import to_bfloat16
from scheduler.isa.rocm.emulator.alu.row import AluRow, Lanes, Type

_TWO: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("add", np.add),
    ("mul", np.multiply),
    ("min", minimum_number),
    ("max", maximum_number),
    ("minimum", minimum),
    ("maximum", maximum),
)
_THREE: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("minimum3", lambda a, b, c: minimum(minimum(a, b), c)),
    ("maximum3", lambda a, b, c: maximum(maximum(a, b), c)),
)


_WRAPPING: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("add", np.add),
    ("sub", np.subtract),
    ("min", np.minimum),
    ("max", np.maximum),
)


def _rows() -> Iterator[AluRow]:
    for kind in (Type.F16, Type.BF16, Type.F32):
        for name, compute in _TWO:

            def rounded(a: Lanes, b: Lanes, compute: Callable[..., Any] = compute) -> Lanes:
                return to_bfloat16(compute(a, b))

            computed = rounded if kind is Type.BF16 else compute
            yield AluRow(f"v_pk_{name}_{kind}", (kind,), (kind, kind), computed, packed=True)
        for name, compute in (*_THREE, ("fma", FMA[kind])):
            yield AluRow(f"v_pk_{name}_{kind}", (kind,), (kind,) * 3, compute, packed=True)
        yield AluRow(f"v_pk_fmac_{kind}", (kind,), (kind,) * 3, FMA[kind], packed=True)
    # 16-bit integers; without ``clamp`` they wrap.
    for kind in (Type.I16, Type.U16):
        two, three = (kind, kind), (kind, kind, kind)
        for name, compute in _WRAPPING:
            yield AluRow(f"v_pk_{name}_{kind}", (kind,), two, compute, packed=True)
        yield AluRow(f"v_pk_mad_{kind}", (kind,), three, lambda a, b, c: a * b + c, packed=True)
    u16, i16 = Type.U16, Type.I16
    yield AluRow("v_pk_mul_lo_u16", (u16,), (u16, u16), np.multiply, packed=True)
    for name, kind, shift in (
        ("lshlrev_b16", u16, np.left_shift),
        ("lshrrev_b16", u16, np.right_shift),
        ("ashrrev_i16", i16, np.right_shift),
    ):

        def shift_packed(by: Lanes, value: Lanes, shift: Callable[..., Lanes] = shift) -> Lanes:
            return shift(value, (by & by.dtype.type(15)).astype(value.dtype))

        yield AluRow(f"v_pk_{name}", (kind,), (kind, kind), shift_packed, packed=True)


ROWS = tuple(_rows())
