"""A compiler's listing, read: functions, instructions and where each comes from in the source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from scheduler.isa.flow import Block, Loop, build_blocks, find_loops
from scheduler.isa.instructions import Kind


class LineKind(StrEnum):
    """What a line of the listing is, for filters."""

    INSTRUCTION = "instruction"
    LABEL = "label"
    DIRECTIVE = "directive"
    COMMENT = "comment"
    BLANK = "blank"


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. ``line`` is 1-based in the listing, ``source_line`` in the kernel's
    source, 0 where the compiler made it for itself. ``target`` is the label that a
    branch names, or "". ``operands`` is without comments; after one that does not fall through
    the next is not executed. A ``conditional`` one does nothing in threads whose ``predicate``
    says so, which a reader may leave out. One that was inlined from a header of ours names it as
    the compiler was given it (``common/kiln/mma.h``), with its line there."""

    line: int
    mnemonic: str
    operands: str
    kind: Kind
    source_line: int
    target: str = ""
    falls_through: bool = True
    conditional: bool = False
    predicate: str = ""
    header: str = ""
    header_line: int = 0


@dataclass(frozen=True)
class Function:
    """A function with its instructions in order, from line ``first_line`` to ``last_line``.

    ``blocks`` and ``loops`` index into ``instructions`` and ``blocks``; ``labels`` gives the
    instruction (by index) at which each label stands; ``called`` has the functions of the same
    listing that it may call, by name, where the reader knows them.
    """

    name: str
    first_line: int
    last_line: int
    instructions: tuple[Instruction, ...]
    labels: dict[str, int]
    called: Mapping[str, Function] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        return build_blocks(
            len(self.instructions),
            {
                index: self.labels.get(instruction.target)
                for index, instruction in enumerate(self.instructions)
                if instruction.kind is Kind.BRANCH
            },
            {
                index
                for index, instruction in enumerate(self.instructions)
                if not instruction.falls_through
            },
            self.labels,
        )

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """Outer loops before those within them."""
        return find_loops(self.blocks)

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """Loop depth of each instruction; 0 outside all loops."""
        by_block = [0] * len(self.blocks)
        for loop in self.loops:
            for block in loop.blocks:
                by_block[block] = max(by_block[block], loop.depth)
        return tuple(
            by_block[number]
            for number, block in enumerate(self.blocks)
            for _ in range(block.first, block.end)
        )

    def loop_instructions(self, loop: Loop) -> tuple[Instruction, ...]:
        """A loop's instructions, those of loops within it included, in the listing's order."""
        return tuple(
            instruction
            for number in sorted(loop.blocks)
            for instruction in self.instructions[
                self.blocks[number].first : self.blocks[number].end
            ]
        )

    def inner_loop(self) -> Loop | None:
        """The loop where the time goes: with the most matrix instructions of its own (not those of
        loops within it); without any, the deepest, and of these the longest."""

        def weight(loop: Loop) -> tuple[int, int, int]:
            within = [each.blocks for each in self.loops if each.blocks < loop.blocks]
            own = loop.blocks.difference(*within)
            matrix = sum(
                each.kind is Kind.MATRIX
                for number in own
                for each in self.instructions[self.blocks[number].first : self.blocks[number].end]
            )
            return matrix, loop.depth, len(self.loop_instructions(loop))

        return max(self.loops, key=weight, default=None)


@dataclass(frozen=True)
class Listing:
    """A whole listing. ``kinds`` has one entry a line; ``headers`` are those of ours that
    instructions were inlined from, each with the MD5 that the compiler wrote down, "" where it
    wrote none."""

    functions: tuple[Function, ...]
    kinds: tuple[LineKind, ...]
    headers: Mapping[str, str] = field(default_factory=dict)

    def function(self, name: str) -> Function | None:
        return next((function for function in self.functions if function.name == name), None)


_INCLUDED = "include/"  # the link to our headers beside each source that is compiled


def header_of(path: str) -> str:
    """Which of our headers a path of debug information is, "" for any other file."""
    _, found, name = f"/{path}".partition(f"/{_INCLUDED}")
    return name if found else ""


def count_kinds(instructions: Iterable[Instruction]) -> dict[Kind, int]:
    """How many instructions of each class there are; classes without any are left out."""
    found = Counter(instruction.kind for instruction in instructions)
    return {kind: found[kind] for kind in Kind if found[kind]}
