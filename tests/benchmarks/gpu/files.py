"""Rows of a run on the way to and from its files."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol, TypeVar


class _Row(Protocol):
    @property
    def failed(self) -> bool: ...


_R = TypeVar("_R", bound=_Row)


def before(options: argparse.Namespace, row_of: Callable[[Mapping[str, Any]], _R]) -> list[_R]:
    """What an earlier run left in --json's file, where it is gone on with."""
    if not (options.resume and options.json and options.json.is_file()):
        return []
    rows = [row_of(data) for data in json.loads(options.json.read_text())["rows"]]
    return [row for row in rows if not row.failed]


def write(
    options: argparse.Namespace, head: Mapping[str, str], rows: Sequence[Any], table: str
) -> None:
    """The rows, as dataclasses, to --json's file, and the table to --markdown's."""
    if options.json:
        data = {"head": head, "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(data, indent=1))
    if options.markdown:
        lines = [f"    {name + ':':<10} {text}" for name, text in head.items()]
        options.markdown.write_text("\n".join([*lines, "", table, ""]))
