"""The first and last bytes of a file, read without unpickling or executing it."""

from __future__ import annotations

import bz2
import codecs
import lzma
import os
import re
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

SAMPLE_BYTES = 64 << 10
_MAX_LISTED = 1_000  # names in a folder
_MAX_NAME_BYTES = 512  # of a member of an archive
_XZ_MEMORY_BYTES = 96 << 20


@dataclass(frozen=True)
class Sample:
    """A file's name, size in bytes, and first and last bytes; both are the whole of a small file.

    ``listed`` are the names in a folder, None for a file.
    """

    name: str
    size: int
    head: bytes
    tail: bytes
    listed: tuple[str, ...] | None = None

    @classmethod
    def of_bytes(cls, name: str, content: bytes) -> Sample:
        """Return the sample of a file with this content."""
        return cls(name, len(content), content[:SAMPLE_BYTES], content[-SAMPLE_BYTES:])

    @cached_property
    def text(self) -> str:
        """The beginning as text; "" if it is not UTF-8 text."""
        if b"\0" in self.head:
            return ""
        try:
            return codecs.getincrementaldecoder("utf-8-sig")().decode(self.head)
        except UnicodeDecodeError:
            return ""

    @cached_property
    def ending(self) -> str:
        """The end as text."""
        return self.tail.decode(errors="replace")

    @cached_property
    def members(self) -> tuple[str, ...]:
        """The names in a folder, a zip archive or a tar archive, as far as the sample shows
        them."""
        if self.listed is not None:
            return self.listed
        if self.head[257:262] == b"ustar":
            return (_member_name(self.head[:100].rstrip(b"\0")),)
        names = dict.fromkeys(
            _member_name(part[match.end() + skip :][: int.from_bytes(match[1], "little")])
            for part in (self.tail, self.head)
            for pattern, skip in _ZIP_RECORDS
            for match in pattern.finditer(part)
        )
        return tuple(name for name in names if name)


# Records of the table of members and before each member: the length of the name, and how far the
# name is from there.
_ZIP_RECORDS = (
    (re.compile(rb"PK\x01\x02.{24}(..)", re.DOTALL), 16),
    (re.compile(rb"PK\x03\x04.{22}(..)", re.DOTALL), 2),
)


def _member_name(name: bytes) -> str:
    return name.decode(errors="replace") if len(name) <= _MAX_NAME_BYTES else ""


def read_sample(path: Path) -> Sample:
    """Return the sample of a file or a folder. Raises ``OSError``."""
    if path.is_dir():
        with os.scandir(path) as entries:
            names = sorted(entry.name for entry in islice(entries, _MAX_LISTED))
        return Sample(path.name, 0, b"", b"", tuple(names))
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(SAMPLE_BYTES)
        file.seek(max(0, size - SAMPLE_BYTES))
        return Sample(path.name, size, head, file.read(SAMPLE_BYTES))


def unpack_sample(sample: Sample) -> tuple[Sample, str]:
    """Return the sample of a compressed file's content and the compression; the same sample and ""
    if the file is not compressed. Unpacks at most ``SAMPLE_BYTES``."""
    for packing, magic, unpack in _PACKINGS:
        if sample.head.startswith(magic):
            content = b""
            with suppress(OSError, EOFError, zlib.error, lzma.LZMAError, ValueError):
                content = unpack(sample.head)
            # What cannot be unpacked is of an unknown kind, not empty.
            return Sample(sample.name, max(len(content), 1), content, content), packing
    return sample, ""


_PACKINGS: tuple[tuple[str, bytes, Callable[[bytes], bytes]], ...] = (
    (
        "gzip",
        b"\x1f\x8b",
        lambda data: zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data, SAMPLE_BYTES),
    ),
    (
        "xz",
        b"\xfd7zXZ\x00",
        lambda data: lzma.LZMADecompressor(memlimit=_XZ_MEMORY_BYTES).decompress(
            data, SAMPLE_BYTES
        ),
    ),
    ("bzip2", b"BZh", lambda data: bz2.BZ2Decompressor().decompress(data, SAMPLE_BYTES)),
    ("zstd", b"\x28\xb5\x2f\xfd", lambda _data: b""),
)
