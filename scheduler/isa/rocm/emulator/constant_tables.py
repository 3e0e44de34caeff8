"""Constant tables in a listing, and the addresses that refer to them.

A kernel adds to its own address (``s_getpc_b64``) a number that the linker puts into an
instruction: the distance from that number to the symbol, plus an addend (``table@rel32@lo+4``). The
addend is the distance from the own address to the number; anything beyond it is an offset into the
table. Here the own address is 0, so that the sum is what the instruction holds: the address in the
table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from scheduler.isa.listing import Instruction

REFERENCE = re.compile(r"([A-Za-z_.$][\w.$]*)@(rel32|gotpcrel32)@(lo|hi)([+-]\d{1,9})?")
_OWN_ADDRESS = "s_getpc_b64"
_WORD = 4  # bytes of a scalar instruction, and of the number in one
_FARTHEST = 16  # instructions from the own address to the addition
_WIDTHS = {"byte": 1, "short": 2, "long": 4, "quad": 8, "2byte": 2, "4byte": 4, "8byte": 8}
_VALUES = re.compile(r"\.(byte|short|long|quad|[248]byte)\s+([-\w, \t]+)")
_ZEROS = re.compile(r"\.(?:zero|skip|space)\s+(\d+)")
_TEXT = re.compile(r'\.(ascii|asciz)\s+"((?:[^"\\]|\\.)*)"')
_OCTAL = re.compile(r"\\([0-7]{1,3})|\\(.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_LABEL = re.compile(r"^([A-Za-z_.$][\w.$]*):.*\n", re.MULTILINE)
_MAX_BYTES = 1 << 24
_ALIGN = 256


def read_tables(listing: str) -> dict[str, bytes]:
    """Return the bytes of each symbol that instructions refer to, if the listing has them."""
    names = {match[1] for match in REFERENCE.finditer(listing)}
    tables: dict[str, bytes] = {}
    remaining_bytes = _MAX_BYTES
    if not names:
        return tables
    for label in _LABEL.finditer(listing):
        if label[1] in names and label[1] not in tables:
            tables[label[1]] = _bytes(listing, label.end(), remaining_bytes)
            remaining_bytes -= len(tables[label[1]])
    return tables


def _bytes(listing: str, at: int, limit: int) -> bytes:
    """Return the data after a label, up to the next label or the end of the data."""
    result = bytearray()
    while at < len(listing) and len(result) < limit:
        end = listing.find("\n", at)
        end = len(listing) if end < 0 else end
        line = listing[at:end].partition(";")[0].strip()
        at = end + 1
        if not line:
            continue
        piece = _directive_bytes(line, limit - len(result))
        if piece is None:
            break
        result += piece
    return bytes(result)


def _directive_bytes(line: str, limit: int) -> bytes | None:
    values = _VALUES.fullmatch(line)
    if values:
        size = _WIDTHS[values[1]]
        try:
            numbers = [int(each, 0) for each in values[2].split(",")]
        except ValueError:
            return None
        return b"".join(
            (number & ((1 << 8 * size) - 1)).to_bytes(size, "little") for number in numbers
        )
    zeros = _ZEROS.fullmatch(line)
    if zeros:
        return bytes(min(int(zeros[1][:9]), limit))
    text = _TEXT.fullmatch(line)
    if text:

        def unescape(match: re.Match[str]) -> str:
            return chr(int(match[1], 8) & 255) if match[1] else _ESCAPES.get(match[2], match[2])

        plain = _OCTAL.sub(unescape, text[2])
        return plain.encode("latin-1", "replace") + (b"\0" if text[1] == "asciz" else b"")
    return None


def place_tables(data: Mapping[str, bytes], at: int) -> tuple[bytes, dict[tuple[str, str], int]]:
    """Place all tables in sequence from address ``at``. Return their bytes and the number in an
    instruction that refers to one, by name and kind: the address, or (``gotpcrel32``) the location
    of the address."""
    image = bytearray()
    addresses: dict[tuple[str, str], int] = {}
    for name, content in data.items():
        addresses[name, "rel32"] = at + len(image)
        image += content + bytes(-len(content) % _ALIGN)
    for name in data:
        addresses[name, "gotpcrel32"] = at + len(image)
        image += addresses[name, "rel32"].to_bytes(8, "little")
    return bytes(image), addresses


def pc_distance(instructions: Sequence[Instruction], index: int) -> int | None:
    """Return the distance in bytes from the own address to an instruction's number; None unless the
    own address was read shortly before, with only scalar instructions in between."""
    distance = _WORD
    for before in reversed(instructions[max(index - _FARTHEST, 0) : index]):
        if before.mnemonic == _OWN_ADDRESS:
            return distance
        if not before.mnemonic.startswith("s_"):
            return None
        distance += 2 * _WORD if "@" in before.operands else _WORD
    return None


def link_operands(
    operands: str, addresses: Mapping[tuple[str, str], int], distance: int | None = None
) -> str:
    """Return an instruction's operands with references replaced by numbers; unknown ones remain.
    ``distance`` is the result of :func:`pc_distance`; an addend is ignored without it."""

    def number(match: re.Match[str]) -> str:
        address = addresses.get((match[1], match[2]))
        if address is None:
            return match[0]
        if distance is not None and match[4]:
            address += int(match[4]) - distance
        return hex(address >> 32 & 0xFFFF_FFFF if match[3] == "hi" else address & 0xFFFF_FFFF)

    return REFERENCE.sub(number, operands)
