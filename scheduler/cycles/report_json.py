"""Converts a report to and from JSON text, for rows, caches and files (``ir/codec.py``)."""

from __future__ import annotations

import json
from typing import Any

from scheduler.cycles.report import VERSION, Report
from scheduler.errors import UserError
from scheduler.ir.codec import decode, make_codec

_CODEC = make_codec()


def to_json(report: Report) -> dict[str, Any]:
    """Return the report in JSON's own types."""
    plain: dict[str, Any] = _CODEC.unstructure(report)
    return plain


def from_json(data: Any) -> Report:
    """Parse what ``to_json`` returned. Raises ``UserError`` if it is no report, or one of another
    version of the model, whose figures have other meanings."""
    version = data.get("version") if isinstance(data, dict) else None
    if version != VERSION:
        raise UserError(
            f"modelled report: made by version {version} of the model, expected {VERSION}: model"
            " the kernel again"
        )
    return decode(_CODEC, data, Report, "modelled report")


def write(report: Report) -> bytes:
    """Return the report as a file's content."""
    return json.dumps(to_json(report), separators=(",", ":"), allow_nan=False).encode()


def read(content: bytes) -> Report:
    """Parse a file's content. Raises ``UserError`` as ``from_json`` does."""
    try:
        return from_json(json.loads(content))
    except ValueError as error:
        raise UserError(f"modelled report: not valid JSON: {error}") from None
