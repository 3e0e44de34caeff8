"""Live vector registers at each instruction, by backward dataflow over the basic blocks.

A register is live if its value may still be read. Registers are physical, so the count never
exceeds the allocation. Inactive lanes are ignored: a write counts as a write of the whole register,
as in the compiler's own liveness after register allocation, unless the instruction inherently keeps
part of the old value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from scheduler.isa.dataflow import live_out
from scheduler.isa.instructions import Kind
from scheduler.isa.listing import Function
from scheduler.isa.reader import LiveRegisters
from scheduler.isa.rocm.instruction_set.memory import loads_to_lds
from scheduler.isa.rocm.instruction_set.table import find_opcode, has_return

# Bit n is vN; accumulation registers start here.
_AGPR = 512
_REGISTER = re.compile(r"\b([va])(?:(\d+)|\[(\d+)(?::(\d+))?\])")

# A part of the old result is kept: a half, lanes.
_KEEPS_PART = re.compile(
    r"v_writelane|v_(?:mad|fma)_mix(?:lo|hi)|v_cvt_\w*(?:fp8|bf8)|\w*_d16|\w+_(?:dpp8?|sdwa)$"
)
_SWAPS = re.compile(r"v_swap|v_permlane(?:16|32)_swap")


@dataclass(frozen=True)
class VectorRegisters(LiveRegisters):
    """How many of the live registers are accumulation registers (CDNA)."""

    agpr: tuple[int, ...]


def live_registers(function: Function) -> VectorRegisters:
    """Return the live registers of an AMD function; an instruction's results count at it."""
    known: dict[tuple[str, str], tuple[int, int]] = {}  # many instructions have the same text
    effects = []
    for instruction in function.instructions:
        text = instruction.mnemonic, instruction.operands
        if instruction.kind in (Kind.SCALAR, Kind.WAIT, Kind.BRANCH, Kind.OTHER):
            known[text] = 0, 0
        elif text not in known:
            known[text] = registers(*text)
        effects.append(known[text])
    out = live_out(function, effects)
    live_at = [0] * len(effects)
    for number, block in enumerate(function.blocks):
        live = out[number]
        for index in range(block.end - 1, block.first - 1, -1):
            reads, writes = effects[index]
            after = live | writes
            live = (live & ~writes) | reads
            live_at[index] = after | live
    counts = tuple(mask.bit_count() for mask in live_at)
    peak = max(counts, default=0)
    return VectorRegisters(
        counts=counts,
        agpr=tuple((mask >> _AGPR).bit_count() for mask in live_at),
        peak=peak,
        peaks=tuple(index for index, count in enumerate(counts) if count == peak and peak),
    )


def registers(mnemonic: str, operands: str) -> tuple[int, int]:
    """Return masks of the vector registers that an instruction reads and writes: bit n is vN, bit
    512 + n aN."""
    if "::" in operands:  # two operations issued as one
        first, second = operands.split("::", 1)
        name, _, rest = second.strip().partition(" ")
        first_half, second_half = registers(mnemonic, first.strip()), registers(name, rest)
        return first_half[0] | second_half[0], first_half[1] | second_half[1]
    result, separator, sources = operands.partition(",")
    if not _has_result(mnemonic, operands):
        return register_mask(operands), 0
    written = register_mask(result)
    if _SWAPS.match(mnemonic):
        both = register_mask(operands)
        return both, both
    reads = register_mask(sources) if separator else 0
    # v3.l and op_sel write one half of a register.
    half = result.rstrip().endswith((".l", ".h")) or "op_sel" in operands
    if half or find_opcode(mnemonic).row.accumulates or _KEEPS_PART.match(mnemonic):
        reads |= written
    return reads, written


def _has_result(mnemonic: str, operands: str) -> bool:
    """Whether the first operand is written, if it is a vector register."""
    if mnemonic.startswith("ds_"):
        return find_opcode(mnemonic).local.reads
    if mnemonic.startswith("v_"):
        return not mnemonic.startswith("v_cmpx")
    if "_atomic_" in mnemonic:
        return has_return(operands.split())
    return "_load" in mnemonic and not loads_to_lds(mnemonic, operands)


def register_mask(text: str) -> int:
    """Return the vector registers that a text names, as in ``registers``."""
    mask = 0
    for match in _REGISTER.finditer(text):
        first = int(match[2] or match[3])
        last = int(match[4]) if match[4] else first
        offset = _AGPR if match[1] == "a" else 0
        mask |= ((1 << (last - first + 1)) - 1) << (first + offset)
    return mask
