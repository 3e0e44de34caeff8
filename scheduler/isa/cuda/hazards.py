"""Performance hazards in a function's instructions."""

from __future__ import annotations

import re
from collections import Counter

from scheduler.isa.cuda import access_hazards
from scheduler.isa.hazards import Hazard, HazardKind, private_memory_hazards
from scheduler.isa.instructions import Kind
from scheduler.isa.listing import Function, Instruction

_WIDE = 16  # bytes: the most that one instruction moves per thread, except on the newest GPUs
_BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}
_MOVES = frozenset({"LDG", "STG", "LD", "ST", "LDGSTS"})
_PTX_ACCESS = re.compile(r"(?:ld|st)\.(?:(?:volatile|relaxed|weak|cta|gpu|sys)\.)*global\b")
_PTX_COPY = re.compile(r"cp\.async\.c[ag]\.")
_PTX_ELEMENT = re.compile(r"\.[bsuf](8|16|32|64|128)\b")


def hazards(function: Function) -> tuple[Hazard, ...]:
    """Return hazards: local memory, narrow accesses to global memory in the inner loop, and, from
    the addresses of SASS, bank conflicts and uncoalesced accesses."""
    hazard_list = list(private_memory_hazards(function))
    if not function.instructions[0].mnemonic[0].islower():  # SASS
        hazard_list += access_hazards.access_hazards(function)
    if (loop := function.inner_loop()) is not None:
        widths = {
            instruction.line: width_bytes(instruction)
            for instruction in function.loop_instructions(loop)
        }
        narrow = {line: width for line, width in widths.items() if 0 < width < _WIDE}
        if narrow:
            counts = sorted(Counter(narrow.values()).items())
            figures = ", ".join(f"{count} of {width} B" for width, count in counts)
            text = f"accesses to global memory in the inner loop narrower than {_WIDE} B: {figures}"
            hazard_list.append(Hazard(HazardKind.NARROW, text, tuple(narrow)))
    return tuple(hazard_list)


def width_bytes(instruction: Instruction) -> int:
    """Return the bytes of global memory that an instruction moves per thread; 0 if it moves
    none."""
    if instruction.kind is not Kind.GLOBAL:
        return 0
    mnemonic = instruction.mnemonic
    if _PTX_COPY.match(mnemonic):
        parts = map(str.strip, instruction.operands.rstrip(";").split(","))
        return next((int(part) for part in parts if part.isdecimal()), 0)
    if mnemonic[0].islower():  # PTX
        element = _PTX_ELEMENT.search(mnemonic)
        if element is None or not _PTX_ACCESS.match(mnemonic):
            return 0
        vector = re.search(r"\.v([248])\b", mnemonic)
        return int(element[1]) // 8 * (int(vector[1]) if vector else 1)
    name, *suffixes = mnemonic.split(".")
    if name not in _MOVES:
        return 0
    return next((_BYTES[suffix] for suffix in suffixes if suffix in _BYTES), 4)
