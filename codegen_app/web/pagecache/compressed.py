"""Text compressed once, in parts with other text between them in each response.

A gzip file (RFC 1952) of one member: parts are deflated so that none refers to another (RFC 1951,
after a full flush), the text between is stored uncompressed, and the checksum is combined from
those of the pieces. A reader's token, and what a template marks as a secret, is never compressed
along with the page, so that the length of a response says nothing about it.
"""

from __future__ import annotations

import re
import secrets
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

_POLYNOMIAL = 0xEDB88320  # of CRC-32, its bits reversed
_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_END = b"\x03\x00"  # an empty last block
_RAW = -zlib.MAX_WBITS
_MAX_STORED = 0xFFFF
_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(?:\.0*)?(?![.\d]))")
# Stands before and after each secret of a rendered page; it cannot be guessed.
SECRET = f"kiln-secret-{secrets.token_hex(16)}"
_SECRET = SECRET.encode()

Matrix = tuple[int, ...]


@dataclass(frozen=True)
class Part:
    """A part of a text: deflated, with its checksum and its length in bytes."""

    deflated: bytes
    crc: int
    length: int

    @classmethod
    def of(cls, marked: bytes) -> Part:
        """Return the text, compressed except between two marks of a secret."""
        pieces = marked.split(_SECRET)
        text = b"".join(pieces)
        deflated = []
        for at, piece in enumerate(pieces):  # a full flush: no piece refers to one before it
            packer = zlib.compressobj(0 if at % 2 else 6, zlib.DEFLATED, _RAW)
            deflated.append(packer.compress(piece) + packer.flush(zlib.Z_FULL_FLUSH))
        return cls(b"".join(deflated), zlib.crc32(text), len(text))

    def text(self) -> bytes:
        """The uncompressed text."""
        return zlib.decompressobj(_RAW).decompress(self.deflated)


def takes_gzip(accepted: str) -> bool:
    """Return whether a reader with this ``Accept-Encoding`` takes gzip."""
    return _GZIP.search(accepted) is not None


def strip_marks(marked: bytes) -> bytes:
    """Return the text for a reader without compression."""
    return marked.replace(_SECRET, b"")


def join_plain(parts: Sequence[Part], between: Sequence[bytes]) -> bytes:
    """Return the whole text."""
    pieces = [parts[0].text()]
    for value, part in zip(between, parts[1:], strict=True):
        pieces += (value, part.text())
    return b"".join(pieces)


def join_gzip(parts: Sequence[Part], between: Sequence[bytes]) -> bytes:
    """Return the whole text as a gzip file; each text between is at most 64 KiB."""
    pieces, crc, length = [_HEADER, parts[0].deflated], parts[0].crc, parts[0].length
    for value, part in zip(between, parts[1:], strict=True):
        size = len(value).to_bytes(2, "little")
        complement = (len(value) ^ _MAX_STORED).to_bytes(2, "little")
        pieces += (b"\x00", size, complement, value, part.deflated)
        crc = _combine_crc(_combine_crc(crc, zlib.crc32(value), len(value)), part.crc, part.length)
        length += len(value) + part.length
    pieces += (_END, crc.to_bytes(4, "little"), (length & 0xFFFFFFFF).to_bytes(4, "little"))
    return b"".join(pieces)


def _combine_crc(crc: int, crc_after: int, length_after: int) -> int:
    """Return the checksum of two texts one after the other."""
    return _gf2_product(_zeros_matrix(length_after), crc) ^ crc_after


def _gf2_product(matrix: Matrix, vector: int) -> int:
    """Return a product over the field of two elements; bit n of a vector stands before row n."""
    total = 0
    for row in matrix:
        if vector & 1:
            total ^= row
        vector >>= 1
    return total


@lru_cache(maxsize=8192)
def _zeros_matrix(length: int) -> Matrix:
    """Return the effect of ``length`` zero bytes on a checksum."""
    power: Matrix = (_POLYNOMIAL, *(1 << n for n in range(31)))  # one zero bit
    for _ in range(3):
        power = tuple(_gf2_product(power, row) for row in power)
    result: Matrix = tuple(1 << n for n in range(32))
    while length:
        if length & 1:
            result = tuple(_gf2_product(power, row) for row in result)
        power = tuple(_gf2_product(power, row) for row in power)
        length >>= 1
    return result
