"""The oldest spelling of an instruction's name, which tables of later spellings lead to.

Sources: LLVM's AMDGPU assembler syntax of GFX9, GFX11 and GFX12 (renamed instructions).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import product
from types import MappingProxyType

from scheduler.isa.rocm.instruction_set.matrix import matrix_shape
from scheduler.isa.rocm.instruction_set.memory import DATA_SIZES
from scheduler.isa.rocm.instruction_set.table import find_opcode

_OLDER_SIZES = {later: older for older, later, _ in DATA_SIZES}
_MEMORY = re.compile(
    r"(?P<access>(?:global|flat|scratch|buffer|s|s_buffer)_(?:load|store)_(?:lds_)?)"
    r"(?P<d16>d16_)?(?P<hi>hi_)?(?P<size>[bui]\d+)"
)
_LDS = re.compile(
    r"ds_(?P<verb>load|store)(?P<pair>_2addr(?:_stride64)?)?(?P<size>_[bui]\d+(?:_d16(?:_hi)?)?)"
)
_ATOMIC = re.compile(
    r"(?P<stem>(?:global|flat|buffer)_atomic)_"
    r"(?P<verb>(?:swap|cmpswap|add|sub|and|or|xor|inc|dec|min|max)(?:_clamp)?)_"
    r"(?P<sign>[bui])(?P<bits>32|64)"
)
# Shapes of the MFMA instructions of gfx90a, by the type in their names; see ``MatrixShape``.
_MFMA_SHAPES = {
    "f32": "32x32x1 16x16x1 4x4x1 32x32x2 16x16x4",
    "f16": "32x32x4 16x16x4 4x4x4 32x32x8 16x16x16",
    "bf16": "32x32x2 16x16x2 4x4x2 32x32x4 16x16x8",
    "bf16_1k": "32x32x4 16x16x4 4x4x4 32x32x8 16x16x16",
    "i8": "32x32x4 16x16x4 4x4x4 32x32x8 16x16x16",
    "f64": "16x16x4 4x4x4",
}
_MFMA_RESULTS = {"i8": "i32", "f64": "f64"}
GFX90A_MFMA = tuple(
    f"v_mfma_{_MFMA_RESULTS.get(element, 'f32')}_{shape}{element}"
    for element, shapes in _MFMA_SHAPES.items()
    for shape in shapes.split()
)


_LOGIC, _BITS, _FLOATS = ("and", "or"), ("32", "64"), ("f16", "f32", "f64", "bf16")
_EXTREMES = ("min", "max", "med3", "min3", "max3", "minmax", "maxmin")
# Later names, the older ones, and what stands for {0} and {1} in both.
_RENAMINGS: tuple[tuple[str, str, tuple[tuple[str, ...], ...]], ...] = (
    ("v_{0}_nc_{1}", "v_{0}_{1}", (("add", "sub"), ("u32", "i32", "u16", "i16"))),
    ("v_subrev_nc_u32", "v_subrev_u32", ()),
    ("v_add_co_ci_u32", "v_addc_co_u32", ()),
    ("v_sub_co_ci_u32", "v_subb_co_u32", ()),
    ("v_subrev_co_ci_u32", "v_subbrev_co_u32", ()),
    ("v_mad_co_{0}", "v_mad_{0}", (("u64_u32", "i64_i32"),)),
    ("v_clz_i32_u32", "v_ffbh_u32", ()),
    ("v_ctz_i32_b32", "v_ffbl_b32", ()),
    ("v_cls_i32", "v_ffbh_i32", ()),
    ("s_{0}_not1_b{1}", "s_{0}n2_b{1}", (_LOGIC, _BITS)),
    ("s_{0}_not1_saveexec_b{1}", "s_{0}n2_saveexec_b{1}", (_LOGIC, _BITS)),
    ("s_{0}_not0_saveexec_b{1}", "s_{0}n1_saveexec_b{1}", (_LOGIC, _BITS)),
    ("s_and_not1_wrexec_b{0}", "s_andn2_wrexec_b{0}", (_BITS,)),
    ("s_and_not0_wrexec_b{0}", "s_andn1_wrexec_b{0}", (_BITS,)),
    ("s_{0}_co_{1}", "s_{0}_{1}", (("add", "sub"), ("u32", "i32"))),
    ("s_add_co_ci_u32", "s_addc_u32", ()),
    ("s_sub_co_ci_u32", "s_subb_u32", ()),
    ("s_addk_co_i32", "s_addk_i32", ()),
    ("s_ctz_i32_b{0}", "s_ff1_i32_b{0}", (_BITS,)),
    ("s_clz_i32_u{0}", "s_flbit_i32_b{0}", (_BITS,)),
    ("s_cls_i32", "s_flbit_i32", ()),
    ("s_cls_i32_i64", "s_flbit_i32_i64", ()),
    ("v_{0}_num_{1}", "v_{0}_{1}", (_EXTREMES, _FLOATS)),
    ("s_{0}_num_{1}", "s_{0}_{1}", (_EXTREMES, _FLOATS)),
    ("v_pk_{0}_num_{1}", "v_pk_{0}_{1}", (_EXTREMES, _FLOATS)),
    ("v_{0}_dx9_zero_f32", "v_{0}_legacy_f32", (("mul", "fma", "fmac"),)),
    ("v_cvt_floor_i32_f32", "v_cvt_flr_i32_f32", ()),
    ("v_cvt_nearest_i32_f32", "v_cvt_rpi_i32_f32", ()),
    ("{0}_cvt_pk_rtz_f16_f32", "{0}_cvt_pkrtz_f16_f32", (("v", "s"),)),
    ("v_cvt_pk_norm_{0}_{1}", "v_cvt_pknorm_{0}_{1}", (("i16", "u16"), ("f32", "f16"))),
    ("v_dot2acc_f32_{0}", "v_dot2c_f32_{0}", (("f16", "bf16"),)),
    ("v_dot4acc_i32_i8", "v_dot4c_i32_i8", ()),
    ("v_cmp_t_{0}", "v_cmp_tru_{0}", (("f16", "f32", "f64"),)),
)


def _mfma_renamings() -> Iterator[tuple[str, str]]:
    """Yield gfx940's names of gfx90a's instructions. It dropped those of bf16 without 1k: their
    names belong to later instructions."""
    for name in GFX90A_MFMA:
        shape = matrix_shape(name)
        if shape is not None and shape.element != "bf16":
            blocks = f"_{shape.blocks}b" if shape.blocks > 1 else ""
            yield f"{name.removesuffix(shape.element)}{blocks}_{shape.elements[0]}", name


_OLDER_NAMES: Mapping[str, str] = MappingProxyType(
    {
        later.format(*values): older.format(*values)
        for later, older, choices in _RENAMINGS
        for values in product(*choices)
    }
    | dict(_mfma_renamings())
)


@lru_cache(maxsize=4096)
def canonical_name(mnemonic: str) -> str:
    """Return the oldest spelling of an instruction's name, without its encoding."""
    name = find_opcode(mnemonic).name
    name = _OLDER_NAMES.get(name, name)
    if match := _MEMORY.fullmatch(name):
        half = f"_d16{'_hi' if match['hi'] else ''}" if match["d16"] else ""
        return f"{match['access']}{_OLDER_SIZES.get(match['size'], match['size'])}{half}"
    if match := _ATOMIC.fullmatch(name):
        verb = match["verb"]
        if verb in ("min", "max"):
            verb = ("s" if match["sign"] == "i" else "u") + verb
        return f"{match['stem']}_{verb}{'_x2' if match['bits'] == '64' else ''}"
    if match := _LDS.fullmatch(name):
        verb = "read" if match["verb"] == "load" else "write"
        pair = (match["pair"] or "").replace("_2addr", "2").replace("_stride64", "st64")
        return f"ds_{verb}{pair}{match['size']}"
    return name
