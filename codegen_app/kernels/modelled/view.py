"""A report beside its listing: the displayed launch, by line.

``modelled_view`` needs no database: pages of external kernels call it with their own listing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from codegen_app.kernels.modelled.timeline import Timeline, timeline_window
from codegen_app.kernels.queries.listing import ListingView
from codegen_app.web.row import build_row
from scheduler.cycles.report import (
    Band,
    LaunchReport,
    Pipe,
    Report,
    Sharing,
    StallReason,
)

HEAT_LEVELS = 5
MAX_HOT = 12
LAUNCH_LIMIT = "launch"  # from one launch to the next: not part of the launch's own time
_LEAST_SHARE = 0.0005  # the smallest share that one decimal digit can show


@dataclass(frozen=True)
class LaunchRow:
    """One launch of a report; ``share`` of the total time."""

    number: int
    function: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    time_us: Band
    share: float
    sentence: str


@dataclass(frozen=True)
class ShareRow:
    """A busy pipe or a stall reason, with its share (0 to 1)."""

    name: str
    share: float


@dataclass(frozen=True)
class LimitRow:
    """A limit; ``of_time`` is its share of the launch's modelled time, ``is_largest`` marks the
    lower bound of the launch's time."""

    name: str
    time_us: Band
    of_time: float
    is_largest: bool
    detail: str


@dataclass(frozen=True)
class LoopRow:
    """A loop by its first and last line of the listing (0 if not in the listing)."""

    first_line: int
    last_line: int
    iterations: float
    cycles: float
    matrix_busy: float


@dataclass(frozen=True)
class InstructionRow:
    """The figures of one instruction: cycles of one wave in the whole launch, the others per
    execution. ``share`` is its part of all cycles that a wave stalls, ``line`` its line of the
    listing (0 if not in the listing), ``source`` its line of the source, 0 for none; ``callers``
    are the lines that it was inlined through, ``header`` its header's name and line."""

    index: int
    line: int
    source: int
    text: str
    executed: float
    lanes: float
    issue: float
    stall: float
    share: float
    reasons: Mapping[str, float]
    conflict: float | None
    requests: float | None
    bytes_used: float | None
    bytes_moved: float | None
    callers: tuple[int, ...] = ()
    header: str = ""

    @property
    def reason(self) -> str:
        """The main stall reason; "" if it does not stall."""
        return display_name(max(self.reasons, key=lambda name: self.reasons[name], default=""))


@dataclass(frozen=True)
class LineRow:
    """A line of the source: the cycles that a wave stalls at its instructions, their share of the
    total, and its heat level (1 to ``HEAT_LEVELS``, 0 without stalls). ``inclusive`` is the share
    with the lines that were inlined here."""

    stall: float
    share: float
    heat: int
    inclusive: float


@dataclass(frozen=True)
class ModelledView:
    """A report, with all details of the displayed launch. ``unknown`` counts by mnemonic."""

    target: str
    board: str
    sizes: Mapping[str, int]
    time_us: Band
    sentence: str
    sampled: str
    unknown: Mapping[str, int]
    launches: tuple[LaunchRow, ...]
    shown: LaunchRow
    waves: int
    resident: int
    limiter: str
    rounds: float
    tail: float
    cycles: Band
    pipes: tuple[ShareRow, ...]
    waits: tuple[ShareRow, ...]
    limits: tuple[LimitRow, ...]
    sharing: Sharing | None
    loops: tuple[LoopRow, ...]
    notes: tuple[str, ...]
    instructions: tuple[InstructionRow, ...]
    lines: Mapping[int, LineRow]
    timeline: Timeline | None

    @property
    def by_line(self) -> Mapping[int, InstructionRow]:
        """The figures by line of the listing."""
        return {row.line: row for row in self.instructions if row.line}

    @property
    def hottest(self) -> tuple[InstructionRow, ...]:
        """The instructions at which waves stall most."""
        rows = sorted(self.instructions, key=lambda row: -row.stall)
        return tuple(row for row in rows[:MAX_HOT] if row.stall > 0)

    @property
    def where(self) -> str:
        """Board and sizes for titles: every figure applies to these."""
        sizes = " ".join(f"{name}={value}" for name, value in self.sizes.items())
        return f"{self.board} at {sizes}" if sizes else self.board

    def share_of(self, lines: Iterable[tuple[int, int]]) -> float:
        """Return the share of all stalls at these lines of the source, (first, last) each."""
        numbers = {number for first, last in lines for number in range(first, last + 1)}
        return sum(row.share for number, row in self.lines.items() if number in numbers)


