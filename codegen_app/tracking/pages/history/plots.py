"""Pictures that other pages embed: a history as an SVG plot, and a badge.

They have no script and no style sheet; colours are attributes, since an embedded picture does not
see our pages. External texts go through the template, which escapes them, and are one line of
printable characters (``scheduler.text.one_line``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.template.loader import render_to_string
from django.utils import timezone

from codegen_app.tracking.queries.plot_data import PlotChange, PlotData
from codegen_app.web.ticks import round_ticks
from scheduler.text import one_line
from scheduler.track.effect import Effect, effect_of, format_change
from scheduler.track.units import Scale, format_ratio, format_value, scale_of

WIDTH, HEIGHT = 720, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 44, 30
DAYS = 30  # back from now, for a badge's changes
MAX_DAYS = 3650
_TITLE, _LABEL = 84, 44  # characters that fit


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

    first: float
    last: float
    least: float
    most: float

    def x(self, ms: float) -> float:
        span = self.last - self.first
        share = (ms - self.first) / span if span else 0.5
        return round(_LEFT + share * (WIDTH - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        share = (value - self.least) / (self.most - self.least)
        return round(HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM), 1)


def plot(of: PlotData, theme: str) -> str:
    """Return the latest points with their interval band, levels and changes, as SVG."""
    frame = _frame(of)
    middle = (frame.least + frame.most) / 2 if frame else 0.0
    scale = scale_of(of.head.unit, middle)
    return render_to_string(
        "tracking/svg/plot.svg",
        {
            "width": WIDTH,
            "height": HEIGHT,
            "left": _LEFT,
            "right": WIDTH - _RIGHT,
            "bottom": HEIGHT - _BOTTOM,
            "theme": THEMES[theme],
            "title": one_line(of.head.name, _TITLE),
            "full": one_line(of.head.name),
            "unit": scale.unit,
            "remark": _remark(of),
            "is_enough": of.head.is_enough,
            "least_points": of.head.least_points,
            "ticks": list(_value_ticks(frame, scale)) if frame else [],
            "moments": list(_moments(frame)) if frame else [],
            "band": _band(of, frame) if frame else "",
            "line": _line(of, frame) if frame else "",
            "changes": [_mark(step, of, frame, THEMES[theme]) for step in of.steps]
            if frame
            else [],
        },
    )


def _remark(of: PlotData) -> str:
    """Return what the figures are if they are not measured on a device, and how many."""
    what = "generated, not measured" if of.head.generated else ""
    what = "emulated" if of.head.emulated else what
    shown = f"{len(of.points)} of {of.head.points} points"
    why = f"not compared: {of.head.not_compared}" if of.head.not_compared else ""
    return " · ".join(part for part in (what, shown, why) if part)


def _frame(of: PlotData) -> _Frame | None:
    if not of.points:
        return None
    lows = [one.value if one.low is None else one.low for one in of.points]
    highs = [one.value if one.high is None else one.high for one in of.points]
    least, most = min(lows), max(highs)
    room = (most - least) * 0.08 or abs(most) * 0.05 or 1.0
    return _Frame(of.points[0].ms, of.points[-1].ms, least - room, most + room)


def _line(of: PlotData, frame: _Frame) -> str:
    return " ".join(f"{frame.x(one.ms)},{frame.y(one.value)}" for one in of.points)


def _band(of: PlotData, frame: _Frame) -> str:
    """Return the band's outline, there and back, where intervals are known."""
    known = [(one.ms, one.low, one.high) for one in of.points if one.low is not None]
    there = [f"{frame.x(ms)},{frame.y(high)}" for ms, _, high in known if high is not None]
    back = [f"{frame.x(ms)},{frame.y(low)}" for ms, low, _ in reversed(known) if low is not None]
    return " ".join((*there, *back)) if len(known) > 1 else ""


def _value_ticks(frame: _Frame, scale: Scale) -> Iterator[dict[str, object]]:
    for value in round_ticks(frame.least * scale.factor, frame.most * scale.factor):
        yield {"y": frame.y(value / scale.factor), "text": f"{value:.6g}"}


