"""Packed 16-bit integers. ``compute`` handles one element; without ``clamp`` it wraps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from scheduler.isa.rocm.emulator.alu.row import AluRow, Lanes, Type

_WRAPPING: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("add", np.add),
    ("sub", np.subtract),
    ("min", np.minimum),
    ("max", np.maximum),
)


def _shifted(shift: Callable[[Lanes, Lanes], Lanes]) -> Callable[[Lanes, Lanes], Lanes]:
    """The low four bits of the first source are the shift amount."""
    return lambda by, value: shift(value, (by & by.dtype.type(15)).astype(value.dtype))


def _rows() -> Iterator[AluRow]:
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
        compute = _shifted(shift)
        yield AluRow(f"v_pk_{name}", (kind,), (kind, kind), compute, packed=True)


ROWS = tuple(_rows())
