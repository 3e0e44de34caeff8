"""Reads a code object's file with pyelftools, within limits.

It runs only in the sandboxed process: what the library raises on broken files is undocumented.
LLVM, "User Guide for AMDGPU Backend", ELF Code Object.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from elftools.common.exceptions import DWARFError, ELFError
from elftools.construct import ConstructError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection, SymbolTableSection

from scheduler.errors import UserError
from scheduler.isa.rocm.objects import descriptor, notes
from scheduler.isa.rocm.objects.debug_lines import read_lines
from scheduler.isa.rocm.objects.model import FunctionCode, Image, LineTable, ReadLimits
from scheduler.targets.amd import AmdHardware
from scheduler.targets.generations import AMD_GPUS

_MACHINE_BITS = 0xFF
_EXECUTABLE = 0x4  # SHF_EXECINSTR
_FAULTS = (ELFError, DWARFError, ConstructError)
# What pyelftools raises if a file's offsets are invalid.
_BROKEN = (*_FAULTS, AttributeError, AssertionError, IndexError, KeyError, TypeError, ValueError)


def read(content: bytes, limits: ReadLimits) -> Image:
    """Parse the code object in a file's bytes. Raises ``UserError``, and what pyelftools raises."""
    if not content.startswith(b"\x7fELF"):
        raise UserError("not a code object: no ELF header")
    try:
        file = ELFFile(io.BytesIO(content))
        machine = file["e_machine"]
        if machine != "EM_AMDGPU":
            raise UserError(f"built for {machine}, not for an AMD GPU")
        number = file["e_flags"] & _MACHINE_BITS
        gpu = next((gpu for gpu in AMD_GPUS if gpu.elf_machine == number), None)
        if gpu is None:
            known = ", ".join(sorted(gpu.processor for gpu in AMD_GPUS))
            raise UserError(f"built for a GPU other than {known} (EF_AMDGPU_MACH {number:#x})")
        functions = _functions(file, gpu, limits)
        metadata = _metadata(file)
    except _FAULTS as error:
        raise UserError(f"incomplete ELF file: {error}") from None
    try:
        lines = read_lines(file)
    except (*_BROKEN, UnicodeDecodeError):  # nothing else depends on them
        lines = LineTable()
    return Image(gpu.processor, functions, metadata, lines)


def _functions(file: ELFFile, gpu: AmdHardware, limits: ReadLimits) -> tuple[FunctionCode, ...]:
    """Return the functions by address; kernels include their descriptors."""
    symbols = dict(_symbols(file, limits))
    descriptors = _descriptors(file, symbols)
    starts = {
        entry["st_value"]: (name, entry["st_size"])
        for name, entry in symbols.items()
        if entry["st_info"]["type"] == "STT_FUNC"
    }
    for name, (address, content) in descriptors.items():
        at = address + descriptor.read(content, gpu).entry
        starts.setdefault(at, (name, 0))
    sections = [
        section
        for section in file.iter_sections()
        if section["sh_flags"] & _EXECUTABLE and section["sh_type"] == "SHT_PROGBITS"
    ]
    functions = []
    for section in sections:
        content, begin = section.data(), section["sh_addr"]
        inside = sorted(at for at in starts if begin <= at < begin + len(content))
        for at, following in pairwise([*inside, begin + len(content)]):
            name, size = starts[at]
            end = at + size if 0 < size <= begin + len(content) - at else following
            body = content[at - begin : end - begin]
            functions.append(FunctionCode(name, at, body, descriptors.get(name, (0, None))[1]))
    if not functions:
        raise UserError("a code object without functions")
    return tuple(functions)


def _symbols(file: ELFFile, limits: ReadLimits) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the defined functions and objects of the first table that has some."""
    for table in (".symtab", ".dynsym"):
        section = file.get_section_by_name(table)
        if not isinstance(section, SymbolTableSection):
            continue
        count = 0
        for symbol in section.iter_symbols():
            kind = symbol["st_info"]["type"]
            if kind in {"STT_FUNC", "STT_OBJECT"} and symbol["st_shndx"] != "SHN_UNDEF":
                yield symbol.name, symbol.entry
                count += kind == "STT_FUNC"
            if count > limits.functions:
                raise UserError(f"more than the limit of {limits.functions} functions")
        if count:
            return


def _descriptors(
    file: ELFFile, symbols: Mapping[str, Mapping[str, Any]]
) -> dict[str, tuple[int, bytes]]:
    """Return each kernel's descriptor address and bytes, by name."""
    descriptors = {}
    for name, entry in symbols.items():
        index = entry["st_shndx"]
        if not name.endswith(".kd") or not isinstance(index, int):
            continue
        section = file.get_section(index)
        at = entry["st_value"] - section["sh_addr"]
        content = section.data()[at : at + descriptor.SIZE] if at >= 0 else b""
        if len(content) != descriptor.SIZE:
            raise UserError(f"the descriptor of {name[:-3]} is not in the file")
        descriptors[name[:-3]] = (entry["st_value"], content)
    return descriptors


def _metadata(file: ELFFile) -> Mapping[str, Any]:
    for section in file.iter_sections():
        if not isinstance(section, NoteSection):
            continue
        for note in section.iter_notes():
            kind: Any = note["n_type"]  # a name if the library has one for it
            if note["n_name"] == notes.NOTE_NAME and kind == notes.NOTE_TYPE:
                return notes.read(bytes(note["n_descdata"]))
    return {}
