"""The metadata of a code object's kernels: MessagePack in its note, YAML in a listing.

LLVM, "User Guide for AMDGPU Backend", Code Object V3 and later Metadata.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgpack

from scheduler.errors import UserError
from scheduler.text import one_line

NOTE_NAME, NOTE_TYPE = "AMDGPU", 32  # NT_AMDGPU_METADATA
_MOST_ITEMS = 4096
_LONGEST_TEXT = 4096
_DEEPEST = 6
_PLAIN = re.compile(r"[A-Za-z_][\w.$@/-]*")


def read(content: bytes) -> Mapping[str, Any]:
    """Parse the metadata of a note's bytes. Raises ``UserError`` if it is no such map."""
    try:
        metadata = msgpack.unpackb(
            content,
            raw=False,
            unicode_errors="replace",
            strict_map_key=True,
            max_str_len=_LONGEST_TEXT,
            max_bin_len=0,
            max_ext_len=0,
            max_array_len=_MOST_ITEMS,
            max_map_len=_MOST_ITEMS,
        )
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        reason = str(error) or "invalid MessagePack"
        raise UserError(f"the metadata cannot be read: {reason}") from None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("amdhsa.kernels", []), list):
        raise UserError("the metadata is not a list of kernels")
    return metadata


def kernel_entries(metadata: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield its kernels: the entries that are maps with a name."""
    for entry in metadata.get("amdhsa.kernels", []):
        if isinstance(entry, dict) and isinstance(entry.get(".name"), str):
            yield entry


def to_yaml(metadata: Mapping[str, Any], kernels: Sequence[str]) -> list[str]:
    """Return the metadata lines of some kernels, as the compiler writes them."""
    chosen = [entry for entry in kernel_entries(metadata) if entry[".name"] in kernels]
    others = {key: value for key, value in metadata.items() if key != "amdhsa.kernels"}
    return list(_lines({"amdhsa.kernels": chosen, **others}, 0))


def _lines(value: Mapping[str, Any], depth: int) -> Iterator[str]:
    """Yield a map's lines with LLVM's indentation: lists of maps two deeper than their key."""
    if depth > _DEEPEST:
        raise UserError("the metadata is nested too deeply")
    indent = "  " * depth
    for key in sorted(value, key=str):
        entry = value[key]
        if isinstance(entry, dict):
            yield f"{indent}{_text(key)}:"
            yield from _lines(entry, depth + 1)
        elif isinstance(entry, list):
            yield f"{indent}{_text(key)}:"
            yield from _items(entry, depth + 1)
        else:
            yield f"{indent}{_text(key)}: {_text(entry)}"


def _items(values: Sequence[Any], depth: int) -> Iterator[str]:
    indent = "  " * depth
    for value in values:
        if isinstance(value, dict):
            first = True
            for line in _lines(value, depth + 1):
                yield f"{indent}- {line[len(indent) + 2 :]}" if first else line
                first = False
        else:
            yield f"{indent}- {_text(value)}"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    text = one_line(str(value))
    return (
        text
        if _PLAIN.fullmatch(text) or text.startswith(".")
        else "'" + text.replace("'", "''") + "'"
    )
