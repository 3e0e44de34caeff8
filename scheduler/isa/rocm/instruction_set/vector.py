"""Rows of the vector unit's instructions, and of the matrix instructions."""

from __future__ import annotations

from scheduler.isa.instructions import Kind
from scheduler.isa.rocm.instruction_set.row import Effect, IssueClass, Row

_T = r"(?P<t>bf16|[fiub]\d+)"
_FP = r"(?P<t>bf16|f16|f32|f64)"

MATRIX: tuple[Row, ...] = (
    Row(
        r"v_mfma_(?:scale_)?(?P<r>[a-z]+\d+)_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_?(?:\d+b_)?(?P<t>\w+)",
        "matrix multiply-add {m} x {n} x {k}",
        "D = A · B + C by a whole wave: A is {m} x {k}, B"
        " {k} x {n}, of {t}; C and D are {m} x {n} of {r}, distributed over the wave's registers.",
        Kind.MATRIX,
        IssueClass.MATRIX,
    ),
    Row(
        r"v_smfmac_(?P<r>[a-z]+\d+)_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_(?P<t>\w+)",
        "sparse matrix multiply-add {m} x {n} x {k}",
        "As MFMA, with half of A known to be zero, given by an index.",
        Kind.MATRIX,
        IssueClass.MATRIX,
        accumulates=True,
    ),
    Row(
        r"v_wmma_(?:scale_)?(?P<r>[a-z]+\d+)_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_(?P<t>\w+)",
        "wave matrix multiply-add {m} x {n} x {k}",
        "D = A · B + C by a whole wave: operands of {t},"
        " results of {r}, distributed over the wave's registers.",
        Kind.MATRIX,
        IssueClass.MATRIX,
    ),
    Row(
        r"v_swmmac_(?P<r>[a-z]+\d+)_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_(?P<t>\w+)",
        "sparse wave matrix multiply-add",
        "As WMMA, with half of A known to be zero.",
        Kind.MATRIX,
        IssueClass.MATRIX,
        accumulates=True,
    ),
    Row(r"v_(?:mfma|smfmac|wmma|swmmac)\w*", kind=Kind.MATRIX),
)
VECTOR: tuple[Row, ...] = (
    Row(r"v_(?:dual_)?mov_b(?P<n>\d+)", "move", "Copies {n} bits in each lane."),
    Row(r"v_pk_mov_b32", "packed move", "Copies two words into a pair of registers."),
    Row(r"v_accvgpr_read_b32", "read accumulator", "Copies an accumulation register to a VGPR."),
    Row(r"v_accvgpr_write_b32", "write accumulator", "Copies a VGPR to an accumulation register."),
    Row(r"v_accvgpr_mov_b32", "move accumulator", "Copies between accumulation registers."),
    Row(
        r"v_(?:dual_)?cndmask_b(?P<n>16|32)",
        "select",
        "Takes the second operand where the lane's bit"
        " of the mask (VCC or an SGPR pair) is set, else the first.",
    ),
    Row(
        r"v_readfirstlane_b32",
        "read first lane",
        "Copies the value of the first active lane to an SGPR.",
    ),
    Row(r"v_readlane_b32", "read lane", "Copies one lane's value to an SGPR."),
    Row(r"v_writelane_b32", "write lane", "Writes an SGPR's value into one lane."),
    Row(r"v_perm_b32", "permute bytes", "Selects four bytes of two registers by a selector."),
    Row(r"v_permlane(?P<n>\w+)_b32", "permute lanes", "Lanes of a row exchange values."),
    Row(r"v_swap_b32", "swap", "Exchanges two registers."),
    Row(
        r"v_mbcnt_(?P<h>lo|hi)_u32_b32",
        "masked bit count",
        "Counts the bits of the {h} half of a mask below this lane: computes the lane index.",
    ),
    Row(
        rf"v_pk_(?P<o>add|mul|sub|min|max|fma)_{_T}",
        "packed {o}",
        "{o} on two values of {t} in each lane at once.",
    ),
    Row(r"v_pk_(?P<o>lshlrev|lshrrev|ashrrev)_b?i?16", "packed shift", "Shifts two 16-bit values."),
    Row(
        rf"v_(?:dual_)?fmac_{_FP}",
        "fused multiply-add in place",
        "d = a · b + d, rounded once, of {t}.",
        accumulates=True,
    ),
    Row(r"v_(?:dual_)?(?:pk_)?f?mac_\w+", accumulates=True),
    Row(rf"v_(?:dual_)?fma_{_FP}", "fused multiply-add", "a · b + c, rounded once, of {t}."),
    Row(
        rf"v_(?:dual_)?fmaak_{_FP}",
        "fused multiply-add",
        "a · b + constant, of {t}; the constant follows the instruction (8 bytes).",
    ),
    Row(
        rf"v_(?:dual_)?fmamk_{_FP}",
        "fused multiply-add",
        "a · constant + b, of {t}; the constant follows the instruction (8 bytes).",
    ),
    Row(
        r"v_(?:fma|mad)_mix(?P<h>lo|hi)?_f16",
        "mixed multiply-add",
        "a · b + c with operands of f16"
        " or f32, the result rounded to f16 in one half of the register.",
    ),
    Row(
        r"v_(?:fma|mad)_mix_f32",
        "mixed multiply-add",
        "a · b + c with operands of f16 or f32, computed in f32.",
    ),
    Row(rf"v_(?:dual_)?add_{_T}", "add", "a + b of {t} in each lane."),
    Row(r"v_add_nc_u(?P<n>\d+)", "add", "a + b of {n}-bit integers; no carry is kept."),
    Row(
        r"v_(?P<o>add|sub|subrev)_co_u32",
        "{o} with carry out",
        "32-bit integers; the carry goes to"
        " VCC or an SGPR pair, for the next word of a wider number.",
    ),
    Row(
        r"v_(?P<o>addc_co|add_co_ci|subb_co|sub_co_ci|subbrev_co|subrev_co_ci)_u32",
        "with carry in and out",
        "The next word of a sum or difference of wider integers.",
    ),
    Row(rf"v_(?:dual_)?sub_{_T}", "subtract", "a - b of {t} in each lane."),
    Row(
        rf"v_(?:dual_)?subrev_{_T}",
        "subtract, reversed",
        "b - a of {t}: lets the minuend be the scalar operand.",
    ),
    Row(
        r"v_sub(?:rev)?_nc_u(?P<n>\d+)",
        "subtract",
        "A difference of {n}-bit integers without carry.",
    ),
    Row(r"v_(?:dual_)?mul_(?:legacy_|dx9_zero_)?(?P<t>f\d+|bf16)", "multiply", "a · b of {t}."),
    *(
        Row(
            f"v_mul_lo_(?P<t>{kinds})",
            "multiply, low half",
            "The low half of a product of {t}.",
            rate=rate,
        )
        for kinds, rate in (("u16", ""), ("u32|i32", "quarter"))
    ),
    Row(
        r"v_mul_hi_(?P<t>u32|i32)",
        "multiply, high half",
        "The high half of a product of {t}; how compilers divide by constants.",
        rate="quarter",
    ),
    Row(
        r"v_mul_(?:hi_)?(?P<t>[iu]32)_[iu]24",
        "24-bit multiply",
        "A product of 24-bit integers, at the full rate.",
    ),
    Row(
        r"v_mad_(?P<t>[iu]64)_[iu]32",
        "multiply-add",
        "A 64-bit product of 32-bit integers and a 64-bit sum.",
        rate="quarter",
    ),
    Row(
        r"v_mad_(?P<t>[iu]32)_[iu](?:24|16)",
        "multiply-add",
        "A product of narrow integers and a sum of 32 bits.",
    ),
    Row(r"v_mad(?:_legacy)?_(?P<t>[iu]16|f16|f32)", "multiply-add", "a · b + c of {t}."),
    *(
        Row(
            rf"v_dot(?P<n>\d){suffix}_(?P<r>\w+?)_(?P<t>\w+)",
            "dot product",
            "The sum of {n} products of packed values, added to an accumulator.",
            accumulates=accumulates,
        )
        for suffix, accumulates in (("c", True), ("", False))
    ),
    Row(r"v_(?:dual_)?dot\w*acc_\w+", accumulates=True),
    Row(
        r"v_cvt_pkaccum_u8_f32",
        "convert into a byte",
        "Rounds a value of f32 to a byte and puts it into one of a register's four.",
        accumulates=True,
    ),
    Row(rf"v_(?:dual_)?(?P<o>max|min)(?:imum|_num|imum3)?_{_T}", "{o}", "The {o} of two {t}."),
    Row(
        rf"v_(?P<o>max3|min3|med3|maxmin|minmax)(?:_num)?_{_T}",
        "{o}",
        "Of three values of {t}: the largest, the smallest or the one between.",
    ),
    Row(
        rf"v_(?P<o>floor|ceil|trunc|rndne|fract)_{_FP}",
        "round ({o})",
        "{t} rounded: down, up, to zero, to the nearest even; fract returns the fractional part.",
    ),
    Row(
        rf"v_(?P<o>exp|log)_{_FP}",
        "{o} to base 2",
        "2 to the power of a, or the binary logarithm, of"
        " {t}; an approximation by the transcendental unit.",
        rate="transcendental",
    ),
    Row(
        rf"v_rcp(?:_iflag)?_{_FP}",
        "reciprocal",
        "1 / a of {t}, an approximation.",
        rate="transcendental",
    ),
    Row(
        rf"v_rsq_{_FP}",
        "reciprocal square root",
        "1 / √a of {t}, an approximation.",
        rate="transcendental",
    ),
    Row(rf"v_sqrt_{_FP}", "square root", "√a of {t}, an approximation.", rate="transcendental"),
    Row(
        rf"v_(?P<o>sin|cos)_{_FP}",
        "{o}",
        "{o} of a in turns (a · 2π), an approximation.",
        rate="transcendental",
    ),
    Row(r"v_(?:s_)?(?:exp|log|rcp|rsq|sqrt|sin|cos|tanh)_\w+", rate="transcendental"),
    Row(rf"v_ldexp_{_FP}", "scale by a power of 2", "a · 2ⁿ of {t}."),
    Row(rf"v_frexp_(?P<o>mant|exp_i\d+)_{_FP}", "mantissa or exponent", "One part of a float."),
    Row(
        rf"v_div_scale_{_FP}",
        "scale a division",
        "Brings numerator and denominator of {t} into a"
        " range where the quotient can be refined; first step of an exact division.",
    ),
    Row(
        rf"v_div_fmas_{_FP}",
        "multiply-add of a division",
        "A fused multiply-add that undoes the scaling if VCC is set.",
    ),
    Row(rf"v_div_fixup_{_FP}", "end of a division", "Corrects signs, zeros, infinities and NaN."),
    Row(
        r"v_cvt_pk_(?P<t>\w+?)_(?P<s>[fiub]\w+)",
        "convert and pack",
        "Converts two values and packs them into one register.",
    ),
    Row(
        r"v_cvt_pkrtz_f16_f32|v_cvt_pk_rtz_f16_f32",
        "convert and pack",
        "Two f32 to two f16 in one register, rounded to zero.",
    ),
    Row(r"v_cvt_f32_ubyte(?P<n>\d)", "convert a byte", "Byte {n} of a register as f32."),
    Row(
        r"v_cvt(?:_\w+?)?_(?P<t>bf16|[fiu]\d+|fp8|bf8)_(?P<s>bf16|[fiu]\d+|fp8|bf8)",
        "convert",
        "Converts {s} to {t}.",
    ),
    Row(
        r"v_cmpx?_class_(?P<t>f\d+)",
        "class of a float",
        "Tests a float for classes in a mask (NaN, infinite, zero, denormal …); one bit per lane.",
    ),
    Row(
        rf"v_cmpx?_(?P<c>\w+?)_{_T}",
        "compare: {c}",
        "Compares {t}; writes one bit per lane to VCC or an SGPR pair (cmpx: to EXEC, which"
        " deactivates lanes).",
    ),
    Row(r"v_(?:dual_)?(?P<o>and|or|xor|not|xnor)_b(?P<n>\d+)", "bitwise {o}", "{o} of {n} bits."),
    Row(r"v_and_or_b32", "and, or", "(a and b) or c."),
    Row(r"v_or3_b32", "or of three", "a or b or c."),
    Row(r"v_xor3_b32", "xor of three", "a xor b xor c."),
    Row(r"v_xad_u32", "xor, add", "(a xor b) + c."),
    Row(r"v_add3_u32", "add three", "a + b + c."),
    Row(r"v_lshl_add_u(?P<n>\d+)", "shift, add", "(a << b) + c in {n} bits: addresses."),
    Row(r"v_add_lshl_u32", "add, shift", "(a + b) << c."),
    Row(r"v_lshl_or_b32", "shift, or", "(a << b) or c."),
    Row(
        r"v_(?:dual_)?lshlrev_b(?P<n>\d+)",
        "shift left",
        "b << a of {n} bits; the amount is the first operand.",
    ),
    Row(r"v_lshrrev_b(?P<n>\d+)", "shift right", "b >> a of {n} bits, filled with zeros."),
    Row(
        r"v_ashrrev_i(?P<n>\d+)",
        "arithmetic shift right",
        "b >> a of {n} bits, filled with the sign.",
    ),
    Row(r"v_bfe_(?P<t>[iu])32", "extract bits", "A bit field of a word, by offset and width."),
    Row(r"v_bfi_b32", "insert bits", "(a and b) or (not a and c): bits of b into c."),
    Row(r"v_bfm_b32", "bit mask", "A mask of the given number of ones, shifted."),
    Row(r"v_bfrev_b32", "reverse bits", "Reverses the bits of a word."),
    Row(r"v_alignb(?:it|yte)_b32", "align", "32 bits of two registers, starting at an offset."),
    Row(r"v_pack_b32_f16", "pack", "Two 16-bit values into one register."),
    Row(
        r"v_ffb[hl]_[iu]32|v_c[lt]z_i32_b32|v_cls_i32",
        "find a bit",
        "The position of the first set bit, from either end.",
    ),
    Row(r"v_bcnt_u32_b32", "count bits", "Counts the set bits and adds them to an operand."),
    Row(
        r"v_sad_\w+|v_msad_\w+",
        "sum of absolute differences",
        "Of packed bytes or words, plus a sum.",
    ),
    Row(
        r"v_nop",
        "no operation",
        "Does nothing for one slot of the vector unit.",
        effect=Effect.NOTHING,
    ),
    Row(r"v_pipeflush", effect=Effect.NOTHING),
)
