"""Computes which registers are live at the ends of a function's blocks, for any instruction set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from scheduler.isa.listing import Function

Effect: TypeAlias = tuple[int, int]
"""An instruction's effect: masks of the registers that it reads, and of those that it always
overwrites."""


def live_out(function: Function, effects: Sequence[Effect]) -> list[int]:
    """Return what may still be read after each block, as masks."""
    blocks = function.blocks
    reads, kills = [0] * len(blocks), [0] * len(blocks)
    for number, block in enumerate(blocks):
        for read, killed in reversed(effects[block.first : block.end]):
            reads[number] = (reads[number] & ~killed) | read
            kills[number] |= killed
    live_in, after = list(reads), [0] * len(blocks)
    changed = True
    while changed:
        changed = False
        for number in range(len(blocks) - 1, -1, -1):
            out = 0
            for successor in blocks[number].successors:
                out |= live_in[successor]
            if out != after[number]:
                after[number] = out
                live_in[number] = reads[number] | (out & ~kills[number])
                changed = True
    return after
