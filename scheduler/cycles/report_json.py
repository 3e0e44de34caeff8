"""A report as JSON text, and read again: in rows, caches and files (``ir/codec.py``)."""

from __future__ import annotations

import json
from typing import Any

from scheduler.cycles.report import VERSION, Report
from scheduler.errors import UserError
from scheduler.ir.codec import decode, make_codec

_CODEC = make_codec()


def to_json(report: Report) -> dict[str, Any]:
    """The report in JSON's own types."""
    plain: dict[str, Any] = _CODEC.unstructure(report)
    return plain


def from_json(data: Any) -> Report:
    """What ``to_json`` wrote. Raises ``UserError`` for what is no report, or one of another version
    of the model: its figures stand for something else."""
    version = data.get("version") if isinstance(data, dict) else None
    if version != VERSION:
        raise UserError(
            f"modelled report: it is of version {version} of the model, this is {VERSION}: model"
            " the kernel again"
        )
    return decode(_CODEC, data, Report, "modelled report")


def write(report: Report) -> bytes:
    """The report as a file."""
    return json.dumps(to_json(report), separators=(",", ":"), allow_nan=False).encode()


def read(content: bytes) -> Report:
    """The report of a file. Raises ``UserError`` as ``from_json``."""
    try:
        return from_json(json.loads(content))
    except ValueError as error:
        raise UserError(f"modelled report: it is no JSON: {error}") from None
