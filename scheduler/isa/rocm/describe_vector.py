"""Descriptions of AMD's vector instructions, including the matrix instructions, and the names of
their types. See ``describe``."""

from __future__ import annotations

from scheduler.isa.describe import Row

TYPE_NAMES = {
    **{f"f{bits}": f"{bits}-bit floats" for bits in (16, 32, 64)},
    **{f"i{bits}": f"signed {bits}-bit integers" for bits in (4, 8, 16, 24, 32, 64)},
    **{f"u{bits}": f"unsigned {bits}-bit integers" for bits in (4, 8, 16, 24, 32, 64)},
    **{f"b{bits}": f"{bits} bits" for bits in (8, 16, 32, 64, 96, 128)},
    "bf16": "bfloat16",
    "xf32": "TF32-like floats of 19 bits",
    "fp8": "floats of 8 bits (e4m3)",
    "bf8": "floats of 8 bits (e5m2)",
    "iu8": "8-bit integers",
    "iu4": "4-bit integers",
    "f8f6f4": "floats of 8, 6 or 4 bits",
    "bf16_1k": "bfloat16",
    "fp8_fp8": "floats of 8 bits (e4m3)",
    "fp8_bf8": "floats of 8 bits",
    "bf8_fp8": "floats of 8 bits",
    "bf8_bf8": "floats of 8 bits (e5m2)",
    "eq": "equal",
    "ne": "not equal",
    "lg": "less or greater",
    "lt": "less",
    "le": "less or equal",
    "gt": "greater",
    "ge": "greater or equal",
    "o": "neither is NaN",
    "u": "either is NaN",
    "neq": "not equal, or a NaN",
    "nlt": "not less (true for NaN)",
    "nle": "not less or equal (true for NaN)",
    "ngt": "not greater (true for NaN)",
    "nge": "not greater or equal (true for NaN)",
    "nlg": "neither less nor greater (true for NaN)",
    **{
        name: f"{4 * n} bytes"
        for n, name in enumerate(("dword", "dwordx2", "dwordx3", "dwordx4"), 1)
    },
    "dwordx8": "32 bytes",
    "dwordx16": "64 bytes",
    **{"ubyte": "1 byte", "sbyte": "1 signed byte", "byte": "1 byte"},
    **{"ushort": "2 bytes", "sshort": "2 signed bytes", "short": "2 bytes"},
    "b256": "32 bytes",
    "b512": "64 bytes",
    "global": "global memory",
    "flat": "memory by a flat address (global, LDS or scratch)",
    "buffer": "memory by a buffer descriptor, which checks bounds",
    "scratch": "private memory (scratch)",
    "scc0": "SCC is 0",
    "scc1": "SCC is 1",
    "vccz": "VCC is 0",
    "vccnz": "VCC is not 0",
    "execz": "no lane is active",
    "execnz": "any lane is active",
}
_T = r"(?P<t>bf16|[fiub]\d+)"
_FP = r"(?P<t>bf16|f16|f32|f64)"

