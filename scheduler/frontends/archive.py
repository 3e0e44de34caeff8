"""The zip around a torch.export model: only its JSON is read, under limits, and never unpickled.

A file of a few kilobytes can unpack to gigabytes, or name members outside any folder. So sizes
are checked before and while unpacking, only the model's member is unpacked, to memory, and members
whose names climb out of the archive are as good as absent.
"""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import Any

from scheduler.limits import (
    MAX_DIRECTORY_BYTES,
    MAX_FILE_BYTES,
    MAX_JSON_BYTES,
    MAX_JSON_PARTS,
    MAX_RATIO,
    RATIO_FREE_BYTES,
)
from scheduler.outcome import UserError

_END = struct.Struct("<4s4H2LH")
_END_LOCATOR_64 = struct.Struct("<4sLQL")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_MAX_COMMENT = 0xFFFF


def read_model_json(path: Path) -> Any:
    """The model's JSON document, parsed.

    Raises ``UserError`` naming the file or the member where it cannot be read.
    """
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise UserError(f"{path.name}: not a file")
        if size > MAX_FILE_BYTES:
            raise UserError(f"{path.name}: {size} bytes; at most {MAX_FILE_BYTES} are read")
        _check_directory(path, size)
        with zipfile.ZipFile(path) as archive:
            member = _find_model(path.name, archive)
            text = _unpack(path.name, archive, member)
    except OSError as error:
        raise UserError(f"{path.name}: cannot be read: {error.strerror or error}") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError) as error:
        raise UserError(f"{path.name}: damaged, or not a torch.export file: {error}") from error
    return _parse(f"{path.name}: {member.filename}", text)


def _check_directory(path: Path, size: int) -> None:
    """Raise ``UserError`` for a table of members too large for zipfile, which reads all of it."""
    with path.open("rb") as file:
        file.seek(max(0, size - _END.size - _MAX_COMMENT - _END_LOCATOR_64.size))
        tail = file.read()
        at = tail.rfind(b"PK\x05\x06")
        if at < 0 or at + _END.size > len(tail):
            raise UserError(f"{path.name}: not a torch.export file (not a zip, or cut off)")
        directory_bytes = _END.unpack_from(tail, at)[5]
        before = at - _END_LOCATOR_64.size
        if before >= 0 and tail[before : before + 4] == b"PK\x06\x07":
            file.seek(min(_END_LOCATOR_64.unpack_from(tail, before)[2], size))
            record = file.read(_END_64.size)
            if len(record) == _END_64.size:
                directory_bytes = max(directory_bytes, _END_64.unpack(record)[8])
    if directory_bytes > MAX_DIRECTORY_BYTES:
        raise UserError(f"{path.name}: its table of members is larger than any model's")


def _find_model(file: str, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    """The member with the model: ``<name>/models/model.json``, or the older root file."""
    models: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        parts = PurePosixPath(member.filename).parts
        if member.filename.startswith(("/", "\\")) or ".." in parts:
            continue
        if parts == ("serialized_exported_program.json",) or (
            len(parts) == 3 and parts[1] == "models" and parts[2].endswith(".json")
        ):
            if member.filename in models:
                raise UserError(f"{file}: member {member.filename!r} stands in it twice")
            models[member.filename] = member
    if not models:
        raise UserError(f"{file}: not a torch.export file: no member models/model.json")
    if len(models) > 1:
        models = {n: m for n, m in models.items() if n.endswith("/models/model.json")} or models
    if len(models) > 1:
        raise UserError(f"{file}: holds {len(models)} models ({', '.join(sorted(models)[:4])}, …)")
    return next(iter(models.values()))


def _unpack(file: str, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    where = f"{file}: {member.filename}"
    if member.flag_bits & 1:
        raise UserError(f"{where}: is encrypted")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise UserError(f"{where}: compressed with an unknown method")
    if member.file_size > MAX_JSON_BYTES:
        raise UserError(f"{where}: {member.file_size} bytes; at most {MAX_JSON_BYTES} are read")
    packed = max(member.compress_size, 1)
    if member.file_size > RATIO_FREE_BYTES and member.file_size / packed > MAX_RATIO:
        raise UserError(f"{where}: unpacks to {member.file_size // packed} times its size")
    with archive.open(member) as stream:
        return stream.read(MAX_JSON_BYTES)


def _parse(where: str, text: bytes) -> Any:
    if sum(text.count(mark) for mark in (b"{", b"[", b",")) > MAX_JSON_PARTS:
        raise UserError(f"{where}: has more than {MAX_JSON_PARTS} parts")
    try:
        return json.loads(text)
    except RecursionError as error:
        raise UserError(f"{where}: is nested too deeply") from error
    except ValueError as error:  # bad JSON, bad UTF-8
        raise UserError(f"{where}: is not JSON: {error}") from error
