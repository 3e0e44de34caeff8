"""A budget's burn-down: its value over the last weeks against the limit, as coordinates of a small
picture, whose colours are those of the style sheet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time

from codegen_app.tracking.queries.budget_values import BudgetRow
from codegen_app.web.ticks import round_ticks
from scheduler.track.units import format_digits, format_value, scale_of

WIDTH, HEIGHT = 640, 180
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 12, 10, 24


@dataclass(frozen=True)
class _Frame:
    first: datetime
    last: datetime
    least: float
    most: float

    def x(self, moment: datetime) -> float:
        span = self.last - self.first
        share = (moment - self.first) / span if span else 1.0
        return round(_LEFT + share * (WIDTH - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        share = (value - self.least) / (self.most - self.least)
        return round(HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM), 1)


def burn_down(row: BudgetRow) -> Mapping[str, object]:
    """Return the values of the template; an empty mapping for a budget without a value."""
    if not row.history:
        return {}
    first, last = row.history[0].at, row.history[-1].at
    due = datetime.combine(row.due, time(), UTC) if row.due else None
    values = [row.limit, *(point.value for point in row.history)]
    room = (max(values) - min(values)) * 0.1 or row.limit * 0.1
    frame = _Frame(first, max(last, due) if due else last, min(values) - room, max(values) + room)
    scale = scale_of(row.unit, row.limit)
    ticks = round_ticks(frame.least * scale.factor, frame.most * scale.factor)
    moments = [(frame.first, "start"), (frame.last, "end")]
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "left": _LEFT,
        "right": WIDTH - _RIGHT,
        "top": _TOP,
        "bottom": HEIGHT - _BOTTOM,
        "unit": scale.unit,
        "line": " ".join(f"{frame.x(point.at)},{frame.y(point.value)}" for point in row.history),
        "points": [
            {
                "x": frame.x(point.at),
                "y": frame.y(point.value),
                "title": f"{point.at:%Y-%m-%d}: {format_value(point.value, row.unit)},"
                f" {point.n} series",
            }
            for point in row.history
        ],
        "limit_y": frame.y(row.limit),
        "due_x": frame.x(due) if due and due >= frame.first else None,
        "ticks": [
            {"y": frame.y(value / scale.factor), "text": format_digits(value)} for value in ticks
        ],
        "moments": [
            {"x": frame.x(moment), "anchor": anchor, "text": f"{moment:%Y-%m-%d}"}
            for moment, anchor in moments
        ],
    }
