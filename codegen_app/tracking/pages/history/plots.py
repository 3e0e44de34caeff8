"""Pictures that other pages embed: a history as an SVG plot, and a badge.

They have no script and no style sheet; colours are attributes, since an embedded picture does not
see our pages. External texts go through the template, which escapes them, and are one line of
printable characters (``scheduler.text.one_line``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.template.loader import render_to_string
from django.utils import timezone

from codegen_app.tracking.models import Change, Datum, Series
from codegen_app.tracking.queries.series_summary import (
    ChangeSummary,
    PointValue,
    SeriesHead,
    change_summary,
    point_value,
    series_head,
)
from codegen_app.web.ticks import round_ticks
from scheduler.text import one_line
from scheduler.track.effect import Effect, effect_of, format_change
from scheduler.track.units import Scale, format_ratio, scale_of

WIDTH, HEIGHT = 720, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 44, 30
DAYS = 30  # back from now, for a badge's changes
MAX_DAYS = 3650
_TITLE, _LABEL = 84, 44  # characters that fit


MAX_POINTS = 400  # more points than a plot can resolve


@dataclass(frozen=True)
class PlotData:
    """A series with its latest points, oldest first, and the changes among them that later points
    did not contradict."""

    head: SeriesHead
    points: tuple[PointValue, ...]
    steps: tuple[ChangeSummary, ...]


def plot_data(pk: int, most: int = MAX_POINTS) -> PlotData:
    """Return a series by number with its latest points (3 queries). Raises
    ``Series.DoesNotExist``."""
    series = Series.objects.get(pk=pk)
    rows = Datum.objects.trunk().filter(series=pk).select_related("revision").defer("samples")
    points = [point_value(row, series.unit) for row in rows.order_by("-at", "-id")[:most]]
    changes = Change.objects.filter(series=pk, withdrawn_at=None)
    changes = changes.select_related("revision", "previous", "alert").defer("explanation")
    if points:
        changes = changes.filter(at__gte=points[-1].at)
    return PlotData(
        head=series_head(series),
        points=tuple(reversed(points)),
        steps=tuple(change_summary(row, series.unit) for row in changes.order_by("at", "pk")),
    )


@dataclass(frozen=True)
class Theme:
    """Colours, as in ``tokens.css``."""

    background: str
    text: str
    faint: str
    line: str
    series: str
    worse: str
    better: str


THEMES = {
    "light": Theme("#ffffff", "#16191d", "#4c5560", "#d9dde2", "#0b62a4", "#a83206", "#00694a"),
    "dark": Theme("#14171a", "#e6e9ec", "#a7b1bc", "#323942", "#5fb0f0", "#ff8f6b", "#45cc9c"),
}


@dataclass(frozen=True)
class _Frame:
    """Maps times and values to coordinates in the picture."""

    first: datetime
    last: datetime
    least: float
    most: float

    def x(self, moment: datetime) -> float:
        span = self.last - self.first
        share = (moment - self.first) / span if span else 0.5
        return round(_LEFT + share * (WIDTH - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        share = (value - self.least) / (self.most - self.least)
        return round(HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM), 1)


def plot(series: PlotData, theme: str) -> str:
    """Return the latest points with their interval band, levels and changes, as SVG."""
    head, frame = series.head, _frame(series)
    scale = scale_of(head.unit, (frame.least + frame.most) / 2 if frame else 0.0)
    origin = "emulated" if head.emulated else "generated, not measured" if head.generated else ""
    count = f"{len(series.points)} of {head.points} points"
    excluded = f"not compared: {head.not_compared}" if head.not_compared else ""
    return render_to_string(
        "tracking/svg/plot.svg",
        {
            "width": WIDTH,
            "height": HEIGHT,
            "left": _LEFT,
            "right": WIDTH - _RIGHT,
            "bottom": HEIGHT - _BOTTOM,
            "theme": THEMES[theme],
            "title": one_line(head.name, _TITLE),
            "full": one_line(head.name),
            "unit": scale.unit,
            "remark": " · ".join(filter(None, (origin, count, excluded))),
            "is_enough": head.is_enough,
            "least_points": head.least_points,
            **(_drawing(series, frame, scale, THEMES[theme]) if frame else {}),
        },
    )


def _frame(series: PlotData) -> _Frame | None:
    points = series.points
    if not points:
        return None
    least = min(point.value if point.low is None else point.low for point in points)
    most = max(point.value if point.high is None else point.high for point in points)
    room = (most - least) * 0.08 or abs(most) * 0.05 or 1.0
    return _Frame(points[0].at, points[-1].at, least - room, most + room)


def _drawing(series: PlotData, frame: _Frame, scale: Scale, theme: Theme) -> dict[str, object]:
    """Return the axes' ticks, the line, the outline of the interval band (there and back), and the
    changes."""
    ticks = round_ticks(frame.least * scale.factor, frame.most * scale.factor)
    anchors = [("middle", frame.first + (frame.last - frame.first) / 2)]
    if frame.last > frame.first:
        anchors = [("start", frame.first), *anchors, ("end", frame.last)]
    form = "%Y-%m-%d" if frame.last - frame.first > timedelta(days=2) else "%Y-%m-%d %H:%M"
    known = [
        (frame.x(point.at), frame.y(point.low), frame.y(point.high))
        for point in series.points
        if point.low is not None and point.high is not None
    ]
    band = [f"{x},{high}" for x, _, high in known]
    band += [f"{x},{low}" for x, low, _ in reversed(known)]
    return {
        "ticks": [{"y": frame.y(value / scale.factor), "text": f"{value:.6g}"} for value in ticks],
        "moments": [
            {
                "x": frame.x(moment),
                "anchor": anchor,
                "text": moment.astimezone(UTC).strftime(form),
            }
            for anchor, moment in anchors
        ],
        "band": " ".join(band) if len(known) > 1 else "",
        "line": " ".join(f"{frame.x(point.at)},{frame.y(point.value)}" for point in series.points),
        "changes": [_mark(step, frame, theme) for step in series.steps],
    }


def _mark(step: ChangeSummary, frame: _Frame, theme: Theme) -> dict[str, object]:
    """Return a triangle above or below the first point of the new level."""
    x = frame.x(max(step.at, frame.first))
    before, y = (
        frame.y(min(max(level, frame.least), frame.most)) for level in (step.before, step.after)
    )
    up = step.ratio > 1
    tip = y - 8 if up else y + 8
    foot = tip - 8 if up else tip + 8
    colours = {Effect.WORSE: theme.worse, Effect.BETTER: theme.better}
    return {
        "x": x,
        "y": y,
        "before": before,
        "triangle": f"{x - 5},{foot} {x + 5},{foot} {x},{tip}",
        "text": format_ratio(step.ratio, 2),
        "label_y": foot - 4 if up else foot + 11,
        "colour": colours.get(effect_of(step), theme.faint),
        "title": _change_text(step),
    }


def _change_text(step: ChangeSummary) -> str:
    return one_line(
        f"{step.before_text} → {step.after_text}, {format_change(step)} at {step.revision}"
    )


_WIDE, _NARROW = 7.1, 3.9  # px of a character at 11 px
_NARROW_CHARACTERS = frozenset("iljtfrI.,:;!|'()[] ·")


def _text_width(text: str) -> int:
    """Return the width in pixels; characters of other scripts count twice."""
    return math.ceil(
        sum(
            2 * _WIDE if ord(char) > 0x2E80 else _NARROW if char in _NARROW_CHARACTERS else _WIDE
            for char in text
        )
    )


def badge(series: PlotData, theme: str, days: int = DAYS, now: datetime | None = None) -> str:
    """Return the latest figure, and how far it moved in the last days; the colour shows the
    direction. The title has what does not fit: device, interval, n, and each change with its
    own."""
    head = series.head
    latest = series.points[-1] if series.points else None
    label = one_line(f"{head.metric}: {head.problem}", _LABEL)
    since = (now or timezone.now()) - timedelta(days=days)
    recent = [step for step in series.steps if step.at >= since]
    text, state = _state(head, latest, recent, days)
    title = [head.name]
    if latest is not None:
        interval = latest.bounds or "interval unknown"
        title.append(f"{latest.text} ({interval}, n = {latest.n}) at {latest.revision}")
    title += [_change_text(step) for step in recent[-5:]] or [f"no change in {days} days"]
    widths = [_text_width(part) + 12 for part in (label, text)]
    colours = {"worse": "#a83206", "better": "#00694a", "same": "#0b5cad", "unknown": "#59636e"}
    return render_to_string(
        "tracking/svg/badge.svg",
        {
            "label": label,
            "text": text,
            "title": one_line("; ".join(title)),
            "left": widths[0],
            "right": widths[1],
            "width": sum(widths),
            "label_x": widths[0] / 2,
            "text_x": widths[0] + widths[1] / 2,
            "label_colour": "#39424c" if theme == "light" else "#262c33",
            "colour": colours[state],
        },
    )


def _state(
    head: SeriesHead, latest: PointValue | None, recent: Sequence[ChangeSummary], days: int
) -> tuple[str, str]:
    """Return the text of the badge, and the key of its colour."""
    if latest is None:
        return "no points", "unknown"
    value = latest.text + (
        " (generated)" if head.generated else " (emulated)" if head.emulated else ""
    )
    if not head.is_enough:
        return f"{value} · insufficient data", "unknown"
    if not recent:
        return f"{value} · steady for {days} d", "same"
    ratio = recent[-1].after / recent[0].before
    effects = [effect_of(step) for step in recent]
    if not any(effect.is_shown for effect in effects):
        return f"{value} · {format_ratio(ratio, 2)}, {effects[-1]}", "unknown"
    worse = ratio < 1 if head.better == "higher" else ratio > 1
    return f"{value} · {format_ratio(ratio, 2)} in {days} d", "worse" if worse else "better"
