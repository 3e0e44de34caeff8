"""The offload bundle in which HIP's runtime finds a library's code objects.

Format: clang's documentation, "Clang Offload Bundler", binary form.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from scheduler.arithmetic import round_up
from scheduler.errors import UserError

_MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
_HOST = "host-x86_64-unknown-linux-gnu"
_DEVICE = "hipv4-amdgcn-amd-amdhsa--"
_ALIGNMENT = 4096


def pack(code_objects: Mapping[str, bytes]) -> bytes:
    """Return a bundle of one code object per architecture (``gfx942`` → ELF), in the given order.

    The first entry is the host's, empty, as the runtime expects; its name does not depend on the
    host. Bodies begin at multiples of 4096 bytes.
    """
    entries = [(_HOST, b"")] + [(_DEVICE + arch, body) for arch, body in code_objects.items()]
    header_size = len(_MAGIC) + 8 + sum(24 + len(name) for name, _ in entries)
    offset = round_up(header_size, _ALIGNMENT)
    header = _MAGIC + struct.pack("<Q", len(entries))
    bodies = b""
    start = offset
    for name, body in entries:
        header += struct.pack("<QQQ", offset, len(body), len(name)) + name.encode()
        bodies = bodies.ljust(offset - start, b"\0") + body
        offset = round_up(offset + len(body), _ALIGNMENT)
    return header.ljust(start, b"\0") + bodies


def unpack(bundle: bytes) -> dict[str, bytes]:
    """Return the code objects of a bundle by architecture. Raises ``UserError`` if it is truncated
    or malformed."""
    problem = UserError("not an offload bundle, or damaged: build the kernel again")
    if not bundle.startswith(_MAGIC):
        raise problem
    result = {}
    position = len(_MAGIC) + 8
    try:
        (count,) = struct.unpack_from("<Q", bundle, len(_MAGIC))
        for _ in range(min(count, 1024)):
            offset, size, length = struct.unpack_from("<QQQ", bundle, position)
            name = bundle[position + 24 : position + 24 + length].decode()
            position += 24 + length
            if offset + size > len(bundle):
                raise problem
            if name.startswith(_DEVICE):
                result[name.removeprefix(_DEVICE)] = bundle[offset : offset + size]
    except (struct.error, UnicodeDecodeError):
        raise problem from None
    return result
