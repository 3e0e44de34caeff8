"""Damage to the zip around a model, and to its bytes."""

from __future__ import annotations

import io
import stat
import struct
import zipfile
from collections.abc import Callable
from random import Random

Pack = Callable[[str, bytes, Random], bytes]


def packed(member: str, text: bytes, random: Random) -> bytes:
    """The archive with the model's text in it, one trick played with it."""
    return random.choice(_TRICKS)(member, text, random)


def plain(member: str, text: bytes) -> bytes:
    """A well-formed archive of one member."""
    return _archive({member: text})


def _archive(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, text in members.items():
            archive.writestr(zipfile.ZipInfo(name), text, method)
    return file.getvalue()


def _flipped(member: str, text: bytes, random: Random) -> bytes:
    data = bytearray(plain(member, text))
    for _ in range(random.choice((1, 1, 2, 8, 64))):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return bytes(data)


def _flipped_text(member: str, text: bytes, random: Random) -> bytes:
    data = bytearray(text)
    for _ in range(random.choice((1, 1, 2, 8))):
        data[random.randrange(len(data))] = random.randrange(256)
    return plain(member, bytes(data))


def _cut(member: str, text: bytes, random: Random) -> bytes:
    data = plain(member, text)
    start = random.choice((0, 0, random.randrange(len(data))))
    return data[start : random.randrange(len(data))]


def _many_members(member: str, text: bytes, random: Random) -> bytes:
    names = {f"m/data/weights/{number}": b"" for number in range(random.choice((100, 3000)))}
    return _archive({**names, member: text}, zipfile.ZIP_STORED)


def _bomb(member: str, text: bytes, random: Random) -> bytes:
    fill = random.choice((b" ", b"[", b"0", b'{"a":', b"[],", b'"'))
    return plain(member, text[:-1] + fill * (random.choice((1 << 20, 1 << 24)) // len(fill)))


def _twice(member: str, text: bytes, random: Random) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo(member), text)
        archive.writestr(zipfile.ZipInfo(random.choice((member, "b/models/model.json"))), text)
    return file.getvalue()


def _lying(member: str, text: bytes, random: Random) -> bytes:
    """Sizes, offsets and counts of the table of members that say something else."""
    data = bytearray(plain(member, text))
    at = data.rfind(b"PK\x01\x02")
    end = data.rfind(b"PK\x05\x06")
    value = random.choice((0, 1, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, random.getrandbits(32)))
    if random.random() < 0.5:
        place = at + random.choice((16, 20, 24, 42))  # crc, packed, unpacked, offset
        data[place : place + 4] = struct.pack("<I", value)
    elif random.random() < 0.5:
        place = at + random.choice((8, 10, 28, 30, 32))  # flags, method, lengths
        data[place : place + 2] = struct.pack("<H", value & 0xFFFF)
    else:
        place = end + random.choice((12, 16))
        data[place : place + 4] = struct.pack("<I", value)
    return bytes(data)


def _encrypted(member: str, text: bytes, random: Random) -> bytes:
    data = bytearray(plain(member, text))
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.find(mark) + place] |= 1
    return bytes(data)


def _link(member: str, text: bytes, random: Random) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        info = zipfile.ZipInfo(member)
        info.create_system = 3
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, random.choice(("/etc/hostname", "../../x", member)))
    return file.getvalue()


def _nested(member: str, text: bytes, random: Random) -> bytes:
    return plain(member, plain(member, text))


def _named(member: str, text: bytes, random: Random) -> bytes:
    name = random.choice(
        (
            *("../models/model.json", "/m/models/model.json", "m\\models\\model.json", "\x00"),
            *("m/models/../models/model.json", "a" * 60_000, "m/models/" + "b" * 9000 + ".json"),
        )
    )
    return plain(name, text)


def _compressed(member: str, text: bytes, random: Random) -> bytes:
    return _archive({member: text}, random.choice((zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)))


def _wrapped(member: str, text: bytes, random: Random) -> bytes:
    return random.randbytes(random.choice((1, 1000))) + plain(member, text) + b"\0" * 70_000


def _no_archive(member: str, text: bytes, random: Random) -> bytes:
    return random.choice((b"", text, random.randbytes(2000), b"PK\x05\x06" + b"\0" * 18))


_TRICKS: tuple[Pack, ...] = (
    *(_flipped, _flipped, _flipped, _flipped_text, _flipped_text, _cut, _many_members, _bomb),
    *(_twice, _lying, _lying, _encrypted, _link, _nested, _named, _compressed, _wrapped),
    _no_archive,
)
