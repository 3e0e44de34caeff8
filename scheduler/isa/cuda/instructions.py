"""Classifies instructions by mnemonic: SASS of sm_80 to sm_120, and PTX.

SASS: CUDA Binary Utilities, "Instruction set reference". PTX: PTX ISA.
"""

from __future__ import annotations

import re

from scheduler.isa.instructions import Kind

# The first part of the mnemonic, before its first dot.
_SASS = {
    Kind.MATRIX: "HMMA IMMA DMMA BMMA QMMA OMMA HGMMA IGMMA QGMMA BGMMA UTCHMMA UTCQMMA UTCIMMA",
    # Arguments and constants come through the constant cache, as with AMD's s_load.
    Kind.SCALAR: "LDC LDCU ULDC",
    Kind.LDS: "LDS STS LDSM STSM ATOMS MOVM",
    # Copies between global and shared memory count as global.
    Kind.GLOBAL: "LDG STG LD ST ATOM ATOMG RED REDG CCTL CCTLL PREFETCH LDGSTS UBLKCP UBLKRED"
    " UBLKPF UTMALDG UTMASTG UTMAREDG UTMAPF",
    Kind.SCRATCH: "LDL STL",
    Kind.WAIT: "BAR DEPBAR MEMBAR LDGDEPBAR NANOSLEEP WARPSYNC FENCE SYNCS ERRBAR WARPGROUP ARRIVES"
    " YIELD NOP UCGABAR_ARV UCGABAR_WAIT ACQBULK PREEXIT UTMACMDFLUSH USETMAXREG",
    Kind.BRANCH: "BRA BRX BRXU JMP JMX JMXU EXIT RET CALL BSSY BSYNC BREAK KILL BPT RPCMOV BMOV",
}
_BY_NAME = {name: kind for kind, names in _SASS.items() for name in names.split()}
_UNIFORM = re.compile(r"U[A-Z]|R2UR|S2UR|VOTEU|CREDUX")
# The first matching prefix decides, so longer prefixes come first.
_PTX = (
    ("mma", Kind.MATRIX),
    ("wgmma.mma", Kind.MATRIX),
    ("wgmma.", Kind.WAIT),
    ("tcgen05", Kind.MATRIX),
    ("ld.shared", Kind.LDS),
    ("st.shared", Kind.LDS),
    ("ldmatrix", Kind.LDS),
    ("stmatrix", Kind.LDS),
    ("atom.shared", Kind.LDS),
    ("red.shared", Kind.LDS),
    ("cp.async.commit", Kind.WAIT),
    ("cp.async.wait", Kind.WAIT),
    ("cp.async.mbarrier", Kind.WAIT),
    ("cp.async.bulk.commit", Kind.WAIT),
    ("cp.async.bulk.wait", Kind.WAIT),
    ("cp.", Kind.GLOBAL),
    ("prefetch", Kind.GLOBAL),
    ("ld.param", Kind.SCALAR),
    ("st.param", Kind.SCALAR),
    ("ld.const", Kind.SCALAR),
    ("ld.local", Kind.SCRATCH),
    ("st.local", Kind.SCRATCH),
    ("ld.", Kind.GLOBAL),
    ("st.", Kind.GLOBAL),
    ("atom.", Kind.GLOBAL),
    ("red.", Kind.GLOBAL),
    ("bar", Kind.WAIT),
    ("membar", Kind.WAIT),
    ("fence", Kind.WAIT),
    ("mbarrier", Kind.WAIT),
    ("griddepcontrol", Kind.WAIT),
    ("nanosleep", Kind.WAIT),
    ("setmaxnreg", Kind.WAIT),
    ("bra", Kind.BRANCH),
    ("brx", Kind.BRANCH),
    ("call", Kind.BRANCH),
    ("ret", Kind.BRANCH),
    ("exit", Kind.BRANCH),
)
_ENDS = frozenset({"EXIT", "RET", "KILL", "ret", "exit"})
_JUMPS = frozenset({"BRA", "BRX", "JMP", "JMX", "bra", "brx"})


def kind_of(mnemonic: str) -> Kind:
    """Return the class of an instruction; uniform ones are scalar, as they execute once per
    warp."""
    if mnemonic[:1].islower():
        return next((kind for prefix, kind in _PTX if mnemonic.startswith(prefix)), Kind.VECTOR)
    name = mnemonic.partition(".")[0]
    if name in _BY_NAME:
        return _BY_NAME[name]
    return Kind.SCALAR if _UNIFORM.match(name) else Kind.VECTOR


def falls_through(mnemonic: str, predicate: str) -> bool:
    """Whether the next instruction may be executed after it."""
    name = mnemonic.partition(".")[0]
    return bool(predicate) or name not in _ENDS | _JUMPS
