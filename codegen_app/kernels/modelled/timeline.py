"""The timeline of a few waves: a window with as many spans as a page can hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from scheduler.cycles.report import LaunchReport, Pipe

MAX_SPANS = 700
MAX_LANES = 8
LANE_ROWS = (*(pipe.value for pipe in Pipe), "waiting")


class Instruction(Protocol):
    """The fields of an instruction shown at its spans."""

    @property
    def line(self) -> int:
        """Its line of the listing, 0 if not in the listing."""

    @property
    def text(self) -> str:
        """Its text."""


@dataclass(frozen=True)
class SpanRow:
    """A span of a wave, in cycles: ``row`` is the pipe that it keeps busy, or waiting for
    ``reason``. ``line`` is that of its instruction, 0 if not in the listing."""

    start: int
    end: int
    row: str
    reason: str
    line: int
    text: str


@dataclass(frozen=True)
class LaneRow:
    """One wave."""

    block: int
    wave: int
    simd: int
    spans: tuple[SpanRow, ...]


@dataclass(frozen=True)
class Timeline:
    """Cycles ``start`` to ``end`` out of ``first`` to ``last``. ``earlier`` and ``later`` are the
    starts of the adjacent windows, None if there is none; ``hidden`` is the number of waves not
    shown."""

    start: int
    end: int
    first: int
    last: int
    earlier: int | None
    later: int | None
    lanes: tuple[LaneRow, ...]
    hidden: int

    @property
    def rows(self) -> Mapping[str, str]:
        """The rows of each lane from its top, with their displayed names."""
        return {row: "LDS" if row == Pipe.LDS else row for row in LANE_ROWS}


def timeline_window(
    launch: LaunchReport, instructions: Mapping[int, Instruction], at: int | None = None
) -> Timeline | None:
    """Return the window that begins at cycle ``at``; None if no wave was recorded."""
    lanes = launch.timeline[:MAX_LANES]
    starts = sorted(span.start for lane in lanes for span in lane.spans)
    if not starts:
        return None
    first, last = starts[0], max(span.end for lane in lanes for span in lane.spans)
    start = first if at is None else min(max(at, first), starts[-1])
    later_starts = [cycle for cycle in starts if cycle >= start]
    end = later_starts[MAX_SPANS] if len(later_starts) > MAX_SPANS else last
    end = max(end, start + 1)
    before = [cycle for cycle in starts if cycle < start]
    return Timeline(
        start=start,
        end=end,
        first=first,
        last=last,
        earlier=before[max(0, len(before) - MAX_SPANS)] if before else None,
        later=end if end < last else None,
        lanes=tuple(
            LaneRow(
                block=lane.block,
                wave=lane.wave,
                simd=lane.simd,
                spans=tuple(
                    SpanRow(
                        start=max(span.start, start),
                        end=min(span.end, end),
                        row=span.pipe.value if span.pipe else "waiting",
                        reason=span.reason.value if span.reason else "",
                        line=instructions[span.index].line if span.index in instructions else 0,
                        text=instructions[span.index].text if span.index in instructions else "",
                    )
                    for span in lane.spans
                    if span.start < end and span.end > start
                ),
            )
            for lane in lanes
        ),
        hidden=len(launch.timeline) - len(lanes),
    )
