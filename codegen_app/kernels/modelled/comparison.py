"""Modelled results of several builds side by side: at the same sizes, each on its board."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from codegen_app.kernels.modelled.rows import ModelledRow, load_report, modelled_rows_of_builds
from codegen_app.kernels.modelled.view import LAUNCH_LIMIT, display_name
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
    rows = _comparable_rows(modelled_rows_of_builds(builds), builds)
    found = [(rows.get(build), _report(rows.get(build))) for build in builds]
    reports = [report for _, report in found]
    if not any(reports):
        return None
    return ModelledComparison(
        sides=tuple(_side(row, report) if row and report else None for row, report in found),
        groups=tuple(_groups(reports)),
    )


def _report(row: ModelledRow | None) -> Report | None:
    return load_report(row.id) if row else None


def _comparable_rows(rows: Iterable[ModelledRow], builds: Sequence[int]) -> dict[int, ModelledRow]:
    """Return a row of each build: at the most common sizes, on the most common board."""
    all_rows = list(rows)
    here = set(builds)

    def shared(key: Callable[[ModelledRow], str]) -> Callable[[ModelledRow], int]:
        counts: dict[str, set[int]] = {}
        for row in all_rows:
            counts.setdefault(key(row), set()).add(row.build)
        return lambda row: len(counts[key(row)])

    of_sizes, of_board = shared(_sizes), shared(lambda row: f"{row.board} {_sizes(row)}")
    ranked = sorted(all_rows, key=lambda row: (-of_sizes(row), -of_board(row)))
    sizes = _sizes(ranked[0]) if ranked else ""
    found: dict[int, ModelledRow] = {}
    for row in ranked:
        if row.build in here and _sizes(row) == sizes:
            found.setdefault(row.build, row)
    return found


def _sizes(row: ModelledRow) -> str:
    return json.dumps(row.sizes, sort_keys=True)


def _side(row: ModelledRow, report: Report) -> SideView:
    return SideView(
        build=row.build,
        board=row.board,
        target=row.target,
        sizes=row.sizes,
        time_us=report.time_us,
        sentence=report.sentence,
        unknown=report.unknown,
        launches=len(report.launches),
        url=row.url,
    )


def _groups(reports: Sequence[Report | None]) -> Iterator[FigureGroup]:
    longest = [
        max(report.launches, key=lambda launch: launch.time_us.mid) if report else None
        for report in reports
    ]
    whole = [report.time_us if report else None for report in reports]
    yield FigureGroup(
        "Time",
        (
            _row("all launches", "µs", [band.mid if band else None for band in whole]),
            _row("low end of the band", "µs", [band.low if band else None for band in whole]),
            _row("high end of the band", "µs", [band.high if band else None for band in whole]),
            _row("cycles of the longest launch", "cycles", _per_launch(longest, _cycles)),
            _row(
                "blocks per compute unit", "", _per_launch(longest, lambda one: float(one.resident))
            ),
            _row("rounds of blocks", "", _per_launch(longest, lambda one: one.rounds)),
            _row("idle in the last round", "%", _per_launch(longest, lambda one: 100 * one.tail)),
        ),
    )
    yield _named_group("Pipes busy", "%", [_percent(one.pipes) if one else None for one in longest])
    yield _named_group(
        "Stall reasons", "%", [_percent(one.waits) if one else None for one in longest]
    )
    yield _named_group("Lower bounds", "µs", [_limits(one) if one else None for one in longest])
    memory = (
        _row("LDS bank conflict factor", "", _per_launch(longest, _conflicts)),
        _row("bytes used of bytes moved", "%", _per_launch(longest, _bytes_used_percent)),
        _row("matrix pipes busy in the loop", "%", _per_launch(longest, _matrix_busy)),
    )
    yield FigureGroup("Instructions", tuple(row for row in memory if any(_known(row.values))))


def _cycles(of: LaunchReport) -> float:
    return of.cycles.mid


def _limits(of: LaunchReport) -> dict[str, float]:
    return {limit.name: limit.time_us.mid for limit in of.limits if limit.name != LAUNCH_LIMIT}


def _percent(of: Mapping[Pipe, float] | Mapping[StallReason, float]) -> dict[str, float]:
    return {display_name(name): 100 * share for name, share in of.items()}


def _conflicts(of: LaunchReport) -> float | None:
    """Return the cycles of all LDS instructions over those without conflicts, each weighted by its
    executions."""
    rows = [row for row in of.instructions if row.conflict is not None and row.executed]
    return _ratio(rows, lambda row: row.conflict or 1.0, lambda _: 1.0)


def _bytes_used_percent(of: LaunchReport) -> float | None:
    rows = [row for row in of.instructions if row.bytes_moved and row.executed]
    share = _ratio(rows, lambda row: row.bytes_used or 0.0, lambda row: row.bytes_moved or 0.0)
    return None if share is None else 100 * share


def _ratio(
    rows: Sequence[InstructionFigures],
    over: Callable[[InstructionFigures], float],
    under: Callable[[InstructionFigures], float],
) -> float | None:
    whole = sum(under(row) * row.executed for row in rows)
    return sum(over(row) * row.executed for row in rows) / whole if whole else None


def _matrix_busy(of: LaunchReport) -> float | None:
    """Return the share of the most expensive loop."""
    loop = max(of.loops, key=lambda one: one.iterations * one.cycles, default=None)
    return None if loop is None else 100 * loop.matrix_busy


def _per_launch(
    launches: Sequence[LaunchReport | None], of: Callable[[LaunchReport], float | None]
) -> list[float | None]:
    return [of(one) if one else None for one in launches]


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


def _known(values: Iterable[float | None]) -> Iterator[bool]:
    return (value is not None for value in values)
