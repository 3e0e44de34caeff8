"""Reads GNU assembly syntax as compilers write it: for AMD GPUs, x86 and Arm."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from scheduler.isa.instructions import Kind
from scheduler.isa.listing import Function, Instruction, LineKind, Listing, header_of


@dataclass(frozen=True)
class Syntax:
    """Differences between machines' listings: the name of the kernel's source in debug lines (if a
    listing has no file 0, which is its source), the kind of a mnemonic, and whether execution may
    fall through to the next instruction."""

    source_file: str
    kind_of: Callable[[str], Kind]
    falls_through: Callable[[str], bool]


_FILE = re.compile(r'\.file\s+(\d+)\s+(?:"([^"]*)"\s+)?"([^"]*)"(?:\s+md5\s+0x([0-9a-f]{32}))?')
_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+\d+")
_TYPE = re.compile(r"\.type\s+([^,\s]+),\s*@function")
_LABEL = re.compile(r"([A-Za-z_.$][\w.$@]*):")
_REFERENCE = re.compile(r"\.L\w+")


class _Reader:
    """Reads the lines in one pass and builds the listing."""

    def __init__(self, syntax: Syntax) -> None:
        self._syntax = syntax
        self._from_source(syntax.source_file)
        self.kinds: list[LineKind] = []
        self.functions: list[Function] = []
        self._declared: set[str] = set()
        self._files: dict[str, str] = {}
        self._headers: dict[str, tuple[str, str]] = {}  # Kiln's headers, with their MD5
        self._inlined: tuple[str, int] = ("", 0)
        self._name = ""
        self._first_line = 0
        self._instructions: list[Instruction] = []
        self._labels: dict[str, int] = {}
        self._source_line = 0

    def _from_source(self, name: str) -> None:
        self._source_file = name
        self._call_site = re.compile(rf"@\[ {re.escape(name)}:(\d+):\d+")

    def read(self, text: str) -> Listing:
        number = 0
        for number, line in enumerate(text.splitlines(), 1):
            self.kinds.append(self._line(number, line))
        self._finish(number)
        return Listing(tuple(self.functions), tuple(self.kinds), dict(self._headers.values()))

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
            return LineKind.DIRECTIVE  # text of the metadata, between functions
        self._instruction(number, stripped)
        return LineKind.INSTRUCTION

    def _at_label(self, number: int, label: str) -> None:
        if label in self._declared:
            self._finish(number - 1)
            self._name, self._first_line = label, number
        elif label.startswith(".Lfunc_end"):
            self._finish(number)
        elif self._name and not label.startswith((".Ltmp", ".Lfunc_begin")):  # for debug lines
            self._labels[label] = len(self._instructions)

    def _directive(self, number: int, text: str) -> None:
        if match := _LOC.match(text):
            file, line = match[1], int(match[2])
            self._inlined = self._headers.get(file, ("", ""))[0], line
            self._source_line = line if self._files.get(file) == self._source_file else 0
            # Code inlined from a header has the line that called it.
            if self._source_line == 0 and (site := self._call_site.search(text)):
                self._source_line = int(site[1])
        elif match := _FILE.match(text):
            file, folder, name, md5 = match.groups()
            self._files[file] = name
            if file == "0":
                self._from_source(name)
            if header := header_of(f"{folder or ''}/{name}"):
                self._headers[file] = header, md5 or ""
        elif match := _TYPE.match(text):
            self._declared.add(match[1])
        elif text.startswith((".section", ".amdhsa_kernel")):
            self._finish(number - 1)

    def _instruction(self, number: int, text: str) -> None:
        mnemonic, _, rest = text.partition("\t")
        if not rest:
            mnemonic, _, rest = text.partition(" ")
        operands = rest.partition(";")[0].partition(" #")[0].strip()
        kind = self._syntax.kind_of(mnemonic)
        target = ""
        if kind is Kind.BRANCH:
            reference = _REFERENCE.search(operands)
            target = reference[0] if reference else ""
        self._instructions.append(
            Instruction(
                *(number, mnemonic, operands, kind, self._source_line, target),
                falls_through=self._syntax.falls_through(mnemonic),
                header=self._inlined[0],
                header_line=self._inlined[1] if self._inlined[0] else 0,
            )
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
        self._name, self._instructions, self._labels, self._source_line = "", [], {}, 0
        self._inlined = "", 0


def parse(text: str, syntax: Syntax) -> Listing:
    """Read a listing. Lines it does not recognize are directives; it raises nothing."""
    return _Reader(syntax).read(text)