VECTOR: tuple[Row, ...] = (
    (r"v_(?:dual_)?mov_b(?P<n>\d+)", "move", "Copies {n} bits in each lane."),
    (r"v_pk_mov_b32", "packed move", "Copies two words into a pair of registers."),
    (r"v_accvgpr_read_b32", "read accumulator", "Copies an accumulation register to a VGPR."),
    (r"v_accvgpr_write_b32", "write accumulator", "Copies a VGPR to an accumulation register."),
    (r"v_accvgpr_mov_b32", "move accumulator", "Copies between accumulation registers."),
    (
        r"v_(?:dual_)?cndmask_b(?P<n>16|32)",
        "select",
        "Takes the second operand where the lane's bit"
        " of the mask (VCC or an SGPR pair) is set, else the first.",
    ),
    (
        r"v_readfirstlane_b32",
        "read first lane",
        "Copies the value of the first active lane to an SGPR.",
    ),
    (r"v_readlane_b32", "read lane", "Copies one lane's value to an SGPR."),
    (r"v_writelane_b32", "write lane", "Writes an SGPR's value into one lane."),
    (r"v_perm_b32", "permute bytes", "Selects four bytes of two registers by a selector."),
    (r"v_permlane(?P<n>\w+)_b32", "permute lanes", "Lanes of a row exchange values."),
    (r"v_swap_b32", "swap", "Exchanges two registers."),
    (
        r"v_mbcnt_(?P<h>lo|hi)_u32_b32",
        "masked bit count",
        "Counts the bits of the {h} half of a mask below this lane: computes the lane index.",
    ),
    (
        rf"v_pk_(?P<o>add|mul|sub|min|max|fma)_{_T}",
        "packed {o}",
        "{o} on two values of {t} in each lane at once.",
    ),
    (r"v_pk_(?P<o>lshlrev|lshrrev|ashrrev)_b?i?16", "packed shift", "Shifts two 16-bit values."),
    (
        rf"v_(?:dual_)?fmac_{_FP}",
        "fused multiply-add in place",
        "d = a · b + d, rounded once, of {t}.",
    ),
    (rf"v_(?:dual_)?fma_{_FP}", "fused multiply-add", "a · b + c, rounded once, of {t}."),
    (
        rf"v_(?:dual_)?fmaak_{_FP}",
        "fused multiply-add",
        "a · b + constant, of {t}; the constant follows the instruction (8 bytes).",
    ),
    (
        rf"v_(?:dual_)?fmamk_{_FP}",
        "fused multiply-add",
        "a · constant + b, of {t}; the constant follows the instruction (8 bytes).",
    ),
    (
        r"v_(?:fma|mad)_mix(?P<h>lo|hi)?_f16",
        "mixed multiply-add",
        "a · b + c with operands of f16"
        " or f32, the result rounded to f16 in one half of the register.",
    ),
    (
        r"v_(?:fma|mad)_mix_f32",
        "mixed multiply-add",
        "a · b + c with operands of f16 or f32, computed in f32.",
    ),
    (rf"v_(?:dual_)?add_{_T}", "add", "a + b of {t} in each lane."),
    (r"v_add_nc_u(?P<n>\d+)", "add", "a + b of {n}-bit integers; no carry is kept."),
    (
        r"v_(?P<o>add|sub|subrev)_co_u32",
        "{o} with carry out",
        "32-bit integers; the carry goes to"
        " VCC or an SGPR pair, for the next word of a wider number.",
    ),
    (
        r"v_(?P<o>addc_co|add_co_ci|subb_co|sub_co_ci|subbrev_co|subrev_co_ci)_u32",
        "with carry in and out",
        "The next word of a sum or difference of wider integers.",
    ),
    (rf"v_(?:dual_)?sub_{_T}", "subtract", "a - b of {t} in each lane."),
    (
        rf"v_(?:dual_)?subrev_{_T}",
        "subtract, reversed",
        "b - a of {t}: lets the minuend be the scalar operand.",
    ),
    (
        r"v_sub(?:rev)?_nc_u(?P<n>\d+)",
        "subtract",
        "A difference of {n}-bit integers without carry.",
    ),
    (r"v_(?:dual_)?mul_(?:legacy_|dx9_zero_)?(?P<t>f\d+|bf16)", "multiply", "a · b of {t}."),
    (r"v_mul_lo_(?P<t>u16|u32|i32)", "multiply, low half", "The low half of a product of {t}."),
    (
        r"v_mul_hi_(?P<t>u32|i32)",
        "multiply, high half",
        "The high half of a product of {t}; how compilers divide by constants.",
    ),
    (
        r"v_mul_(?:hi_)?(?P<t>[iu]32)_[iu]24",
        "24-bit multiply",
        "A product of 24-bit integers, at the full rate.",
    ),
    (
        r"v_mad_(?P<t>[iu]64)_[iu]32",
        "multiply-add",
        "A 64-bit product of 32-bit integers and a 64-bit sum.",
    ),
    (
        r"v_mad_(?P<t>[iu]32)_[iu](?:24|16)",
        "multiply-add",
        "A product of narrow integers and a sum of 32 bits.",
    ),
    (r"v_mad(?:_legacy)?_(?P<t>[iu]16|f16|f32)", "multiply-add", "a · b + c of {t}."),
    (
        r"v_dot(?P<n>\d)c?_(?P<r>\w+?)_(?P<t>\w+)",
        "dot product",
        "The sum of {n} products of packed values, added to an accumulator.",
    ),
    (rf"v_(?:dual_)?(?P<o>max|min)(?:imum|_num|imum3)?_{_T}", "{o}", "The {o} of two {t}."),
    (
        rf"v_(?P<o>max3|min3|med3|maxmin|minmax)(?:_num)?_{_T}",
        "{o}",
        "Of three values of {t}: the largest, the smallest or the one between.",
    ),
    (
        rf"v_(?P<o>floor|ceil|trunc|rndne|fract)_{_FP}",
        "round ({o})",
        "{t} rounded: down, up, to zero, to the nearest even; fract returns the fractional part.",
    ),
    (
        rf"v_(?P<o>exp|log)_{_FP}",
        "{o} to base 2",
        "2 to the power of a, or the binary logarithm, of"
        " {t}; an approximation by the transcendental unit.",
    ),
    (rf"v_rcp(?:_iflag)?_{_FP}", "reciprocal", "1 / a of {t}, an approximation."),
    (rf"v_rsq_{_FP}", "reciprocal square root", "1 / √a of {t}, an approximation."),
    (rf"v_sqrt_{_FP}", "square root", "√a of {t}, an approximation."),
    (rf"v_(?P<o>sin|cos)_{_FP}", "{o}", "{o} of a in turns (a · 2π), an approximation."),
    (rf"v_ldexp_{_FP}", "scale by a power of 2", "a · 2ⁿ of {t}."),
    (rf"v_frexp_(?P<o>mant|exp_i\d+)_{_FP}", "mantissa or exponent", "One part of a float."),
    (
        rf"v_div_scale_{_FP}",
        "scale a division",
        "Brings numerator and denominator of {t} into a"
        " range where the quotient can be refined; first step of an exact division.",
    ),
    (
        rf"v_div_fmas_{_FP}",
        "multiply-add of a division",
        "A fused multiply-add that undoes the scaling if VCC is set.",
    ),
    (rf"v_div_fixup_{_FP}", "end of a division", "Corrects signs, zeros, infinities and NaN."),
    (
        r"v_cvt_pk_(?P<t>\w+?)_(?P<s>[fiub]\w+)",
        "convert and pack",
        "Converts two values and packs them into one register.",
    ),
    (
        r"v_cvt_pkrtz_f16_f32|v_cvt_pk_rtz_f16_f32",
        "convert and pack",
        "Two f32 to two f16 in one register, rounded to zero.",
    ),
    (r"v_cvt_f32_ubyte(?P<n>\d)", "convert a byte", "Byte {n} of a register as f32."),
    (
        r"v_cvt(?:_\w+?)?_(?P<t>bf16|[fiu]\d+|fp8|bf8)_(?P<s>bf16|[fiu]\d+|fp8|bf8)",
        "convert",
        "Converts {s} to {t}.",
    ),
    (
        r"v_cmpx?_class_(?P<t>f\d+)",
        "class of a float",
        "Tests a float for classes in a mask (NaN, infinite, zero, denormal …); one bit per lane.",
    ),
    (
        rf"v_cmpx?_(?P<c>\w+?)_{_T}",
        "compare: {c}",
        "Compares {t}; writes one bit per lane to VCC or an SGPR pair (cmpx: to EXEC, which"
        " deactivates lanes).",
    ),
    (r"v_(?:dual_)?(?P<o>and|or|xor|not|xnor)_b(?P<n>\d+)", "bitwise {o}", "{o} of {n} bits."),
    (r"v_and_or_b32", "and, or", "(a and b) or c."),
    (r"v_or3_b32", "or of three", "a or b or c."),
    (r"v_xor3_b32", "xor of three", "a xor b xor c."),
    (r"v_xad_u32", "xor, add", "(a xor b) + c."),
    (r"v_add3_u32", "add three", "a + b + c."),
    (r"v_lshl_add_u(?P<n>\d+)", "shift, add", "(a << b) + c in {n} bits: addresses."),
    (r"v_add_lshl_u32", "add, shift", "(a + b) << c."),
    (r"v_lshl_or_b32", "shift, or", "(a << b) or c."),
    (
        r"v_(?:dual_)?lshlrev_b(?P<n>\d+)",
        "shift left",
        "b << a of {n} bits; the amount is the first operand.",
    ),
    (r"v_lshrrev_b(?P<n>\d+)", "shift right", "b >> a of {n} bits, filled with zeros."),
    (
        r"v_ashrrev_i(?P<n>\d+)",
        "arithmetic shift right",
        "b >> a of {n} bits, filled with the sign.",
    ),
    (r"v_bfe_(?P<t>[iu])32", "extract bits", "A bit field of a word, by offset and width."),
    (r"v_bfi_b32", "insert bits", "(a and b) or (not a and c): bits of b into c."),
    (r"v_bfm_b32", "bit mask", "A mask of the given number of ones, shifted."),
    (r"v_bfrev_b32", "reverse bits", "Reverses the bits of a word."),
    (r"v_alignb(?:it|yte)_b32", "align", "32 bits of two registers, starting at an offset."),
    (r"v_pack_b32_f16", "pack", "Two 16-bit values into one register."),
    (
        r"v_ffb[hl]_[iu]32|v_c[lt]z_i32_b32|v_cls_i32",
        "find a bit",
        "The position of the first set bit, from either end.",
    ),
    (r"v_bcnt_u32_b32", "count bits", "Counts the set bits and adds them to an operand."),
    (
        r"v_sad_\w+|v_msad_\w+",
        "sum of absolute differences",
        "Of packed bytes or words, plus a sum.",
    ),
    (r"v_nop", "no operation", "Does nothing for one slot of the vector unit."),
)
MATRIX: tuple[Row, ...] = (
    (
        r"v_mfma_(?:scale_)?(?P<r>[a-z]+\d+)_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_?(?:\d+b_)?(?P<t>\w+)",
        "matrix multiply-add {m} x {n} x {k}",
        "D = A · B + C by a whole wave: A is {m} x {k}, B"
        " {k} x {n}, of {t}; C and D are {m} x {n} of {r}, distributed over the wave's registers.",
    ),
    (
        r"v_smfmac_(?P<r>[a-z]+\d+)_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_(?P<t>\w+)",
        "sparse matrix multiply-add {m} x {n} x {k}",
        "As MFMA, with half of A known to be zero, given by an index.",
    ),
    (
        r"v_wmma_(?P<r>[a-z]+\d+)_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_(?P<t>\w+)",
        "wave matrix multiply-add {m} x {n} x {k}",
        "D = A · B + C by a whole wave: operands of {t},"
        " results of {r}, distributed over the wave's registers.",
    ),
    (
        r"v_swmmac_(?P<r>[a-z]+\d+)_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_(?P<t>\w+)",
        "sparse wave matrix multiply-add",
        "As WMMA, with half of A known to be zero.",
    ),
)
