"""A report beside its listing: the displayed launch, by line.

``modelled_view`` needs no database: pages of external kernels call it with their own listing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from codegen_app.kernels.modelled.timeline import Timeline, timeline_window
from codegen_app.kernels.queries.listing import ListingView
from scheduler.cycles.report import (
    Band,
    InstructionFigures,
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
    listing (0 if not in the listing), ``source`` its line of the source, 0 for none."""

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

    @property
    def reason(self) -> str:
        """The main stall reason; "" if it does not stall."""
        return display_name(max(self.reasons, key=lambda name: self.reasons[name], default=""))


@dataclass(frozen=True)
class LineRow:
    """A line of the source: the cycles that a wave stalls at its instructions, their share of the
    total, and its heat level (1 to ``HEAT_LEVELS``)."""

    stall: float
    share: float
    heat: int


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
    rows = _launch_rows(report)
    longest = max(rows, key=lambda row: row.time_us.mid)
    shown = rows[launch - 1] if 0 < launch <= len(rows) else longest
    of = report.launches[shown.number - 1]
    places = _listing_lines(listing, of)
    instructions = _instructions(of, listing, places)
    return ModelledView(
        target=report.target,
        board=report.board,
        sizes=report.sizes,
        time_us=report.time_us,
        sentence=report.sentence,
        sampled=report.sampled,
        unknown=report.unknown,
        launches=rows,
        shown=shown,
        waves=of.waves,
        resident=of.resident,
        limiter=of.limiter,
        rounds=of.rounds,
        tail=of.tail,
        cycles=of.cycles,
        pipes=share_rows(of.pipes),
        waits=share_rows(of.waits),
        limits=_limits(of),
        sharing=of.sharing,
        loops=tuple(
            LoopRow(
                first_line=places.get(loop.first, 0),
                last_line=places.get(loop.last, 0),
                iterations=loop.iterations,
                cycles=loop.cycles,
                matrix_busy=loop.matrix_busy,
            )
            for loop in of.loops
        ),
        notes=of.notes,
        instructions=instructions,
        lines=_lines(instructions),
        timeline=timeline_window(of, {row.index: row for row in instructions}, at),
    )


_DISPLAY_NAMES: Mapping[str, str] = {Pipe.LDS: "LDS", StallReason.PIPE: "pipe contention"}


def display_name(of: str) -> str:
    """Return the displayed name of a pipe or a stall reason."""
    return _DISPLAY_NAMES.get(of, str(of))


def share_rows(of: Mapping[Pipe, float] | Mapping[StallReason, float]) -> tuple[ShareRow, ...]:
    """Return the shares, the largest first; negligible ones are left out."""
    rows = sorted(of.items(), key=lambda pair: -pair[1])
    return tuple(
        ShareRow(display_name(name), share) for name, share in rows if share >= _LEAST_SHARE
    )


def _launch_rows(report: Report) -> tuple[LaunchRow, ...]:
    whole = sum(launch.time_us.mid for launch in report.launches)
    return tuple(
        LaunchRow(
            number=number,
            function=launch.function,
            grid=launch.grid,
            block=launch.block,
            time_us=launch.time_us,
            share=launch.time_us.mid / whole if whole else 0.0,
            sentence=launch.sentence,
        )
        for number, launch in enumerate(report.launches, 1)
    )


def _limits(of: LaunchReport) -> tuple[LimitRow, ...]:
    within = [limit.time_us.mid for limit in of.limits if limit.name != LAUNCH_LIMIT]
    largest = max(within, default=0.0)
    rows = sorted(of.limits, key=lambda limit: -limit.time_us.mid)
    return tuple(
        LimitRow(
            name=limit.name,
            time_us=limit.time_us,
            of_time=limit.time_us.mid / of.time_us.mid if of.time_us.mid else 0.0,
            is_largest=limit.name != LAUNCH_LIMIT and limit.time_us.mid == largest,
            detail=limit.detail,
        )
        for limit in rows
    )


def _listing_lines(listing: ListingView | None, of: LaunchReport) -> dict[int, int]:
    """Return the line of each instruction of the function, by index; empty if the listing belongs
    to other code."""
    rows = listing.functions if listing else ()
    row = next((row for row in rows if row.name == of.function), None)
    if listing is None or row is None:
        return {}
    numbers = [
        number
        for number in range(row.first_line, row.last_line + 1)
        if listing.lines[number - 1].kind == "instruction"
    ]
    is_ours = all(one.index < len(numbers) for one in of.instructions)
    return dict(enumerate(numbers)) if is_ours and len(numbers) == row.instructions else {}


def _instructions(
    of: LaunchReport, listing: ListingView | None, places: Mapping[int, int]
) -> tuple[InstructionRow, ...]:
    text = listing.text.split("\n") if listing else []
    whole = sum(row.stall for row in of.instructions)
    return tuple(_instruction(row, listing, text, places, whole) for row in of.instructions)


def _instruction(
    row: InstructionFigures,
    listing: ListingView | None,
    text: Sequence[str],
    places: Mapping[int, int],
    whole: float,
) -> InstructionRow:
    line = places.get(row.index, 0)
    known = listing is not None and line > 0
    return InstructionRow(
        index=row.index,
        line=line,
        source=listing.lines[line - 1].source if known and listing else 0,
        text=" ".join(text[line - 1].split(";")[0].split()) if known else "",
        executed=row.executed,
        lanes=row.lanes,
        issue=row.issue,
        stall=row.stall,
        share=row.stall / whole if whole else 0.0,
        reasons={reason.value: cycles for reason, cycles in row.reasons.items()},
        conflict=row.conflict,
        requests=row.requests,
        bytes_used=row.bytes_used,
        bytes_moved=row.bytes_moved,
    )


def _lines(instructions: Iterable[InstructionRow]) -> dict[int, LineRow]:
    stalls: dict[int, float] = defaultdict(float)
    parts: dict[int, float] = defaultdict(float)
    for row in instructions:
        if row.source and row.stall > 0:
            stalls[row.source] += row.stall
            parts[row.source] += row.share
    most = max(parts.values(), default=0.0)
    return {
        number: LineRow(stalls[number], share, _heat(share, most))
        for number, share in sorted(parts.items())
        if share >= _LEAST_SHARE
    }


def _heat(share: float, most: float) -> int:
    """Return the heat level from the share relative to the hottest line's."""
    return min(HEAT_LEVELS, 1 + int(HEAT_LEVELS * share / most))
