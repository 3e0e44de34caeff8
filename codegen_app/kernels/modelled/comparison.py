"""Modelled results of several builds side by side: at the same sizes, each on its board."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from codegen_app.kernels.modelled.rows import ModelledRow, load_report, modelled_rows_of_builds
from codegen_app.kernels.modelled.view import LAUNCH_LIMIT, display_name
from codegen_app.web.row import build_row
from scheduler.cycles.report import (
    Band,
    InstructionFigures,
    LaunchReport,
    Pipe,
    Report,
    StallReason,
)


@dataclass(frozen=True)
class SideView:
    """A build's report; ``launches`` is their number, and the longest is compared."""

    build: int
    board: str
    target: str
    sizes: Mapping[str, int]
    time_us: Band
    sentence: str
    unknown: Mapping[str, int]
    launches: int
    url: str


@dataclass(frozen=True)
class FigureRow:
    """One figure of every side, None if a side has none; ``deltas`` are the differences from the
    first. ``unit`` is µs, %, cycles or "" for others."""

    name: str
    unit: str
    values: tuple[float | None, ...]
    deltas: tuple[float | None, ...]

    @property
    def cells(self) -> tuple[tuple[float | None, float | None], ...]:
        """Values with their differences."""
        return tuple(zip(self.values, self.deltas, strict=True))


@dataclass(frozen=True)
class FigureGroup:
    """Figures of one kind: time, pipes, waits, limits, memory."""

    title: str
    rows: tuple[FigureRow, ...]


@dataclass(frozen=True)
class ModelledComparison:
    """Sides in the order of the builds, None for a build not modelled at these sizes."""

    sides: tuple[SideView | None, ...]
    groups: tuple[FigureGroup, ...]

    @property
    def columns(self) -> int:
        """The number of table columns: a name, a figure per side, and all differences but the
        first's."""
        return 2 * len(self.sides)


def compare_modelled(builds: Sequence[int]) -> ModelledComparison | None:
    """Compare builds by number (at most 2 queries per side); None if none was modelled.

    The sizes are those at which most builds were modelled, the boards those that most share.
    """
    rows = _comparable_rows(modelled_rows_of_builds(builds))
    reports = [load_report(rows[build].id) if build in rows else None for build in builds]
    if not any(reports):
        return None
    sides = (
        build_row(
            SideView,
            rows[build],
            time_us=report.time_us,
            sentence=report.sentence,
            unknown=report.unknown,
            launches=len(report.launches),
        )
        if report
        else None
        for build, report in zip(builds, reports, strict=True)
    )
    return ModelledComparison(tuple(sides), tuple(_groups(reports)))


def _comparable_rows(rows: Sequence[ModelledRow]) -> dict[int, ModelledRow]:
    """Return a row of each build: at the most common sizes, on the most common board."""
    builds_by_sizes: dict[str, set[int]] = defaultdict(set)
    builds_by_board: dict[tuple[str, str], set[int]] = defaultdict(set)
    for row in rows:
        builds_by_sizes[_sizes(row)].add(row.build)
        builds_by_board[row.board, _sizes(row)].add(row.build)

    def rank(row: ModelledRow) -> tuple[int, int]:
        sizes = _sizes(row)
        return -len(builds_by_sizes[sizes]), -len(builds_by_board[row.board, sizes])

    ranked = sorted(rows, key=rank)
    row_of_build: dict[int, ModelledRow] = {}
    for row in ranked:
        if _sizes(row) == _sizes(ranked[0]):
            row_of_build.setdefault(row.build, row)
    return row_of_build


def _sizes(row: ModelledRow) -> str:
    return json.dumps(row.sizes, sort_keys=True)


