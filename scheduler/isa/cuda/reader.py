"""Reads SASS as nvdisasm prints it (``-g -c``), and PTX if nothing was assembled."""

from __future__ import annotations

import re
from dataclasses import replace

from scheduler.codegen.languages import CUTEDSL_SOURCE, HIP_SOURCE
from scheduler.isa.cuda.describe import describe
from scheduler.isa.cuda.hazards import hazards
from scheduler.isa.cuda.instructions import falls_through, kind_of
from scheduler.isa.cuda.liveness import live_registers
from scheduler.isa.describe import Description
from scheduler.isa.hazards import Hazard
from scheduler.isa.instructions import Kind
from scheduler.isa.listing import (
    Function,
    Instruction,
    LineKind,
    Listing,
    ListingBuilder,
    header_of,
)
from scheduler.isa.reader import ListingReader, LiveRegisters

# The names of these targets' sources, in each language.
_SOURCES = (HIP_SOURCE, CUTEDSL_SOURCE)
_SASS_LINE = re.compile(r'//## File "([^"]*)", line (\d+)')
_SASS_INSTRUCTION = re.compile(
    r"\s+/\*[0-9a-f]{4,}\*/\s+(?:(?P<predicate>@!?U?P[T\d]+)\s+)?"
    r"(?P<mnemonic>[A-Z][\w.]*)\s*(?P<operands>[^;]*?)\s*;"
)
_PTX_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"([^"]*)"')
_PTX_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)")
# LLVM gives the call site; the comment after it says where the code was inlined from.
_PTX_INLINED = re.compile(r"//\s+(\S+):(\d+):\d+ @\[")
_PTX_ENTRY = re.compile(r"\.(?:visible|weak|extern)?\s*\.?(?:entry|func)\b.*?(\w+)\s*\(")
_PTX_INSTRUCTION = re.compile(
    r"\s+(?:(?P<predicate>@!?%p\d+)\s+)?(?P<mnemonic>[a-z][\w.:]*)\s*(?P<operands>[^;]*);"
)
_INLINE_ASSEMBLY = re.compile(r"\s*// (?:begin|end) inline asm")  # surrounds every inline assembly
_LABEL = re.compile(r"([A-Za-z_.$][\w.$]*):\s*(?://.*)?$")
_REFERENCE = re.compile(r"`\(([\w.$]+)\)|(\$[\w.$]+|\.L_\w+)")
_REGISTER = re.compile(r"\b(U?[RP])\d+\b|%(\w+?)\d+\b")
_CONSTANT = re.compile(r"c\[0x[0-9a-f]+\]\[(?:U?R\d+\+?)?(?:0x[0-9a-f]+)?\]")
_NUMBER = re.compile(r"\b0x[0-9a-f]+\b|\b\d{3,}\b")


class CudaReader(ListingReader):
    """The reader for NVIDIA GPUs."""

    dialect = "sass-listing"

    def parse(self, text: str) -> Listing:
        return _Reader(is_ptx=_is_ptx(text)).read(text)

    def dialect_of(self, text: str) -> str:
        return "ptx-listing" if _is_ptx(text) else self.dialect

    def describe(self, mnemonic: str) -> Description | None:
        return describe(mnemonic)

    def live_registers(self, function: Function) -> LiveRegisters | None:
        """Return None for PTX, whose registers are virtual."""
        is_ptx = function.instructions[0].mnemonic[0].islower()
        return None if is_ptx else live_registers(function)

    def hazards(self, function: Function) -> tuple[Hazard, ...]:
        return hazards(function)

    def normalized(self, instruction: Instruction) -> str:
        operands = _CONSTANT.sub("c[]", instruction.operands)
        operands = _REFERENCE.sub("label", operands)
        operands = _REGISTER.sub(lambda match: match[1] or match[2], operands)
        return f"{instruction.mnemonic} {_NUMBER.sub('number', operands)}"


def _is_ptx(text: str) -> bool:
    return ".version" in text[:4096]


class _Reader(ListingBuilder):
    def __init__(self, is_ptx: bool) -> None:
        super().__init__()
        self._is_ptx = is_ptx
        self._pattern = _PTX_INSTRUCTION if is_ptx else _SASS_INSTRUCTION
        self._by_name = {}
        self._files: dict[str, str] = {}

    def _reset(self) -> None:
        super()._reset()
        self._is_chain = False  # several lines of debug information before an instruction

    def read(self, text: str) -> Listing:
        if self._is_ptx:  # the file table is at the end
            files = (_PTX_FILE.match(line) for line in text.splitlines() if ".file" in line)
            self._files = {match[1]: match[2] for match in files if match}
        listing = super().read(text)
        return replace(listing, headers=dict(sorted(listing.headers.items())))

    def _read_line(self, number: int, line: str) -> LineKind:
        if not line.strip():
            return LineKind.BLANK
        if match := _SASS_LINE.search(line):
            self._set_location(match[1], int(match[2]))
            return LineKind.DIRECTIVE
        if line.lstrip().startswith("//"):
            if line.startswith("//-----"):
                self._finish(number - 1)
            return LineKind.DIRECTIVE if _INLINE_ASSEMBLY.match(line) else LineKind.COMMENT
        if match := _LABEL.match(line):
            label = match[1]
            if label in self._declared:
                self._begin(label, number)
            elif self._name and not label.startswith((".text.", "$L__tmp", "$L__func")):
                self._labels[label] = len(self._instructions)
            return LineKind.LABEL
        if self._name and (match := self._pattern.match(line)):
            mnemonic, operands = match["mnemonic"], match["operands"].strip()
            self._is_chain = False
            kind = kind_of(mnemonic)
            reference = _REFERENCE.search(operands) if kind is Kind.BRANCH else None
            target = reference[1] or reference[2] if reference else ""
            header, header_line = self._inlined
            instruction = Instruction(
                *(number, mnemonic, operands, kind, self._source_line, target),
                falls_through=falls_through(mnemonic, match["predicate"] or ""),
                conditional=match["predicate"] is not None,
                predicate=(match["predicate"] or "")[1:],
                header=header,
                header_line=header_line,
            )
            self._instructions.append(instruction)
            return LineKind.INSTRUCTION
        self._read_directive(number, line)
        return LineKind.DIRECTIVE

    def _read_directive(self, number: int, line: str) -> None:
        if not self._is_ptx:
            if "@function" in line:
                self._declared.add(line.split()[1].partition(",")[0])
        elif match := _PTX_LOC.match(line):
            self._set_location(self._files.get(match[1], ""), int(match[2]))
            if inlined := _PTX_INLINED.search(line):
                self._set_inlined(inlined[1], int(inlined[2]))
        elif match := _PTX_ENTRY.search(line):
            self._begin(match[1], number)
        elif line.startswith("}"):
            self._finish(number)

    def _set_location(self, file: str, line: int) -> None:
        if not self._is_chain:  # the innermost comes first, then its callers
            self._set_inlined(file, line)
        self._is_chain = not self._is_ptx
        self._source_line = line if file.rpartition("/")[2] in _SOURCES else 0

    def _set_inlined(self, file: str, line: int) -> None:
        header = header_of(file)
        self._inlined = header, line if header else 0
        if header:
            self._headers[header] = ""  # NVIDIA's listings have no hashes


READER = CudaReader()
