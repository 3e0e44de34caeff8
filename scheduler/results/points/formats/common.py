"""Helpers shared by the readers of other tools' files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from scheduler.errors import UserError
from scheduler.results.points import fields
from scheduler.results.points.model import (
    MAX_POINTS,
    MAX_SAMPLES,
    ImportContext,
    Point,
    Points,
    SeriesKey,
    SkippedPart,
    better_direction,
)
from scheduler.stats.intervals import rank_interval
from scheduler.text import MAX_NAME, one_line

#: Nanoseconds in a unit of time.
NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


_MAX_ROWS = 100_000  # 32 MiB of Google Benchmark's own files have 80,000


def check_row_count(count: int, location: str) -> None:
    """Raise ``UserError`` for more rows in a file than one request may read, counting repetitions
    of a benchmark."""
    fields.require(count <= _MAX_ROWS, location, f"more than {_MAX_ROWS} rows: split the file")


def benchmarks(document: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return position and content of each row of the list ``benchmarks``, which is not empty."""
    rows = fields.as_list(document["benchmarks"], "benchmarks")
    fields.require(bool(rows), "benchmarks", "no benchmarks")
    return [(f"benchmarks[{number}]", row) for number, row in enumerate(rows)]


class _TooManyError(UserError):
    """The file holds more than a batch may: the whole file is rejected, not single rows."""


class Rows:
    """The points of a tool's file, row by row: an invalid row is left out and reported by name, the
    others remain. Raises ``UserError`` if neither the file nor the import options name the device
    and the revision, and, while reading, if points and skipped rows exceed ``MAX_POINTS``."""

    def __init__(self, context: ImportContext) -> None:
        for name in ("device", "revision"):
            why = "missing in the file: specify it as a parameter"
            fields.require(bool(getattr(context, name).strip()), name, why)
        self.context = context
        self._added: list[tuple[str, Point]] = []
        self._skipped: list[SkippedPart] = []

    def add(self, location: str, point: Point) -> None:
        """Add a point of the row ``location``."""
        self.need_room(location)
        self._added.append((location, point))

    def leave_out(self, location: str, name: Any, why: str) -> None:
        """Report a row without a figure. ``name`` is its name in the file, text or not."""
        self.need_room(location)
        prefix = f"{one_line(name, MAX_NAME)}: " if isinstance(name, str) and name else ""
        self._skipped.append(SkippedPart(one_line(location, MAX_NAME), prefix + one_line(why)))

    def need_room(self, location: str, count: int = 1) -> None:
        """Raise ``UserError`` if ``count`` points do not fit into the batch, which ends the
        reading."""
        if len(self._added) + len(self._skipped) + count <= MAX_POINTS:
            return
        wrong = ""
        if self._skipped:
            first = self._skipped[0]
            wrong = f" ({len(self._skipped)} left out, first {first.where}: {first.reason})"
        raise _TooManyError(
            f"{one_line(location, MAX_NAME)}: more than {MAX_POINTS} points, including"
            f" left-out rows: split the file{wrong}"
        )

    @contextmanager
    def row(self, location: str, name: Any = "") -> Iterator[None]:
        """Process one row: if the body raises ``UserError``, the row has no points."""
        before = len(self._added)
        try:
            yield
        except _TooManyError:
            raise
        except UserError as error:
            del self._added[before:]
            self.leave_out(location, name, str(error).removeprefix(location).lstrip(".: "))

    def points(self, *, once: bool = True) -> Points:
        """Return all points. If a benchmark may occur only ``once`` in a file, figures of the same
        name, metric and unit are all left out: the file does not say which of them counts."""
        rows = self._added
        if once:
            counts = Counter(_point_identity(point) for _, point in rows)
            doubled = {
                location: point for location, point in rows if counts[_point_identity(point)] > 1
            }
            rows = self._added = [row for row in rows if counts[_point_identity(row[1])] == 1]
            for location, row in doubled.items():
                self.leave_out(location, row.series.problem, "occurs more than once in the file")
        return Points(tuple(point for _, point in rows), tuple(self._skipped))


def _point_identity(point: Point) -> tuple[str, str, str]:
    return point.series.problem, point.series.metric, point.series.unit


def make_point(
    context: ImportContext,
    problem: str,
    location: str,
    *,
    metric: str,
    unit: str,
    value: float,
    measured_at: datetime | None = None,
    **more: Any,
) -> Point:
    """Make a point from the file's data and the context. Raises ``UserError`` naming the field,
    also for a time that is 0 or negative."""
    series = SeriesKey(
        problem=fields.as_text(problem, location, 500, empty=False),
        sizes={},
        target=context.target,
        device=context.device,
        toolchain=context.toolchain,
        metric=fields.as_text(metric, f"{location}.metric", 80, empty=False),
        unit=fields.as_text(unit, f"{location}.unit", 40),
    )
    value = fields.as_number(value, f"{location}.value")
    if unit == "ns":
        fields.require(value > 0, location, f"{value:g} ns is not a time: must be above 0")
        fields.require(
            all(sample >= 0 for sample in more.get("samples", ())), location, "negative time"
        )
    return Point(
        series=series,
        value=value,
        measured_at=context.measured_at or measured_at or context.now,
        revision=context.revision_key,
        **{"better": better_direction(unit), **more},
    )


def sample_fields(samples: Sequence[float], location: str, factor: float = 1.0) -> dict[str, Any]:
    """Return the fields of a point with samples, each multiplied by ``factor``: their median with
    its interval. If there are more than a point stores, it stores every n-th."""
    if not samples:
        raise UserError(f"{location}: no samples")
    step = -(-len(samples) // MAX_SAMPLES)
    stored = tuple(fields.as_numbers([sample * factor for sample in samples[::step]], location))
    interval = rank_interval(stored)
    return {
        "value": interval.median,
        "low": interval.low,
        "high": interval.high,
        "n": len(samples),
        "samples": stored,
    }
