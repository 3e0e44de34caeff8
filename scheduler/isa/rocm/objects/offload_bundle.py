"""Extracts one target's code object from a file made by ``clang-offload-bundler``."""

from __future__ import annotations

import re
import struct

from scheduler.errors import UserError
from scheduler.text import one_line

_MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
_COMPRESSED = b"CCOB"
_ENTRY = struct.Struct("<QQQ")
_MOST_ENTRIES = 256
_LONGEST_NAME = 256


def unbundle(content: bytes, processor: str) -> bytes:
    """Return the code object for a processor (``gfx942``) from a bundle; other content unchanged.

    Raises ``UserError``, also for compressed bundles.
    """
    if content.startswith(_COMPRESSED):
        raise UserError("a compressed bundle of code objects: unpack it with clang-offload-bundler")
    if not content.startswith(_MAGIC):
        return content
    entries: dict[str, bytes] = {}
    try:
        at = len(_MAGIC) + 8
        (count,) = struct.unpack_from("<Q", content, len(_MAGIC))
        for _ in range(min(count, _MOST_ENTRIES)):
            offset, size, length = _ENTRY.unpack_from(content, at)
            at += _ENTRY.size
            name = content[at : at + min(length, _LONGEST_NAME)].decode("utf-8", "replace")
            at += length
            entries[name] = content[offset : offset + size]
    except struct.error:
        raise UserError("truncated bundle of code objects") from None
    for name, body in entries.items():
        if re.search(rf"-{re.escape(processor)}(?::|$)", name) and body:
            return body
    held = one_line(", ".join(entries) or "nothing")
    raise UserError(f"no code object for {processor} in the bundle, which holds {held}")
