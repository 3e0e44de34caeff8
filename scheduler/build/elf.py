"""Parse ELF files: the dynamic symbols of a shared library (defined, and needed when it is loaded),
and the section sizes of a file.

Format: System V ABI, "Object Files"; 64-bit, little-endian, as on every host that Kiln builds on.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from scheduler.errors import UserError

_DYNSYM = 11
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


@dataclass(frozen=True)
class DynamicSymbols:
    """Symbol names, by whether the library defines them."""

    defined: frozenset[str]
    undefined: frozenset[str]


def dynamic_symbols(library: bytes) -> DynamicSymbols:
    """Read them from a library's bytes. Raises ``UserError`` if the ELF file is malformed."""
    defined: set[str] = set()
    undefined: set[str] = set()
    with _elf_errors():
        sections = _sections(library)
        for _, kind, _, _, offset, length, link, _, _, _ in sections:
            if kind != _DYNSYM:
                continue
            strings = sections[link][4]
            for position in range(offset + _SYMBOL.size, offset + length, _SYMBOL.size):
                name, _, _, section, _, _ = _SYMBOL.unpack_from(library, position)
                (defined if section else undefined).add(_c_string(library, strings + name))
    return DynamicSymbols(frozenset(defined), frozenset(undefined))


def section_sizes(file: bytes) -> dict[str, int]:
    """Return the bytes of each section, by name. Raises ``UserError`` if the ELF file is
    malformed."""
    with _elf_errors():
        sections = _sections(file)
        (names_index,) = struct.unpack_from("<H", file, 62)
        strings = sections[names_index][4]
        return {_c_string(file, strings + section[0]): section[5] for section in sections}


@contextmanager
def _elf_errors() -> Iterator[None]:
    try:
        yield
    except (struct.error, IndexError, ValueError):
        raise UserError("not a 64-bit ELF file, or damaged: build it again") from None


def _sections(file: bytes) -> list[tuple[int, ...]]:
    if file[:6] != b"\x7fELF\x02\x01":
        raise ValueError
    (table,) = struct.unpack_from("<Q", file, 40)
    size, count = struct.unpack_from("<HH", file, 58)
    return [_SECTION.unpack_from(file, table + index * size) for index in range(count)]


def _c_string(file: bytes, begin: int) -> str:
    return file[begin : file.index(b"\0", begin)].decode()
