"""The text of a message in every format: a headline, and a few lines per series."""

from __future__ import annotations

from codegen_app.tracking.models import QUIET_KINDS, AlertKind, EventKind, Source
from codegen_app.tracking.notifying.message import Message, SeriesNote, WindowNote
from scheduler.ir.bindings import format_bindings
from scheduler.text import one_line
from scheduler.track.effect import format_change
from scheduler.track.evidence import cause_text
from scheduler.track.resources import is_emulated
from scheduler.track.units import format_ratio

MAX_HEADLINE = 150
_MAX_COMMITS = 5
SET_ASIDE = "Its points are set aside, and not compared, until it is back."
_SOURCES = dict(Source.choices)
_REASONS = {
    EventKind.RAISED: "raised",
    EventKind.GREW: "more series were added",
    EventKind.RECOVERED: "later points are back at the previous level",
}
_OVER = "later points no longer show it"


def headline(message: Message, max_chars: int = MAX_HEADLINE) -> str:
    """Return one line: what, how much, since when."""
    alert = message.alert
    if alert is None:
        return one_line(f"test of {message.channel}", max_chars)
    recovered = "recovered: " if message.event == EventKind.RECOVERED else ""
    words = [f"{recovered}{AlertKind(alert.kind).label}"]
    if alert.kind in (AlertKind.MISSING, *QUIET_KINDS):
        words += [f"of {series.problem} on {series.device}" for series in message.series[:1]]
    elif (machine := message.machine) is not None:
        words.append(f"{machine.name} in {alert.n_series} series {format_ratio(machine.ratio)}")
        words.append(f"since {machine.since:%Y-%m-%d %H:%M} UTC")
    else:
        words.append(f"in {alert.n_series} series")
        if (worst := next((series.change for series in message.series), None)) is not None:
            words.append(f"up to {format_change(worst)}")
        if message.revision is not None:
            words.append(f"since {message.revision.name[:12]}")
    if alert.cause:
        words.append(f"({cause_text(alert.cause)})")
    return one_line(" ".join(words), max_chars)


def event_line(message: Message) -> str:
    """Return the alert and the reason of the message."""
    alert = message.alert
    if alert is None:
        return "This is a test message, requested on Kiln's Channels page."
    reason = _REASONS.get(EventKind(message.event), message.event)
    if message.finding is not None and message.event == EventKind.RECOVERED:
        reason = _OVER
    return f"Alert {alert.id}, {AlertKind(alert.kind).label}: {reason}."


def facts(message: Message) -> list[tuple[str, str]]:
    """Return what is known of an alert, by name; nothing for a test."""
    alert, revision, machine = message.alert, message.revision, message.machine
    if alert is None:
        return []
    rows = [("State", alert.state)]
    if alert.cause:
        rows.append(("Cause", f"{cause_text(alert.cause)} (series with the largest change)"))
    if revision is not None:
        branch = f"on {revision.branch}" if revision.branch else ""
        rows.append(
            ("Revision", " ".join(filter(None, (revision.name, branch, revision.repository))))
        )
    if message.window is not None:
        rows += _window_facts(message.window)
    if machine is not None:
        interval = f"95%: {machine.ratio_low:.3f} \N{EN DASH} {machine.ratio_high:.3f}"
        mean = "after / before, geometric mean of its series"
        rows += [
            (
                "Machine",
                f"{machine.name}, {alert.n_series} of {machine.n_measured} series measured there",
            ),
            ("Ratio", f"{format_ratio(machine.ratio)} {mean} ({interval})"),
            ("Since", f"{machine.since:%Y-%m-%d %H:%M} UTC"),
            *(("Reading", sentence) for sentence in machine.readings),
        ]
    if (finding := message.finding) is not None:
        interval = f"95%: {finding.ratio_low:.3f} \N{EN DASH} {finding.ratio_high:.3f}"
        n = f"n = {finding.n_before} / {finding.n_after}"
        rows += [
            ("Found", finding.summary),
            ("Ratio", f"{format_ratio(finding.ratio)} ({interval}), {n}"),
            ("Since", f"{finding.since:%Y-%m-%d %H:%M} UTC, {finding.revision}"),
        ]
    return [(name, one_line(value)) for name, value in rows]


def _window_facts(window: WindowNote) -> list[tuple[str, str]]:
    """Return the last good revision, and the newest commits since."""
    revisions = "revision" if window.n_between == 1 else "revisions"
    between = f"{window.n_between or 'no'} measured {revisions} in between"
    rows = [("After", f"{window.good}, {between}")]
    shown = window.commits[:_MAX_COMMITS]
    for commit in shown:
        author = f" ({commit.author})" if commit.author else ""
        rows.append(("Commit", f"{commit.name[:12]} {commit.subject}{author}"))
    if (more := window.n_commits - len(shown)) > 0:
        rows.append(("Commit", f"and {more} more"))
    if window.diff_url:
        rows.append(("Diff", window.diff_url))
    return rows


def series_title(series: SeriesNote) -> str:
    """Return the series, and whether its values were generated or emulated."""
    sizes = format_bindings(series.sizes)
    what = f"{series.metric} of {series.problem}" + (f" ({sizes})" if sizes else "")
    target = f" ({series.target})" if series.target else ""
    origin = ""
    if series.is_generated:
        origin = ": generated, not measured"
    elif is_emulated(series.target):
        origin = ": emulated"
    return one_line(f"{what} on {series.device}{target}{origin}")


def series_lines(series: SeriesNote) -> list[str]:
    """Return what happened to a series: levels, source and cause, or the time of its last point."""
    change = series.change
    if change is None:
        if series.last_point_at is None or not series.is_silent:
            return []
        return [f"no new point since {series.last_point_at:%Y-%m-%d %H:%M} UTC"]
    levels = f"{change.before:.5g} \N{RIGHTWARDS ARROW} {change.after:.5g} {series.unit}".rstrip()
    lines = [f"{levels}, {format_change(change)}", _SOURCES.get(change.source, change.source)]
    if change.cause:
        lines.append(one_line(f"cause: {cause_text(change.cause)}. {change.reason}"))
    return lines


def series_url(series: SeriesNote) -> str:
    return series.change.url if series.change else series.url
