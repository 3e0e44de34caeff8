"""Floats of the scalar unit (since RDNA 3.5, gfx12): the vector unit's rows, renamed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from scheduler.isa.rocm.emulator.alu import conversions, floats
from scheduler.isa.rocm.emulator.alu.row import AluRow, Type

_BOTH = ("add", "sub", "mul", "min", "max", "minimum", "maximum", "fmac")
_ROUNDING = ("ceil", "floor", "trunc", "rndne")
_CONVERSIONS = ("f32_i32", "f32_u32", "i32_f32", "u32_f32", "f16_f32", "f32_f16", "pkrtz_f16_f32")


def _rows() -> Iterator[AluRow]:
    vector = {row.name: row for row in (*floats.ROWS, *conversions.ROWS)}
    names = [f"{name}_{kind}" for name in (*_BOTH, *_ROUNDING) for kind in ("f16", "f32")]
    names += [f"cvt_{name}" for name in _CONVERSIONS]
    for name in names:
        yield replace(vector[f"v_{name}"], name=f"s_{name}")
    fma = vector["v_fma_f32"]
    yield replace(fma, name="s_fmaak_f32")
    yield replace(fma, name="s_fmamk_f32")
    upper = vector["v_cvt_f32_f16"]
    yield AluRow(
        "s_cvt_hi_f32_f16",
        (Type.F32,),
        (Type.B32,),
        lambda a: upper.compute((a >> 16).astype("uint16").view("float16")),
    )


ROWS = tuple(_rows())
