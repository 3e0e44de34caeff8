"""Imports bytes of any known format as points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from scheduler.errors import UserError
from scheduler.results.points import json_text, native
from scheduler.results.points.formats import autotune, bencher, google_benchmark, pytest_benchmark
from scheduler.results.points.model import KIND, ImportContext, Points, SkippedPart
from scheduler.targets.modelled import is_modelled

AUTO = "auto"


@dataclass(frozen=True)
class Format:
    """A format: its title, a test for its content, and its reader. It takes text if ``is_text``."""

    title: str
    accepts: Callable[[Any], bool]
    read: Callable[[Any, ImportContext], Points]
    is_text: bool = False


#: In the order in which they are tried: the last ones have no marker of their own.
FORMATS = {
    "kiln": Format(
        "Kiln's points",
        lambda content: isinstance(content, dict) and content.get("kind") == KIND,
        native.read,
    ),
    "pytest-benchmark": Format(
        "pytest-benchmark's JSON", pytest_benchmark.accepts, pytest_benchmark.read
    ),
    "google-benchmark": Format(
        "Google Benchmark's JSON", google_benchmark.accepts, google_benchmark.read
    ),
    "bmf": Format("Bencher's Metric Format", bencher.accepts, bencher.read),
    "autotune": Format("AUTOTUNE log of Inductor", autotune.accepts, autotune.read, is_text=True),
}


def read(data: bytes, context: ImportContext, name: str = AUTO) -> Points:
    """Return the points in a file. Raises ``UserError`` naming the row and the field, or listing
    the accepted formats."""
    if name not in (AUTO, *FORMATS):
        raise UserError(f"format: expected one of {', '.join((AUTO, *FORMATS))}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"byte {error.start}: not UTF-8 text") from None
    kind, content = _parse(text, name)
    found = kind.read(content, context)
    for one in found.points:
        if is_modelled(one.series.device):
            raise UserError(f"device {one.series.device!r}: modelled times are not measurements")
    if not found.points:
        raise UserError(_no_points_reason(found.left_out))
    return found


def _no_points_reason(left_out: Sequence[SkippedPart]) -> str:
    """Return why there are no points."""
    if not left_out:
        return "points: no points"
    more = f" (and {len(left_out) - 1} more)" if len(left_out) > 1 else ""
    return f"{left_out[0].where}: {left_out[0].reason}{more}"


def _parse(text: str, name: str) -> tuple[Format, Any]:
    named = FORMATS.get(name)
    if named is not None and named.is_text:
        return named, text
    try:
        content = json_text.read(text)
    except UserError:
        log = FORMATS["autotune"]
        if named is None and log.accepts(text):
            return log, text
        raise
    if named is not None:
        if not named.accepts(content):
            raise UserError(f"format: not {named.title}")
        return named, content
    for kind in FORMATS.values():
        given = text if kind.is_text else content  # a log may be a text inside JSON
        if kind.accepts(given):
            return kind, given
    known = ", ".join(kind.title for kind in FORMATS.values())
    raise UserError(f"format: not recognized; expected one of: {known}")