def modelled_view(
    report: Report, listing: ListingView | None, launch: int = 0, at: int | None = None
) -> ModelledView:
    """Return the view of a report: the launch of that number (from 1), or the longest if there is
    no such launch; its timeline from cycle ``at``."""
    total_us = sum(row.time_us.mid for row in report.launches)
    rows = tuple(
        build_row(
            LaunchRow, row, number=number, share=row.time_us.mid / total_us if total_us else 0.0
        )
        for number, row in enumerate(report.launches, 1)
    )
    longest = max(rows, key=lambda row: row.time_us.mid)
    launch_row = rows[launch - 1] if 0 < launch <= len(rows) else longest
    figures = report.launches[launch_row.number - 1]
    line_of = _listing_lines(listing, figures)
    instructions = _instructions(figures, listing, line_of)
    bounds_us = [row.time_us.mid for row in figures.limits if row.name != LAUNCH_LIMIT]
    limits = (
        build_row(
            LimitRow,
            row,
            of_time=row.time_us.mid / figures.time_us.mid if figures.time_us.mid else 0.0,
            is_largest=row.name != LAUNCH_LIMIT and row.time_us.mid == max(bounds_us),
        )
        for row in sorted(figures.limits, key=lambda row: -row.time_us.mid)
    )
    loops = (
        build_row(
            LoopRow,
            loop,
            first_line=line_of.get(loop.first, 0),
            last_line=line_of.get(loop.last, 0),
        )
        for loop in figures.loops
    )
    return ModelledView(
        target=report.target,
        board=report.board,
        sizes=report.sizes,
        time_us=report.time_us,
        sentence=report.sentence,
        sampled=report.sampled,
        unknown=report.unknown,
        launches=rows,
        shown=launch_row,
        waves=figures.waves,
        resident=figures.resident,
        limiter=figures.limiter,
        rounds=figures.rounds,
        tail=figures.tail,
        cycles=figures.cycles,
        pipes=share_rows(figures.pipes),
        waits=share_rows(figures.waits),
        limits=tuple(limits),
        sharing=figures.sharing,
        loops=tuple(loops),
        notes=figures.notes,
        instructions=instructions,
        lines=_source_lines(instructions),
        timeline=timeline_window(figures, {row.index: row for row in instructions}, at),
    )


_DISPLAY_NAMES: Mapping[str, str] = {Pipe.LDS: "LDS", StallReason.PIPE: "pipe contention"}


def display_name(name: str) -> str:
    """Return the displayed name of a pipe or a stall reason."""
    return _DISPLAY_NAMES.get(name, str(name))


def share_rows(shares: Mapping[Pipe, float] | Mapping[StallReason, float]) -> tuple[ShareRow, ...]:
    """Return the shares, the largest first; negligible ones are left out."""
    rows = sorted(shares.items(), key=lambda pair: -pair[1])
    return tuple(
        ShareRow(display_name(name), share) for name, share in rows if share >= _LEAST_SHARE
    )


def _listing_lines(listing: ListingView | None, launch: LaunchReport) -> dict[int, int]:
    """Return the line of each instruction of the function, by index; empty if the listing belongs
    to other code."""
    rows = listing.functions if listing else ()
    row = next((row for row in rows if row.name == launch.function), None)
    if listing is None or row is None:
        return {}
    numbers = [
        number
        for number in range(row.first_line, row.last_line + 1)
        if listing.lines[number - 1].kind == "instruction"
    ]
    matches = all(figures.index < len(numbers) for figures in launch.instructions)
    return dict(enumerate(numbers)) if matches and len(numbers) == row.instructions else {}


def _instructions(
    launch: LaunchReport, listing: ListingView | None, line_of: Mapping[int, int]
) -> tuple[InstructionRow, ...]:
    text = listing.text.split("\n") if listing else []
    total_stall = sum(row.stall for row in launch.instructions)
    rows = []
    for row in launch.instructions:
        line = line_of.get(row.index, 0)
        place = listing.lines[line - 1] if listing and line else None
        rows.append(
            build_row(
                InstructionRow,
                row,
                line=line,
                source=place.source if place else 0,
                callers=place.callers if place else (),
                header=place.header_name if place else "",
                text=" ".join(text[line - 1].split(";")[0].split()) if listing and line else "",
                share=row.stall / total_stall if total_stall else 0.0,
                reasons={reason.value: cycles for reason, cycles in row.reasons.items()},
            )
        )
    return tuple(rows)


def _source_lines(instructions: Iterable[InstructionRow]) -> dict[int, LineRow]:
    """Return the lines of the source, their heat relative to the hottest line's share."""
    stalls: dict[int, float] = defaultdict(float)
    shares: dict[int, float] = defaultdict(float)
    inclusive: dict[int, float] = defaultdict(float)
    for row in instructions:
        if row.source and row.stall > 0:
            stalls[row.source] += row.stall
            shares[row.source] += row.share
            for number in {row.source, *row.callers}:
                inclusive[number] += row.share
    hottest = max(shares.values(), default=0.0)
    return {
        number: LineRow(
            stall=stalls[number],
            share=shares[number],
            heat=min(HEAT_LEVELS, 1 + int(HEAT_LEVELS * shares[number] / hottest))
            if shares[number] >= _LEAST_SHARE
            else 0,
            inclusive=share,
        )
        for number, share in sorted(inclusive.items())
        if share >= _LEAST_SHARE
    }
