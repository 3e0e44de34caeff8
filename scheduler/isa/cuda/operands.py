"""The registers that a SASS instruction reads and writes, by its mnemonic and its operands.

A listing names the first register of an operand; the number of registers follows from the
instruction: its access size, its types, the shape of a matrix product (CUDA Binary Utilities,
"Instruction set reference"; PTX ISA, the fragments of ``mma``). An unknown instruction is assumed
to write one register, its first operand, and to read the others.
"""

from __future__ import annotations

import re


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_RESULTLESS = _names(
    "ST STG STS STL STSM RED REDG REDAS ISETP FSETP DSETP HSETP2 PSETP FCHK R2P BAR BRX BRXU JMX"
    " CALL RET NANOSLEEP WARPSYNC CCTL CCTLL PREFETCH ERRBAR DEPBAR MEMBAR KILL EXIT BRA"
)
_STORES = _names("ST STG STS STL STSM RED REDG REDAS ATOM ATOMG ATOMS")
_JUMPS_TO_PAIRS = _names("BRX JMX CALL RET")
_DOUBLES = _names("DADD DMUL DFMA DMNMX DSETP")
_PACKED = _names("FADD2 FMUL2 FFMA2")
# Registers of A, B and of the result, by shape; an f16 result takes half as many.
_MATRIX = {
    "HMMA.16816": (4, 2, 4),
    "HMMA.1688": (2, 1, 4),
    "HMMA.1688.TF32": (4, 2, 4),
    "HMMA.1684.TF32": (2, 1, 4),
    "IMMA.16816": (2, 1, 4),
    "IMMA.8816": (1, 1, 2),
    "DMMA.884": (2, 2, 4),
}
_ANY_MATRIX = (4, 2, 4)
_MATRIX_NAMES = _names("HMMA IMMA DMMA BMMA QMMA OMMA")
_CONVERTED = _names("F64 F32 F16 S64 U64 BF16")
_WARPGROUP = re.compile(r"64x(\d+)x\d+")
_PREDICATE = re.compile(r"!?U?P(?:\d|T|R)\b")
_RESULT = re.compile(r"R(?:\d+|Z)(?:\.\w+)?$")
_REGISTER = re.compile(r"\bR(\d+)((?:\.\w+)*)")
_WIDE = {"64": 2, "128": 4, "256": 8, "F64": 2, "S64": 2, "U64": 2}  # of memory accesses
_MATRICES = {"4": 4, "2": 2}  # of LDSM and STSM, 8 by 8 each


def registers(mnemonic: str, operands: str) -> tuple[int, int]:
    """Return masks of the registers read and written: bit n is Rn."""
    name, *suffixes = mnemonic.split(".")
    # Brackets contain no commas.
    parts = [part.strip() for part in operands.split(",") if part.strip()]
    while parts and _PREDICATE.match(parts[0]):
        parts.pop(0)
    written = 0
    reads = 0
    results, sources = _widths(name, suffixes)
    if name not in _RESULTLESS and parts and _RESULT.match(parts[0]):
        written = _mask(parts[0], results)
        if ".H" in parts[0]:  # it keeps one half
            reads |= written
        parts.pop(0)
        if "ENL2" in suffixes and parts and _RESULT.match(parts[0]):  # a load in two halves
            written |= _mask(parts.pop(0), results)
    # A warpgroup's A is usually in shared memory, addressed by a descriptor.
    values = 1 if name.endswith("GMMA") and parts and "[" in parts[0] else 0
    for part in parts:
        if _PREDICATE.match(part):
            continue
        if "[" in part:
            reads |= _mask(part, 1)
            continue
        reads |= _mask(part, sources[min(values, len(sources) - 1)])
        values += 1
    return reads, written


def _widths(name: str, suffixes: list[str]) -> tuple[int, tuple[int, ...]]:
    """Return the registers of the result, and of each source that is not an address; the last count
    also applies to all further sources."""
    if name in _MATRIX_NAMES or name.endswith("GMMA"):
        return _matrix_widths(name, suffixes)
    if name in ("LDSM", "STSM"):
        width = next((_MATRICES[one] for one in suffixes if one in _MATRICES), 1)
        return width, (width,)
    if name.startswith(("LD", "ATOM")) or name in _STORES:
        width = next((_WIDE[one] for one in suffixes if one in _WIDE), 1)
        if "ENL2" in suffixes:  # 32 bytes, as two operands
            width = 4
        return width, (width,)
    if name == "IMAD" and {"WIDE", "HI"} & set(suffixes):
        return (2 if "WIDE" in suffixes else 1), (1, 1, 2)
    if name == "CS2R":
        return (1 if "32" in suffixes else 2), (1,)
    if name in _DOUBLES or name in _PACKED or name in _JUMPS_TO_PAIRS or "64" in suffixes:
        return 2, (2,)
    is_double = 2 if "F64" in suffixes else 1
    is_long = 2 if {"S64", "U64"} & set(suffixes) else 1
    if name == "FRND":
        return is_double, (is_double,)
    if name == "F2I":
        return is_long, (is_double,)
    if name == "I2F":
        return is_double, (is_long,)
    if name == "F2F":  # the result's type comes first
        types = [suffix for suffix in suffixes if suffix in _CONVERTED]
        return (2 if types[:1] == ["F64"] else 1), (2 if types[1:2] == ["F64"] else 1,)
    if name in ("ISETP", "IMNMX", "VIMNMX") and {"S64", "U64"} & set(suffixes):
        return 2, (2,)
    return 1, (1,)


def _matrix_widths(name: str, suffixes: list[str]) -> tuple[int, tuple[int, ...]]:
    if name.endswith("GMMA"):  # four warps: 64 rows; an A in registers has 16 columns
        shape = next((match for suffix in suffixes if (match := _WARPGROUP.match(suffix))), None)
        of_f32 = int(shape[1]) // 2 if shape else 1
        result = of_f32 // 2 if suffixes[1:2] == ["F16"] else of_f32
        return result, (4, result)
    kind = ".TF32" if "TF32" in suffixes else ""
    a, b, result = _MATRIX.get(f"{name}.{suffixes[0] if suffixes else ''}{kind}", _ANY_MATRIX)
    if suffixes[1:2] == ["F16"]:
        result //= 2
    if "SP" in suffixes:
        b *= 2
    return result, (a, b, result, 1)


def _mask(text: str, width: int) -> int:
    mask = 0
    for match in _REGISTER.finditer(text):
        is_pair = "64" in match[2].split(".") or "F32x2" in match[2]
        mask |= ((1 << max(width, 2 if is_pair else 1)) - 1) << int(match[1])
    return mask
