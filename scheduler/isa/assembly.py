"""Reads GNU assembly syntax as compilers write it: for AMD GPUs, x86 and Arm."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from scheduler.isa.instructions import Kind
from scheduler.isa.listing import Instruction, LineKind, Listing, ListingBuilder, header_of


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


class _Reader(ListingBuilder):
    def __init__(self, syntax: Syntax) -> None:
        super().__init__()
        self._syntax = syntax
        self._from_source(syntax.source_file)
        self._files: dict[str, tuple[str, str]] = {}  # by number: the name, and Kiln's header

    def _from_source(self, name: str) -> None:
        self._source_file = name
        self._call_site = re.compile(rf"@\[ {re.escape(name)}:(\d+):\d+")

    def _read_line(self, number: int, line: str) -> LineKind:
        text = line.strip()
        if not text:
            return LineKind.BLANK
        if text[0] in ";#":
            return LineKind.COMMENT
        if not line[0].isspace() and (match := _LABEL.match(text)):
            label = match[1]
            if label in self._declared:
                self._begin(label, number)
            elif label.startswith(".Lfunc_end"):
                self._finish(number)
            elif self._name and not label.startswith((".Ltmp", ".Lfunc_begin")):  # of debug lines
                self._labels[label] = len(self._instructions)
            return LineKind.LABEL
        if text[0] == ".":
            self._read_directive(number, text)
            return LineKind.DIRECTIVE
        if not self._name:
            return LineKind.DIRECTIVE  # text of the metadata, between functions
        mnemonic, _, rest = text.partition("\t")
        if not rest:
            mnemonic, _, rest = text.partition(" ")
        operands = rest.partition(";")[0].partition(" #")[0].strip()
        kind = self._syntax.kind_of(mnemonic)
        reference = _REFERENCE.search(operands) if kind is Kind.BRANCH else None
        header, header_line = self._inlined
        self._instructions.append(
            Instruction(
                *(number, mnemonic, operands, kind, self._source_line),
                target=reference[0] if reference else "",
                falls_through=self._syntax.falls_through(mnemonic),
                header=header,
                header_line=header_line if header else 0,
                callers=self._callers,
            )
        )
        return LineKind.INSTRUCTION

    def _read_directive(self, number: int, text: str) -> None:
        if match := _LOC.match(text):
            name, header = self._files.get(match[1], ("", ""))
            line = int(match[2])
            self._inlined = header, line
            self._source_line = line if name == self._source_file else 0
            # Code inlined from a header has the line that called it.
            sites = [int(site) for site in self._call_site.findall(text)]
            if self._source_line == 0 and sites:
                self._source_line, *sites = sites
            self._callers = tuple(dict.fromkeys(sites))
        elif match := _FILE.match(text):
            file, folder, name, md5 = match.groups()
            header = header_of(f"{folder or ''}/{name}")
            self._files[file] = name, header
            if file == "0":
                self._from_source(name)
            if header:
                self._headers[header] = md5 or ""
        elif match := _TYPE.match(text):
            self._declared.add(match[1])
        elif text.startswith((".section", ".amdhsa_kernel")):
            self._finish(number - 1)


def parse(text: str, syntax: Syntax) -> Listing:
    """Read a listing. Lines it does not recognize are directives; it raises nothing."""
    return _Reader(syntax).read(text)
