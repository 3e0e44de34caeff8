"""The dynamic symbols of a shared library: what it offers, and what it needs when it is loaded.

Format: System V ABI, "Object Files"; 64-bit, little-endian, as on every host that Kiln builds on.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from scheduler.outcome import UserError

_DYNSYM = 11
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


@dataclass(frozen=True)
class DynamicSymbols:
    """Names by whether the library defines them."""

    defined: frozenset[str]
    undefined: frozenset[str]


def dynamic_symbols(library: bytes) -> DynamicSymbols:
    """Read them from a library's bytes. ``UserError`` where it is not a whole ELF file."""
    try:
        return _read(library)
    except (struct.error, IndexError, ValueError):
        raise UserError("not a 64-bit ELF library, or a damaged one: build it again") from None


def _read(library: bytes) -> DynamicSymbols:
    if library[:6] != b"\x7fELF\x02\x01":
        raise ValueError
    (table,) = struct.unpack_from("<Q", library, 40)
    size, count = struct.unpack_from("<HH", library, 58)
    sections = [_SECTION.unpack_from(library, table + index * size) for index in range(count)]
    defined: set[str] = set()
    undefined: set[str] = set()
    for _, kind, _, _, offset, length, link, _, _, _ in sections:
        if kind != _DYNSYM:
            continue
        strings = sections[link][4]
        for position in range(offset + _SYMBOL.size, offset + length, _SYMBOL.size):
            name, _, _, section, _, _ = _SYMBOL.unpack_from(library, position)
            begin = strings + name
            text = library[begin : library.index(b"\0", begin)].decode()
            (defined if section else undefined).add(text)
    return DynamicSymbols(frozenset(defined), frozenset(undefined))
