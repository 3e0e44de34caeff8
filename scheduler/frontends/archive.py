"""Read the zip archive around a torch.export model. Only its JSON is read, under limits; nothing is
unpickled.

A file of a few kilobytes can unpack to gigabytes, or name members outside any folder. Sizes are
therefore checked before and while unpacking, only the model's member is unpacked, to memory, and
members whose names climb out of the archive are ignored.
"""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from scheduler.errors import UserError
from scheduler.frontends.fields import quote_value
from scheduler.frontends.file_kinds import Use
from scheduler.frontends.recognition import recognize_file
from scheduler.limits import (
    MAX_DIRECTORY_BYTES,
    MAX_FILE_BYTES,
    MAX_JSON_BYTES,
    MAX_JSON_TOKENS,
    MAX_RATIO,
    RATIO_FREE_BYTES,
)

_END = struct.Struct("<4s4H2LH")
_END_LOCATOR_64 = struct.Struct("<4sLQL")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_MAX_COMMENT = 0xFFFF
_MAX_LISTED = 8  # models that a message names


def default_name(stem: str, model_name: str) -> str:
    """The name of a graph: the file's stem, followed by the model's name if one was chosen."""
    return f"{stem}:{model_name}" if model_name else stem


def read_model_json(path: Path, model_name: str = "") -> Any:
    """Return the parsed JSON document of a model: the only one, or the one named ``model_name``.

    Raises ``UserError`` naming the file or the member if it cannot be read. If there are several
    models, or none of that name, the error lists them.
    """
    with open_archive(path) as archive:
        models = model_members(path, archive)
        if model_name not in models:
            names = ", ".join(sorted(quote_value(name) for name in models)[:_MAX_LISTED])
            names += f" and {len(models) - _MAX_LISTED} more" if len(models) > _MAX_LISTED else ""
            if model_name:
                raise UserError(
                    f"{path.name}: no model {quote_value(model_name)}; the models are {names}"
                )
            if len(models) > 1:
                raise UserError(f"{path.name}: contains the models {names}: choose one by its name")
        member = models.get(model_name) or next(iter(models.values()))
        text = read_member(path.name, archive, member)
    return parse_json(f"{path.name}: {member.filename}", text)


@contextmanager
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open the archive after checking its size and its table of members. Errors inside the context
    are raised as ``UserError`` too."""
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise _not_a_model(path) if path.is_dir() else UserError(f"{path.name}: not a file")
        if size > MAX_FILE_BYTES:
            raise UserError(f"{path.name}: {size} bytes; the limit is {MAX_FILE_BYTES}")
        _check_directory(path, size)
        with zipfile.ZipFile(path) as archive:
            yield archive
    except OSError as error:
        raise UserError(f"{path.name}: cannot be read: {error.strerror or error}") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError) as error:
        raise UserError(f"{path.name}: damaged, or not a torch.export file: {error}") from error


def _check_directory(path: Path, size: int) -> None:
    """Raise ``UserError`` if the table of members is too large; zipfile reads all of it."""
    with path.open("rb") as file:
        file.seek(max(0, size - _END.size - _MAX_COMMENT - _END_LOCATOR_64.size))
        tail = file.read()
        end_offset = tail.rfind(b"PK\x05\x06")
        if end_offset < 0 or end_offset + _END.size > len(tail):
            raise _not_a_model(path)
        directory_bytes = _END.unpack_from(tail, end_offset)[5]
        locator_offset = end_offset - _END_LOCATOR_64.size
        if locator_offset >= 0 and tail[locator_offset : locator_offset + 4] == b"PK\x06\x07":
            file.seek(min(_END_LOCATOR_64.unpack_from(tail, locator_offset)[2], size))
            record = file.read(_END_64.size)
            if len(record) == _END_64.size:
                directory_bytes = max(directory_bytes, _END_64.unpack(record)[8])
    if directory_bytes > MAX_DIRECTORY_BYTES:
        raise UserError(f"{path.name}: the zip directory is larger than that of any model")


def model_members(path: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Return the members that hold models by model name: ``<root>/models/<name>.json``, or the
    older root file, whose model is called ``model``. Raises ``UserError`` if there are none."""
    models: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        parts = PurePosixPath(member.filename).parts
        if member.filename.startswith(("/", "\\")) or ".." in parts:
            continue
        if parts == ("serialized_exported_program.json",):
            name = "model"
        elif parts[1:2] == ("models",) and member.filename.endswith(".json"):
            name = "/".join(parts[2:]).removesuffix(".json")
        else:
            continue
        if name in models:
            raise UserError(f"{path.name}: duplicate member {member.filename!r}")
        models[name] = member
    if not models:
        raise _not_a_model(path)
    return models


def _not_a_model(path: Path) -> UserError:
    """Return an error that says what the file is instead of a model, and what to do."""
    recognition = recognize_file(path)
    if recognition.use is Use.GRAPH:
        return UserError(f"{path.name}: damaged, or no member models/model.json")
    return UserError(f"{path.name}: not a torch.export file: {recognition.sentence}")


def read_member(file: str, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    where = f"{file}: {member.filename}"
    if member.flag_bits & 1:
        raise UserError(f"{where}: encrypted members are not supported")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise UserError(f"{where}: unknown compression method")
    if member.file_size > MAX_JSON_BYTES:
        raise UserError(f"{where}: {member.file_size} bytes; the limit is {MAX_JSON_BYTES}")
    packed = max(member.compress_size, 1)
    if member.file_size > RATIO_FREE_BYTES and member.file_size / packed > MAX_RATIO:
        raise UserError(f"{where}: unpacks to {member.file_size // packed} times its packed size")
    with archive.open(member) as stream:
        return stream.read(MAX_JSON_BYTES)


def parse_json(where: str, text: bytes) -> Any:
    if sum(text.count(mark) for mark in (b"{", b"[", b",")) > MAX_JSON_TOKENS:
        raise UserError(f"{where}: has more than {MAX_JSON_TOKENS} parts")
    try:
        return json.loads(text)
    except RecursionError as error:
        raise UserError(f"{where}: nested too deeply") from error
    except ValueError as error:  # bad JSON, bad UTF-8
        raise UserError(f"{where}: not valid JSON: {error}") from error
