"""Imports bytes of any known format as points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scheduler.errors import UserError
from scheduler.frontends.file_sample import Sample
from scheduler.frontends.recognition import recognize
from scheduler.results.points import json_text, native
from scheduler.results.points.formats import autotune, bencher, google_benchmark, pytest_benchmark
from scheduler.results.points.model import ImportContext, Points
from scheduler.targets.modelled import is_modelled

AUTO = "auto"


@dataclass(frozen=True)
class Format:
    """A format: its title, a test for its content, and its reader, which raises ``UserError``
    naming the row and the field. Both take a JSON document, or the text if ``is_text``."""

    title: str
    accepts: Callable[[Any], bool]
    read: Callable[[Any, ImportContext], Points]
    is_text: bool = False


def has_keys_test(*names: str) -> Callable[[Any], bool]:
    """Return a test for a JSON object with these keys."""

    def accepts(content: Any) -> bool:
        return isinstance(content, dict) and content.keys() >= {*names}

    return accepts


#: In the order in which they are tried: the last formats have no marker.
FORMATS = {
    "kiln": Format("Kiln's points", native.accepts, native.read),
    "pytest-benchmark": Format(
        "pytest-benchmark's JSON",
        has_keys_test("benchmarks", "machine_info"),
        pytest_benchmark.read,
    ),
    "google-benchmark": Format(
        "Google Benchmark's JSON", has_keys_test("benchmarks", "context"), google_benchmark.read
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
        title = recognize(Sample.of_bytes("", data)).title
        raise UserError(f"byte {error.start}: not UTF-8 text; the file is {title}") from None
    detected_format, content = _detect(text, name)
    imported = detected_format.read(content, context)
    for point in imported.points:
        if is_modelled(point.series.device):
            raise UserError(f"device {point.series.device!r}: modelled times are not measurements")
    if not imported.points:
        if not imported.left_out:
            raise UserError("points: no points")
        first, *others = imported.left_out
        count_note = f" (and {len(others)} more)" if others else ""
        raise UserError(f"{first.where}: {first.reason}{count_note}")
    return imported


def _detect(text: str, name: str) -> tuple[Format, Any]:
    """Return the format of a file, and what its reader takes."""
    requested = FORMATS.get(name)
    if requested is not None and requested.is_text:
        return requested, text
    try:
        content = json_text.read(text)
    except UserError:
        log = FORMATS["autotune"]
        if requested is None and log.accepts(text):
            return log, text
        raise
    if requested is not None:
        if not requested.accepts(content):
            raise UserError(f"format: not {requested.title}")
        return requested, content
    for candidate_format in FORMATS.values():
        candidate = text if candidate_format.is_text else content  # a log may be a text inside JSON
        if candidate_format.accepts(candidate):
            return candidate_format, candidate
    titles = ", ".join(candidate_format.title for candidate_format in FORMATS.values())
    title = recognize(Sample.of_bytes("", text.encode())).title
    raise UserError(f"format: not recognized: the file is {title}; expected one of: {titles}")
