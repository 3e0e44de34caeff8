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
    MOST_POINTS,
    MOST_SAMPLES,
    ImportContext,
    Point,
    Points,
    RevisionKey,
    SeriesKey,
    SkippedPart,
    better_direction,
)
from scheduler.stats.intervals import rank_interval
from scheduler.text import MAX_NAME, one_line

#: Nanoseconds in a unit of time.
NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


_MOST_ROWS = 100_000  # 32 MiB of Google Benchmark's own files have 80,000


def check_row_count(count: int, at: str) -> None:
    """Raise ``UserError`` for more rows in a file than one request may read, counting repetitions
    of a benchmark."""
    fields.require(count <= _MOST_ROWS, at, f"more than {_MOST_ROWS} rows: split the file")


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
    and the revision, and, while reading, if points and skipped rows exceed ``MOST_POINTS``."""

    def __init__(self, context: ImportContext) -> None:
        for name in ("device", "revision"):
            why = "missing in the file: specify it as a parameter"
            fields.require(bool(getattr(context, name).strip()), name, why)
        self.context = context
        self._made: list[tuple[str, Point]] = []
        self._left_out: list[SkippedPart] = []

    def add(self, at: str, point: Point) -> None:
        """Add a point of the row ``at``."""
        self.need_room(at)
        self._made.append((at, point))

    def leave_out(self, at: str, name: Any, why: str) -> None:
        """Report a row without a figure. ``name`` is its name in the file, text or not."""
        self.need_room(at)
        named = f"{one_line(name, MAX_NAME)}: " if isinstance(name, str) and name else ""
        self._left_out.append(SkippedPart(one_line(at, MAX_NAME), named + one_line(why)))

    def need_room(self, at: str, more: int = 1) -> None:
        """Raise ``UserError`` if ``more`` points do not fit into the batch, which ends the
        reading."""
        if len(self._made) + len(self._left_out) + more <= MOST_POINTS:
            return
        wrong = ""
        if self._left_out:
            first = self._left_out[0]
            wrong = f" ({len(self._left_out)} left out, first {first.where}: {first.reason})"
        raise _TooManyError(
            f"{one_line(at, MAX_NAME)}: more than {MOST_POINTS} points, including left-out rows:"
            f" split the file{wrong}"
        )

    @contextmanager
    def row(self, at: str, name: Any = "") -> Iterator[None]:
        """Process one row: if the body raises ``UserError``, the row has no points."""
        before = len(self._made)
        try:
            yield
        except _TooManyError:
            raise
        except UserError as error:
            del self._made[before:]
            self.leave_out(at, name, str(error).removeprefix(at).lstrip(".: "))

    def points(self, *, once: bool = True) -> Points:
        """Return all points. If a benchmark may occur only ``once`` in a file, figures of the same
        name, metric and unit are all left out: the file does not say which of them counts."""
        rows = self._made
        if once:
            counts = Counter(_name(point) for _, point in rows)
            doubled = {at: point for at, point in rows if counts[_name(point)] > 1}
            rows = self._made = [one for one in rows if counts[_name(one[1])] == 1]
            for at, one in doubled.items():
                self.leave_out(at, one.series.problem, "occurs more than once in the file")
        return Points(tuple(point for _, point in rows), tuple(self._left_out))


def _name(point: Point) -> tuple[str, str, str]:
    return point.series.problem, point.series.metric, point.series.unit


def make_point(
    context: ImportContext,
    problem: str,
    at: str,
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
        problem=fields.as_text(problem, at, 500, empty=False),
        sizes={},
        target=context.target,
        device=context.device,
        toolchain=context.toolchain,
        metric=fields.as_text(metric, f"{at}.metric", 80, empty=False),
        unit=fields.as_text(unit, f"{at}.unit", 40),
    )
    value = fields.as_number(value, f"{at}.value")
    if unit == "ns":
        fields.require(value > 0, at, f"{value:g} ns is not a time: must be above 0")
        fields.require(all(sample >= 0 for sample in more.get("samples", ())), at, "negative time")
    return Point(
        series=series,
        value=value,
        measured_at=context.measured_at or measured_at or context.now,
        revision=RevisionKey(
            context.revision, context.revision_at, context.branch, context.repository
        ),
        **{"better": better_direction(unit), **more},
    )


def sample_fields(samples: Sequence[float], at: str, factor: float = 1.0) -> dict[str, Any]:
    """Return the fields of a point with samples, each multiplied by ``factor``: their median with
    its interval. If there are more than a point stores, it stores every n-th."""
    if not samples:
        raise UserError(f"{at}: no samples")
    step = -(-len(samples) // MOST_SAMPLES)
    stored = tuple(fields.as_numbers([sample * factor for sample in samples[::step]], at))
    interval = rank_interval(stored)
    return {
        "value": interval.median,
        "low": interval.low,
        "high": interval.high,
        "n": len(samples),
        "samples": stored,
    }