def _moments(frame: _Frame) -> Iterator[dict[str, object]]:
    anchors = (("start", frame.first), ("middle", (frame.first + frame.last) / 2))
    is_a_day = frame.last - frame.first > 2 * 86_400_000
    form = "%Y-%m-%d" if is_a_day else "%Y-%m-%d %H:%M"
    for anchor, ms in (*anchors, ("end", frame.last)) if frame.last > frame.first else anchors[1:]:
        moment = datetime.fromtimestamp(ms / 1000, UTC)
        yield {"x": frame.x(ms), "anchor": anchor, "text": moment.strftime(form)}


def _mark(step: PlotChange, of: PlotData, frame: _Frame, theme: Theme) -> dict[str, object]:
    """Return a triangle above or below the first point of the new level."""
    x, y = (
        frame.x(max(step.ms, frame.first)),
        frame.y(min(max(step.after, frame.least), frame.most)),
    )
    up = step.ratio > 1
    tip = y - 8 if up else y + 8
    foot = tip - 8 if up else tip + 8
    first = frame.y(min(max(step.before, frame.least), frame.most))
    return {
        "x": x,
        "y": y,
        "before": first,
        "triangle": f"{x - 5},{foot} {x + 5},{foot} {x},{tip}",
        "text": format_ratio(step.ratio, 2),
        "label_y": foot - 4 if up else foot + 11,
        "colour": _colour(effect_of(step), theme),
        "title": _described(step, of),
    }


def _colour(effect: Effect, theme: Theme) -> str:
    return {Effect.WORSE: theme.worse, Effect.BETTER: theme.better}.get(effect, theme.faint)


def _described(step: PlotChange, of: PlotData) -> str:
    unit = of.head.unit
    return one_line(
        f"{format_value(step.before, unit)} → {format_value(step.after, unit)},"
        f" {format_change(step)} at {step.revision}"
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


def badge(of: PlotData, theme: str, days: int = DAYS, now: datetime | None = None) -> str:
    """Return the latest figure, and how far it moved in the last days; the colour shows the
    direction."""
    label = one_line(f"{of.head.metric}: {of.head.problem}", _LABEL)
    recent = _recent(of.steps, now or timezone.now(), days)
    text, state = _state(of, recent, days)
    widths = [_text_width(each) + 12 for each in (label, text)]
    colours = {"worse": "#a83206", "better": "#00694a", "same": "#0b5cad", "unknown": "#59636e"}
    return render_to_string(
        "tracking/svg/badge.svg",
        {
            "label": label,
            "text": text,
            "title": _badge_title(of, recent, days),
            "left": widths[0],
            "right": widths[1],
            "width": sum(widths),
            "label_x": widths[0] / 2,
            "text_x": widths[0] + widths[1] / 2,
            "label_colour": "#39424c" if theme == "light" else "#262c33",
            "colour": colours[state],
        },
    )


def _recent(steps: Sequence[PlotChange], now: datetime, days: int) -> list[PlotChange]:
    since = (now - timedelta(days=days)).timestamp() * 1000
    return [step for step in steps if step.ms >= since]


def _state(of: PlotData, recent: Sequence[PlotChange], days: int) -> tuple[str, str]:
    if of.latest is None:
        return "no points", "unknown"
    value = format_value(of.latest.value, of.head.unit)
    value += " (generated)" if of.head.generated else " (emulated)" if of.head.emulated else ""
    if not of.head.is_enough:
        return f"{value} · insufficient data", "unknown"
    if not recent:
        return f"{value} · steady for {days} d", "same"
    ratio = recent[-1].after / recent[0].before
    effects = [effect_of(step) for step in recent]
    if not any(effect.is_shown for effect in effects):
        return f"{value} · {format_ratio(ratio, 2)}, {effects[-1]}", "unknown"
    worse = ratio < 1 if of.head.better == "higher" else ratio > 1
    return f"{value} · {format_ratio(ratio, 2)} in {days} d", "worse" if worse else "better"


def _badge_title(of: PlotData, recent: Sequence[PlotChange], days: int) -> str:
    """Return what does not fit: device, interval, n, and each change with its own."""
    parts = [of.head.name]
    if of.latest is not None:
        latest = of.latest
        interval = latest.bounds or "interval unknown"
        parts.append(f"{latest.text} ({interval}, n = {latest.n}) at {latest.revision}")
    parts += [_described(step, of) for step in recent[-5:]] or [f"no change in {days} days"]
    return one_line("; ".join(parts))
