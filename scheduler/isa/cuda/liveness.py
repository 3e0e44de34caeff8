"""Live registers at each SASS instruction, by dataflow over the basic blocks.

A register is live if a value that may have been written to it may still be read. A write under a
predicate may keep the old value. Registers are physical, so the count never exceeds ptxas's
allocation; uniform registers and predicates are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.isa.cuda.operands import registers
from scheduler.isa.dataflow import live_out
from scheduler.isa.listing import Function
from scheduler.isa.reader import LiveRegisters

_KERNEL_EXIT = "EXIT"  # appears in kernels only, not in functions that they call


@dataclass(frozen=True, slots=True)
class _Effect:
    """Registers that an instruction reads, may write, and always writes."""

    reads: int
    writes: int
    kills: int


def live_registers(function: Function) -> LiveRegisters:
    """Return the live registers of a function; an instruction's results count at it."""
    known: dict[tuple[str, str], tuple[int, int]] = {}  # many instructions have the same text
    effects = []
    for instruction in function.instructions:
        text = instruction.mnemonic, instruction.operands
        if text not in known:
            known[text] = registers(*text)
        reads, writes = known[text]
        is_call = instruction.mnemonic.startswith("CALL")
        callee = function.called.get(instruction.target) if is_call else None
        if callee is not None:
            arguments, results = _call_effect(callee)
            reads, writes = reads | arguments, writes | results
        effects.append(_Effect(reads, writes, 0 if instruction.conditional else writes))
    live_out = _live_out(function, effects)
    counts = [0] * len(effects)
    defined_before = _defined(function, effects)
    for number, block in enumerate(function.blocks):
        live, defined = live_out[number], defined_before[number]
        at_instruction = {}
        for index in range(block.end - 1, block.first - 1, -1):
            after = live | effects[index].writes
            live = (live & ~effects[index].kills) | effects[index].reads
            at_instruction[index] = after | live
        for index in range(block.first, block.end):
            defined |= effects[index].writes
            counts[index] = (at_instruction[index] & (defined | effects[index].reads)).bit_count()
    peak = max(counts, default=0)
    return LiveRegisters(
        counts=tuple(counts),
        peak=peak,
        peaks=tuple(index for index, count in enumerate(counts) if count == peak and peak),
    )


def _call_effect(callee: Function) -> tuple[int, int]:
    """Return what a called function reads of its caller's registers, and what it writes. Functions
    that NVIDIA's compiler adds (a division's rare cases) make no calls themselves."""
    found = [
        registers(instruction.mnemonic, instruction.operands) for instruction in callee.instructions
    ]
    effects = [
        _Effect(reads, writes, 0 if instruction.conditional else writes)
        for instruction, (reads, writes) in zip(callee.instructions, found, strict=True)
    ]
    out = _live_out(callee, effects)[0]
    first = callee.blocks[0]
    for effect in reversed(effects[first.first : first.end]):
        out = (out & ~effect.kills) | effect.reads
    results = 0
    for effect in effects:
        results |= effect.writes
    return out, results


def _live_out(function: Function, effects: list[_Effect]) -> list[int]:
    return live_out(function, [(effect.reads, effect.kills) for effect in effects])


def _defined(function: Function, effects: list[_Effect]) -> list[int]:
    """Return what may have been written before each block; all registers before a called
    function."""
    blocks = function.blocks
    is_kernel = any(instruction.mnemonic == _KERNEL_EXIT for instruction in function.instructions)
    writes = [0] * len(blocks)
    for number, block in enumerate(blocks):
        for effect in effects[block.first : block.end]:
            writes[number] |= effect.writes
    defined = [0 if is_kernel else ~0] * len(blocks)
    changed = is_kernel
    while changed:
        changed = False
        for number, block in enumerate(blocks):
            after = defined[number] | writes[number]
            for successor in block.successors:
                if after & ~defined[successor]:
                    defined[successor] |= after
                    changed = True
    return defined
