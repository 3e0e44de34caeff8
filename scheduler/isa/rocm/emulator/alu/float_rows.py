"""All rows of floating point, packed numbers and register blocks, and alternative spellings of
their names."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.isa.rocm.emulator.alu import (
    bitop,
    compares,
    conversions,
    division,
    dots,
    floats,
    matrix,
    packed,
    packed_integers,
    scalar_floats,
    scaled,
    transcendental,
    trig_preop,
    wave_matrix,
)
from scheduler.isa.rocm.emulator.alu.row import AluRow, BlockRow

FLOAT_ROWS: tuple[AluRow, ...] = (
    *floats.ROWS,
    *transcendental.ROWS,
    *division.ROWS,
    *compares.ROWS,
    *packed.ROWS,
    *packed_integers.ROWS,
    *trig_preop.ROWS,
    *conversions.ROWS,
    *scalar_floats.ROWS,
    *scaled.ROWS,
)
BLOCK_ROWS: tuple[BlockRow, ...] = (
    *matrix.ROWS,
    *wave_matrix.ROWS,
    *scaled.BLOCK_ROWS,
    *dots.BLOCK_ROWS,
    *bitop.BLOCK_ROWS,
)

_PREFIXES = ("v_", "s_", "v_pk_")
_RENAMED = {
    "min_num": "min",
    "max_num": "max",
    "med3_num": "med3",
    "min3_num": "min3",
    "max3_num": "max3",
    "minmax_num": "minmax",
    "maxmin_num": "maxmin",
}


def _spellings() -> dict[str, str]:
    found = {
        f"{prefix}{new}_{kind}": f"{prefix}{old}_{kind}"
        for prefix in _PREFIXES
        for new, old in _RENAMED.items()
        for kind in ("f16", "f32", "f64", "bf16")
    }
    found |= {
        "v_mul_dx9_zero_f32": "v_mul_legacy_f32",
        "v_fma_dx9_zero_f32": "v_fma_legacy_f32",
        "v_fmac_dx9_zero_f32": "v_fmac_legacy_f32",
        "v_cvt_floor_i32_f32": "v_cvt_flr_i32_f32",
        "v_cvt_nearest_i32_f32": "v_cvt_rpi_i32_f32",
        "v_cvt_pk_rtz_f16_f32": "v_cvt_pkrtz_f16_f32",
        "s_cvt_pk_rtz_f16_f32": "s_cvt_pkrtz_f16_f32",
        "v_cvt_pk_norm_i16_f32": "v_cvt_pknorm_i16_f32",
        "v_cvt_pk_norm_u16_f32": "v_cvt_pknorm_u16_f32",
        "v_cvt_pk_norm_i16_f16": "v_cvt_pknorm_i16_f16",
        "v_cvt_pk_norm_u16_f16": "v_cvt_pknorm_u16_f16",
    }
    found |= {
        f"v_dot{number}acc_{result}_{element}": f"v_dot{number}c_{result}_{element}"
        for number, result, element in ((2, "f32", "f16"), (2, "f32", "bf16"), (4, "i32", "i8"))
    }
    found |= {f"v_cmp_t_{kind}": f"v_cmp_tru_{kind}" for kind in ("f16", "f32", "f64")}
    return found | dict(matrix.SPELLINGS)


#: From later names to the original ones.
SPELLINGS: Mapping[str, str] = _spellings()
