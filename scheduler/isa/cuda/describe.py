"""Short descriptions of SASS instructions, written for the names that kernels use.

NVIDIA lists the names in "CUDA Binary Utilities", chapter "Instruction Set Reference", without
further documentation; "PTX ISA" documents what PTX compiles to them. Modifiers follow dots.
"""

from __future__ import annotations

import re

from scheduler.isa.describe import Description, Row, look_up

_ROWS: tuple[Row, ...] = (
    (r"FADD2?", "add", "a + b of 32-bit floats (FADD2: of two)."),
    (r"FMUL2?", "multiply", "a · b of 32-bit floats (FMUL2: of two)."),
    (r"FFMA2?", "fused multiply-add", "a · b + c of 32-bit floats, rounded once (FFMA2: of two)."),
    (r"FHADD|FHFMA", "mixed arithmetic", "32-bit and 16-bit floats in one operation."),
    (r"FMNMX3?", "minimum or maximum", "Of two or three 32-bit floats; selected by a predicate."),
    (r"FSEL", "select", "One of two 32-bit floats, by a predicate."),
    (r"FSET", "compare", "Compares 32-bit floats; the result is a mask or 1.0."),
    (r"FSETP", "compare", "Compares 32-bit floats; the result is a predicate."),
    (r"FCHK", "check a division", "Tests whether a quotient needs the slow path of division."),
    (r"FSWZADD", "swizzled add", "Adds values of neighbouring lanes with signs by a pattern."),
    (r"MUFU", "special function", "Reciprocal, square roots, sine, cosine, powers and logarithms to"
     " base 2, by approximation; selected by the modifier."),
    (r"FRND", "round", "A float rounded to a whole number."),
    (r"D(?P<o>ADD|MUL|FMA|SETP|MNMX)", "double precision", "Arithmetic or comparison of"
     " 64-bit floats."),
    (r"HADD2", "packed add", "a + b of two 16-bit floats; with .F32 also how they are widened."),
    (r"HMUL2", "packed multiply", "a · b of two 16-bit floats (.BF16_V2: bfloat16)."),
    (r"HFMA2", "packed multiply-add", "a · b + c of two 16-bit floats; also a way to write"
     " constants."),
    (r"HMNMX2", "packed minimum or maximum", "Of two 16-bit floats each."),
    (r"HSETP?2", "packed compare", "Compares two 16-bit floats."),
    (r"HMMA", "matrix multiply-add", "D = A · B + C by a warp on the tensor cores, with"
     " operands of 16"
     " bits (or TF32); the modifiers give m n k and the types."),
    (r"IMMA", "matrix multiply-add of integers", "D = A · B + C by a warp on the tensor cores."),
    (r"DMMA", "matrix multiply-add of doubles", "D = A · B + C of 64-bit floats by a warp."),
    (r"BMMA", "matrix multiply-add of bits", "Counts of matching bits by a warp."),
    (r"[QO]MMA", "matrix multiply-add of narrow floats", "Operands of 8, 6 or 4 bits, by a warp."),
    (r"[HIQB]GMMA", "warpgroup matrix multiply-add", "Four warps multiply tiles that lie in shared"
     " memory (A also in registers), asynchronously until a WARPGROUP wait."),
    (r"UTC[HQIO]MMA", "tensor core matrix multiply-add", "One thread starts a product whose results"
     " lie in tensor memory."),
    (r"MOVM", "move matrix", "Transposes an 8 x 8 tile across the lanes of a warp."),
    (r"IADD(?:3|64)?", "add", "Integers; IADD3 adds three and may write carries to predicates."),
    (r"VIADD", "add", "Adds two 32-bit integers."),
    (r"IMAD", "multiply-add", "a · b + c of 32-bit integers (.WIDE: a sum of 64 bits; .MOV"
     " and .SHL:"
     " a way to copy or shift that leaves other pipes free)."),
    (r"IABS", "absolute value", "Of a 32-bit integer."),
    (r"IMNMX|VIMNMX3?|VIADDMNMX", "minimum or maximum", "Of 32-bit integers; selected by a"
     " predicate"
     " (VIADDMNMX: of a sum)."),
    (r"IDP(?:4A|2A)?", "dot product", "Of four bytes or two halves, plus a sum."),
    (r"ISETP", "compare", "Compares 32-bit integers; the result is a predicate (.EX: the next"
     " word of"
     " a wider comparison)."),
    (r"ISCADD|LEA", "scaled add", "(a << n) + b: addresses (.HI: the upper word)."),
    (r"LOP3?", "bitwise logic", "Any bitwise function of three words; the immediate is its truth"
     " table (.LUT)."),
    (r"PLOP3", "logic of predicates", "Any function of three predicates."),
    (r"SHF", "funnel shift", "Shifts a pair of words and returns one of them."),
    (r"SHL|SHR", "shift", "Shifts a word."),
    (r"BMSK", "bit mask", "A mask of the given number of ones."),
    (r"BREV", "reverse bits", "Reverses the bits."),
    (r"FLO", "find leading one", "The position of the highest set bit."),
    (r"POPC", "count bits", "Counts the set bits."),
    (r"SGXT", "extend the sign", "The given number of bits as a signed integer."),
    (r"PRMT", "permute bytes", "Selects four bytes of two words by a selector."),
    (r"SEL", "select", "One of two words, by a predicate."),
    (r"MOV(?:32I)?", "move", "Copies a register or a constant."),
    (r"CS2R", "read a special register", "As S2R, for registers with a short latency; also a way"
     " to clear"
     " two registers."),
    (r"S2R", "read a special register", "Thread and block indices, clocks; the latency is"
     " long and tracked by a scoreboard."),
    (r"S2UR", "read a special register", "As S2R, into a uniform register."),
    (r"R2UR", "to a uniform register", "Copies a uniform value into a uniform register."),
    (r"R2P|P2R", "predicates and registers", "Copies predicates into a register's bits, or back."),
    (r"I2F(?:P)?", "convert", "An integer as a float."),
    (r"F2I(?:P)?", "convert", "A float as an integer."),
    (r"F2F(?:P)?", "convert", "Between formats of floats (F2FP: two at once, packed)."),
    (r"I2I(?:P)?", "convert", "Between widths of integers, with saturation."),
    (r"SHFL", "warp shuffle", "Lanes of a warp exchange values (.BFLY: with the lane whose number"
     " differs in some bits)."),
    (r"VOTE", "vote", "Whether all or any lanes' predicates hold, or a mask of them."),
    (r"MATCH", "match", "Which lanes have the same value."),
    (r"REDUX|CREDUX", "reduce in a warp", "A sum, minimum, maximum or logic of all lanes'"
     " integers."),
    (r"LDG|LD", "load", "Reads global memory (.E: 64-bit address; .64, .128: bytes of a lane). The"
     " warp continues; the first use waits on a scoreboard."),
    (r"STG|ST", "store", "Writes global memory."),
    (r"LDGSTS", "asynchronous copy", "From global to shared memory, bypassing the registers"
     " (cp.async);"
     " LDGDEPBAR and DEPBAR wait for it."),
    (r"LDS", "shared memory load", "Lanes that access the same bank are serialized."),
    (r"STS", "shared memory store", "Lanes that access the same bank are serialized."),
    (r"LDSM", "load matrix", "Loads 8 x 8 tiles of shared memory in the layout of tensor cores"
     " (ldmatrix; .T: transposed)."),
    (r"STSM", "store matrix", "Tiles of the tensor cores' layout into shared memory."),
    (r"LDL|STL", "local memory", "Private memory of a thread, which lies in global memory:"
     " spills and"
     " arrays with unknown indices."),
    (r"U?LDCU?", "load a constant", "Kernel arguments and constants, through the constant cache."),
    (r"ATOMG?|RED(?:G)?", "atomic", "Updates a word of global memory atomically (RED: without a"
     " result)."),
    (r"ATOMS", "shared memory atomic", "Updates a word of shared memory atomically."),
    (r"UTMALDG|UTMASTG|UTMAREDG|UTMAPF", "tensor memory access", "One thread starts the copy of a"
     " whole tile between global and shared memory by a descriptor (TMA)."),
    (r"UBLKCP|UBLKRED|UBLKPF", "bulk copy", "One thread starts the copy of a run of bytes."),
    (r"CCTLL?", "cache control", "Invalidates or writes back cache lines."),
    (r"BAR", "barrier", "Warps of a block wait for each other."),
    (r"SYNCS", "mbarrier", "Arrives at, or tests, a barrier in shared memory."),
    (r"DEPBAR", "wait for a scoreboard", "Waits until at most the given number of operations"
     " are pending."),
    (r"LDGDEPBAR", "commit copies", "Closes a group of asynchronous copies."),
    (r"MEMBAR|FENCE|ERRBAR", "fence", "Orders this thread's memory accesses."),
    (r"WARPSYNC", "synchronise a warp", "Lanes of a mask wait for each other."),
    (r"WARPGROUP", "warpgroup", "Arrives before, or waits for, warpgroup products."),
    (r"USETMAXREG", "registers of a warp", "Gives registers back, or takes more (setmaxnreg)."),
    (r"NANOSLEEP", "sleep", "Sleeps for about the given number of nanoseconds."),
    (r"YIELD", "yield", "Lets the other side of a divergent branch continue."),
    (r"NOP", "no operation", "Does nothing; used as padding."),
    (r"BRA|BRX|BRXU|JMP|JMX|JMXU", "branch", "Continues at an address if its predicate holds."),
    (r"BSSY", "begin of divergence", "Records where divergent lanes reconverge."),
    (r"BSYNC", "end of divergence", "Waits until the lanes that BSSY recorded arrive."),
    (r"BREAK", "leave divergence", "Removes lanes from those that a BSYNC waits for."),
    (r"BMOV", "convergence barrier", "Copies a convergence barrier."),
    (r"CALL|RET|RPCMOV", "call or return", "Of a function that was not inlined."),
    (r"EXIT|KILL", "end", "Ends the thread."),
    (r"BPT", "trap", "Stops for a debugger, or with an error."),
    (r"UCGABAR_\w+", "cluster barrier", "Blocks of a cluster wait for each other."),
    (r"ACQBULK|PREEXIT", "dependent launch", "Waits for, or lets begin, the next grid."),
    (r"U(?P<o>[A-Z]\w+)", "uniform {o}", "As {o} for uniform values: done once per warp, in"
     " uniform registers."),
)  # fmt: skip
_MODIFIERS = {
    "MUFU": {
        "RCP": "Here: 1 / a.",
        "RSQ": "Here: 1 / √a.",
        "SQRT": "Here: √a.",
        "EX2": "Here: 2 to the power of a.",
        "LG2": "Here: the binary logarithm.",
        "SIN": "Here: the sine.",
        "COS": "Here: the cosine.",
        "TANH": "Here: the hyperbolic tangent.",
    }
}


def describe(mnemonic: str) -> Description | None:
    """Describe a SASS instruction; None for unknown names, including PTX."""
    name, *modifiers = mnemonic.split(".")
    description = look_up(_ROWS, name, {})
    own = _MODIFIERS.get(name, {})
    here = [own[modifier] for modifier in modifiers if modifier in own]
    if description is None or not here:
        return description
    return Description(description.title, f"{description.text} {' '.join(here)}")


_RATED: tuple[tuple[str, str], ...] = (
    (r"FADD|FMUL|FFMA", "f32"),
    (r"DADD|DMUL|DFMA", "f64"),
    (r"HADD2|HMUL2|HFMA2", "f16"),
)


def rate_dtype(mnemonic: str) -> str:
    """Return the dtype whose published arithmetic rate an instruction has, "" if there is none; its
    multiply-adds count as two operations of that rate."""
    name = mnemonic.partition(".")[0]
    return next((dtype for pattern, dtype in _RATED if re.fullmatch(pattern, name)), "")
