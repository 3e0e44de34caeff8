"""Tables that a listing has beside its instructions, and the addresses that refer to them.

A kernel adds to its own address (``s_getpc_b64``) what the linker put into an instruction: how far
the symbol is from where that stands, and an addend (``table@rel32@lo+4``). The addend is that place
as seen from the own address, and a place in the table where that is more. Here the own address is
0, so that the sum is what the instruction holds: the address in the table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from scheduler.isa.listing import Instruction

REFERENCE = re.compile(r"([A-Za-z_.$][\w.$]*)@(rel32|gotpcrel32)@(lo|hi)([+-]\d{1,9})?")
_OWN_ADDRESS = "s_getpc_b64"
_WORD = 4  # bytes of an instruction of the scalar unit, and of the number in one
_FARTHEST = 16  # instructions from the own address to what is added
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
    """The bytes of each symbol that instructions refer to, where the listing has them."""
    names = {match[1] for match in REFERENCE.finditer(listing)}
    found: dict[str, bytes] = {}
    left = _MAX_BYTES
    if not names:
        return found
    for label in _LABEL.finditer(listing):
        if label[1] in names and label[1] not in found:
            found[label[1]] = _bytes(listing, label.end(), left)
            left -= len(found[label[1]])
    return found


def _bytes(listing: str, at: int, limit: int) -> bytes:
    """What follows a label, up to the next one or to what is no data."""
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
        plain = _OCTAL.sub(_unescaped, text[2])
        return plain.encode("latin-1", "replace") + (b"\0" if text[1] == "asciz" else b"")
    return None


def _unescaped(match: re.Match[str]) -> str:
    return chr(int(match[1], 8) & 255) if match[1] else _ESCAPES.get(match[2], match[2])


def place_tables(data: Mapping[str, bytes], at: int) -> tuple[bytes, dict[tuple[str, str], int]]:
    """All tables one after another from address ``at``, and what an instruction that refers to
    one holds, by name and kind: the address, or (``gotpcrel32``) where the address is kept."""
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
    """How many bytes an instruction's number stands behind the own address that it is added to;
    None where that is not read shortly before, by instructions of the scalar unit alone."""
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
    """An instruction's operands with numbers for references; unknown ones stay. ``distance`` is
    what :func:`ahead` says of the instruction; an addend means nothing without it."""

    def number(match: re.Match[str]) -> str:
        address = addresses.get((match[1], match[2]))
        if address is None:
            return match[0]
        if distance is not None and match[4]:
            address += int(match[4]) - distance
        return hex(address >> 32 & 0xFFFF_FFFF if match[3] == "hi" else address & 0xFFFF_FFFF)

    return REFERENCE.sub(number, operands)
