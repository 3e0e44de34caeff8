"""Reads and writes files of recorded results. Input is untrusted."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from cattrs import Converter

from scheduler.errors import UserError
from scheduler.files import write_atomic
from scheduler.ir.codec import decode, make_codec, rename_fields
from scheduler.results.checks import check
from scheduler.results.model import SCHEMA, Results, RunRecord

MAX_BYTES = 256 * 2**20
KIND = "kiln results"
_OPENERS: dict[str, Callable[..., Any]] = {".xz": lzma.open, ".gz": gzip.open}


def to_json(results: Results) -> dict[str, Any]:
    """Return the file's content. ``digest`` covers the rest of the content and detects damage."""
    body = {"kind": KIND, "schema": SCHEMA, **_codec().unstructure(results)}
    return {**body, "digest": digest_of(body)}


def from_json(content: Any, what: str) -> Results:
    """Parse what ``to_json`` returned. Raises ``UserError`` naming the row and the field."""
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise UserError(f"{what}: kind: not a results file")
    if content.get("schema") != SCHEMA:
        raise UserError(f"{what}: schema: this version of Kiln supports only {SCHEMA}")
    body = {name: part for name, part in content.items() if name != "digest"}
    results = decode(_codec(), body, Results, what)
    check(results, what)
    if content.get("digest") != digest_of(body):
        raise UserError(f"{what}: digest: the content does not match; the file is damaged")
    return results


def write(path: Path, results: Results) -> None:
    """Write a file, compressed if its name ends in ``.gz`` or ``.xz``: equal results give the same
    bytes."""
    text = json.dumps(
        to_json(results), indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False
    )
    data = f"{text}\n".encode()
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    elif path.suffix == ".xz":
        data = lzma.compress(data)
    write_atomic(path, data)


def read(path: Path, max_bytes: int = MAX_BYTES) -> Results:
    """Read a file. Raises ``UserError`` if it is not a results file, is damaged, or exceeds
    ``max_bytes`` when unpacked."""
    try:
        with _OPENERS.get(path.suffix, open)(path, "rb") as file:
            data = file.read(max_bytes + 1)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path.name} cannot be read: {reason}") from None
    if len(data) > max_bytes:
        raise UserError(f"{path.name}: more than {max_bytes >> 20} MiB")
    try:
        content = json.loads(data, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path.name} is not valid JSON: {error}") from None
    return from_json(content, path.name)


def run_digest(run: RunRecord) -> str:
    """Return the hash that identifies a run: equal for equal runs, in any file."""
    return digest_of(_codec().unstructure(run))


def digest_of(body: Any) -> str:
    """Return the sha256 of plain data."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _reject_constant(text: str) -> float:
    raise ValueError(f"{text} is not a number")


@cache
def _codec() -> Converter:
    codec = make_codec()
    # A run's hash must not change with a field that most runs do not have.
    rename_fields(codec, RunRecord, where_default=("revision",))
    return codec
