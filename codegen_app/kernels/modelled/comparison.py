"""Modelled results of several builds side by side: at the same sizes, each on its board."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from codegen_app.kernels.modelled.rows import ModelledRow, load_report, modelled_rows_of_builds
from codegen_app.kernels.modelled.view import LAUNCH_LIMIT, display_name
from codegen_app.kernels.queries.compared_figures import FigureGroup, FigureRow
from codegen_app.web.row import build_row
from scheduler.cycles.report import Band, Report

STALLS = "Stall reasons"  # the title of a group


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
class ModelledComparison:
    """Sides in the order of the builds, None for a build not modelled at these sizes."""

    sides: tuple[SideView | None, ...]
    groups: tuple[FigureGroup, ...]

    def on_one_board(self, side: int) -> tuple[SideView, SideView] | None:
        """Return the first side and another one; None unless both were modelled on one board."""
        first, second = self.sides[0], self.sides[side]
        if first is None or second is None or first.board != second.board:
            return None
        return first, second


def compare_modelled(builds: Sequence[int]) -> ModelledComparison | None:
    """Compare builds by number (at most 2 queries per side); None if none was modelled.

    The sizes are those at which most builds were modelled, the boards those that most share.
    """
    rows = _comparable_rows(modelled_rows_of_builds(builds))
    reports = [load_report(rows[build].id) if build in rows else None for build in builds]
    if not any(reports):
        return None
    views = (
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
    sides = [_figures(report) if report else None for report in reports]
    groups = []
    for title in next(side for side in sides if side):
        figures = [side[title] if side else None for side in sides]
        keys: Iterable[tuple[str, str]] = dict.fromkeys(
            key for side in figures for key in side or ()
        )
        if title in _RANKED_GROUPS:
            largest = {key: max(side.get(key) or 0.0 for side in figures if side) for key in keys}
            keys = sorted(filter(largest.get, keys), key=lambda key: (-largest[key], key))
        figure_rows = []
        for name, unit in keys:
            values = [None if side is None else side.get((name, unit), 0.0) for side in figures]
            if any(value is not None for value in values):
                figure_rows.append(FigureRow(name, unit, tuple(values)))
        groups.append(FigureGroup(title, tuple(figure_rows), _NOTE))
    return ModelledComparison(tuple(views), tuple(groups))


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


_NOTE = "modelled; shares are of the longest launch"
# The largest figures first, without those that are 0 on all sides.
_RANKED_GROUPS = ("Pipes busy", STALLS, "Lower bounds")


def _figures(report: Report) -> dict[str, dict[tuple[str, str], float | None]]:
    """Return the figures of a report and its longest launch by group, each by name and unit."""
    launch = max(report.launches, key=lambda launch: launch.time_us.mid)
    executed = [row for row in launch.instructions if row.executed]
    lds = [row for row in executed if row.conflict is not None]
    # Cycles over those without conflicts.
    conflicts = _ratio(
        sum((row.conflict or 1.0) * row.executed for row in lds), sum(row.executed for row in lds)
    )
    moving = [row for row in executed if row.bytes_moved]
    bytes_used = _ratio(
        sum((row.bytes_used or 0.0) * row.executed for row in moving),
        sum((row.bytes_moved or 0.0) * row.executed for row in moving),
    )
    # The most expensive loop.
    loop = max(launch.loops, key=lambda loop: loop.iterations * loop.cycles, default=None)
    return {
        "Time": {
            ("all launches", "µs"): report.time_us.mid,
            ("low end of the band", "µs"): report.time_us.low,
            ("high end of the band", "µs"): report.time_us.high,
            ("cycles of the longest launch", "cycles"): launch.cycles.mid,
            ("blocks per compute unit", ""): float(launch.resident),
            ("rounds of blocks", ""): launch.rounds,
            ("idle in the last round", "%"): 100 * launch.tail,
        },
        "Pipes busy": {
            (display_name(name), "%"): 100 * share for name, share in launch.pipes.items()
        },
        STALLS: {(display_name(name), "%"): 100 * share for name, share in launch.waits.items()},
        "Lower bounds": {
            (row.name, "µs"): row.time_us.mid for row in launch.limits if row.name != LAUNCH_LIMIT
        },
        "Instructions": {
            ("LDS bank conflict factor", ""): conflicts,
            ("bytes used of bytes moved", "%"): None if bytes_used is None else 100 * bytes_used,
            ("matrix pipes busy in the loop", "%"): 100 * loop.matrix_busy if loop else None,
        },
    }


def _ratio(total: float, base: float) -> float | None:
    return total / base if base else None