def _groups(reports: Sequence[Report | None]) -> Iterator[FigureGroup]:
    longest = [
        max(report.launches, key=lambda launch: launch.time_us.mid) if report else None
        for report in reports
    ]
    bands = [report.time_us if report else None for report in reports]
    yield FigureGroup(
        "Time",
        (
            _row("all launches", "µs", [band.mid if band else None for band in bands]),
            _row("low end of the band", "µs", [band.low if band else None for band in bands]),
            _row("high end of the band", "µs", [band.high if band else None for band in bands]),
            _launch_row(
                "cycles of the longest launch", "cycles", longest, attrgetter("cycles.mid")
            ),
            _launch_row("blocks per compute unit", "", longest, lambda row: float(row.resident)),
            _launch_row("rounds of blocks", "", longest, attrgetter("rounds")),
            _launch_row("idle in the last round", "%", longest, lambda row: 100 * row.tail),
        ),
    )
    pipes = [_percent(launch.pipes) if launch else None for launch in longest]
    waits = [_percent(launch.waits) if launch else None for launch in longest]
    bounds = [
        {row.name: row.time_us.mid for row in launch.limits if row.name != LAUNCH_LIMIT}
        if launch
        else None
        for launch in longest
    ]
    yield _named_group("Pipes busy", "%", pipes)
    yield _named_group("Stall reasons", "%", waits)
    yield _named_group("Lower bounds", "µs", bounds)
    memory = (
        _launch_row("LDS bank conflict factor", "", longest, _conflicts),
        _launch_row("bytes used of bytes moved", "%", longest, _bytes_used_percent),
        _launch_row("matrix pipes busy in the loop", "%", longest, _matrix_busy),
    )
    rows_with_values = (row for row in memory if any(value is not None for value in row.values))
    yield FigureGroup("Instructions", tuple(rows_with_values))


def _percent(shares: Mapping[Pipe, float] | Mapping[StallReason, float]) -> dict[str, float]:
    return {display_name(name): 100 * share for name, share in shares.items()}


def _conflicts(launch: LaunchReport) -> float | None:
    """Return the cycles of all LDS instructions over those without conflicts, each weighted by its
    executions."""
    rows = [row for row in launch.instructions if row.conflict is not None and row.executed]
    return _ratio(rows, lambda row: row.conflict or 1.0, lambda _: 1.0)


def _bytes_used_percent(launch: LaunchReport) -> float | None:
    rows = [row for row in launch.instructions if row.bytes_moved and row.executed]
    share = _ratio(rows, lambda row: row.bytes_used or 0.0, lambda row: row.bytes_moved or 0.0)
    return None if share is None else 100 * share


def _ratio(
    rows: Sequence[InstructionFigures],
    over: Callable[[InstructionFigures], float],
    under: Callable[[InstructionFigures], float],
) -> float | None:
    total = sum(under(row) * row.executed for row in rows)
    return sum(over(row) * row.executed for row in rows) / total if total else None


def _matrix_busy(launch: LaunchReport) -> float | None:
    """Return the share of the most expensive loop."""
    loop = max(launch.loops, key=lambda loop: loop.iterations * loop.cycles, default=None)
    return None if loop is None else 100 * loop.matrix_busy


def _launch_row(
    name: str,
    unit: str,
    launches: Sequence[LaunchReport | None],
    figure: Callable[[LaunchReport], float | None],
) -> FigureRow:
    return _row(name, unit, [figure(launch) if launch else None for launch in launches])


def _named_group(
    heading: str, unit: str, sides: Sequence[Mapping[str, float] | None]
) -> FigureGroup:
    """Return a row for each name that any side has, the largest first; a modelled side without it
    counts as 0."""
    names = {name for side in sides if side for name in side}
    largest = {name: max(side.get(name, 0.0) for side in sides if side) for name in names}
    rows = (
        _row(name, unit, [None if side is None else side.get(name, 0.0) for side in sides])
        for name in sorted(names, key=lambda name: (-largest[name], name))
        if largest[name] > 0
    )
    return FigureGroup(heading, tuple(rows))


def _row(name: str, unit: str, values: Sequence[float | None]) -> FigureRow:
    first = values[0]
    deltas = (None if value is None or first is None else value - first for value in values)
    return FigureRow(name, unit, tuple(values), tuple(deltas))
