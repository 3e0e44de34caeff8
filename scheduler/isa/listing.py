"""A compiler's listing, read: functions, instructions and where each comes from in the source.

Pure functions on text. AMD listings in full; a host's (CPU emulation) without operands' meaning.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from scheduler.build.commands import SOURCE
from scheduler.isa.flow import Block, Loop, blocks_of, loops_of
from scheduler.isa.instructions import Kind, falls_through, kind_of


class LineKind(StrEnum):
    """What a line of the listing is, for filters."""

    INSTRUCTION = "instruction"
    LABEL = "label"
    DIRECTIVE = "directive"
    COMMENT = "comment"
    BLANK = "blank"


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. ``line`` is 1-based in the listing; ``source_line`` and ``source_column``
    in the kernel's source, 0 where the compiler made it for itself. ``target`` is the label that a
    branch names, or "". ``operands`` is without comments."""

    line: int
    mnemonic: str
    operands: str
    kind: Kind
    source_line: int
    source_column: int
    target: str


@dataclass(frozen=True)
class Function:
    """A function with its instructions in order, from line ``first_line`` to ``last_line``.

    ``blocks`` and ``loops`` index into ``instructions`` and ``blocks``; ``labels`` gives the
    instruction (by index) at which each label stands.
    """

    name: str
    first_line: int
    last_line: int
    instructions: tuple[Instruction, ...]
    labels: dict[str, int]

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        return blocks_of(
            len(self.instructions),
            {
                index: self.labels.get(instruction.target)
                for index, instruction in enumerate(self.instructions)
                if instruction.kind is Kind.BRANCH
            },
            {
                index
                for index, instruction in enumerate(self.instructions)
                if not falls_through(instruction.mnemonic)
            },
            self.labels,
        )

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """Outer loops before those within them."""
        return loops_of(self.blocks)

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

    def of_loop(self, loop: Loop) -> tuple[Instruction, ...]:
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
            return matrix, loop.depth, len(self.of_loop(loop))

        return max(self.loops, key=weight, default=None)


@dataclass(frozen=True)
class Listing:
    """A whole listing. ``kinds`` has one entry a line."""

    functions: tuple[Function, ...]
    kinds: tuple[LineKind, ...]

    def function(self, name: str) -> Function | None:
        return next((function for function in self.functions if function.name == name), None)


def counts(instructions: Iterable[Instruction]) -> dict[Kind, int]:
    """How many instructions of each class there are; classes without any are left out."""
    found = Counter(instruction.kind for instruction in instructions)
    return {kind: found[kind] for kind in Kind if found[kind]}


_FILE = re.compile(r'\.file\s+(\d+)\s+(?:"[^"]*"\s+)?"([^"]*)"')
_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+(\d+)")
_TYPE = re.compile(r"\.type\s+([^,\s]+),\s*@function")
_CALL_SITE = re.compile(rf"@\[ {re.escape(SOURCE)}:(\d+):(\d+)")
_LABEL = re.compile(r"([A-Za-z_.$][\w.$@]*):")
_REFERENCE = re.compile(r"\.L\w+")


class _Reader:
    """Goes through the lines once; what it has at the end is the listing."""

    def __init__(self) -> None:
        self.kinds: list[LineKind] = []
        self.functions: list[Function] = []
        self._declared: set[str] = set()
        self._files: dict[str, str] = {}
        self._name = ""
        self._first_line = 0
        self._instructions: list[Instruction] = []
        self._labels: dict[str, int] = {}
        self._source = (0, 0)

    def read(self, text: str) -> Listing:
        number = 0
        for number, line in enumerate(text.splitlines(), 1):
            self.kinds.append(self._line(number, line))
        self._finish(number)
        return Listing(tuple(self.functions), tuple(self.kinds))

    def _line(self, number: int, line: str) -> LineKind:
        stripped = line.strip()
        if not stripped:
            return LineKind.BLANK
        if stripped[0] in ";#":
            return LineKind.COMMENT
        if not line[0].isspace():
            label = _LABEL.match(stripped)
            if label:
                self._at_label(number, label[1])
                return LineKind.LABEL
        if stripped[0] == ".":
            self._directive(number, stripped)
            return LineKind.DIRECTIVE
        if not self._name:
            return LineKind.DIRECTIVE  # the metadata's own text, between functions
        self._instruction(number, stripped)
        return LineKind.INSTRUCTION

    def _at_label(self, number: int, label: str) -> None:
        if label in self._declared:
            self._finish(number - 1)
            self._name, self._first_line = label, number
        elif label.startswith(".Lfunc_end"):
            self._finish(number)
        elif self._name and not label.startswith((".Ltmp", ".Lfunc_begin")):  # of debug lines
            self._labels[label] = len(self._instructions)

    def _directive(self, number: int, text: str) -> None:
        if text.startswith(".loc"):
            self._at_loc(text)
        elif text.startswith(".file"):
            match = _FILE.match(text)
            if match:
                self._files[match[1]] = match[2]
        elif text.startswith(".type"):
            match = _TYPE.match(text)
            if match:
                self._declared.add(match[1])
        elif text.startswith((".section", ".amdhsa_kernel")):
            self._finish(number - 1)

    def _at_loc(self, text: str) -> None:
        match = _LOC.match(text)
        if not match:
            return
        self._source = (0, 0)
        if self._files.get(match[1]) == SOURCE:
            self._source = (int(match[2]), int(match[3]))
        if self._source[0] == 0:  # inlined from a header: the line that called it
            site = _CALL_SITE.search(text)
            if site:
                self._source = (int(site[1]), int(site[2]))

    def _instruction(self, number: int, text: str) -> None:
        mnemonic, _, rest = text.partition("\t")
        if not rest:
            mnemonic, _, rest = text.partition(" ")
        operands = rest.partition(";")[0].partition(" #")[0].strip()
        kind = kind_of(mnemonic)
        target = ""
        if kind is Kind.BRANCH:
            reference = _REFERENCE.search(operands)
            target = reference[0] if reference else ""
        self._instructions.append(
            Instruction(number, mnemonic, operands, kind, *self._source, target)
        )

    def _finish(self, number: int) -> None:
        if self._name and self._instructions:
            self.functions.append(
                Function(
                    self._name,
                    self._first_line,
                    number,
                    tuple(self._instructions),
                    self._labels,
                )
            )
        self._name, self._instructions, self._labels, self._source = "", [], {}, (0, 0)


def parse(text: str) -> Listing:
    """Read a listing. Lines that mean nothing to it are directives; nothing is raised."""
    return _Reader().read(text)
