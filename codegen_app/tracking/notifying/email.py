"""A message as an e-mail: a subject, and lines that a terminal can show."""

from __future__ import annotations

from codegen_app.tracking.models import AlertKind, EventKind, Source
from codegen_app.tracking.notifying.message import ChangeNote, MachineNote, Message, SeriesNote
from codegen_app.web.addresses import absolute_url
from scheduler.ir.bindings import format_bindings
from scheduler.text import one_line
from scheduler.track.effect import format_change
from scheduler.track.evidence import cause_text

_MAX_SERIES = 20
_MAX_SUBJECT = 200
_WHY = {
    EventKind.RAISED: "raised",
    EventKind.GREW: "more series were added",
    EventKind.RECOVERED: "later points are back at the previous level",
}
_SOURCES = dict(Source.choices)


def subject(message: Message) -> str:
    """Return one line: what, how much, since when."""
    alert = message.alert
    if alert is None:
        return f"[Kiln] test of {one_line(message.channel, _MAX_SUBJECT)}"
    recovered = "recovered: " if message.event == EventKind.RECOVERED else ""
    words = [f"[Kiln] {recovered}{AlertKind(alert.kind).label}"]
    if alert.kind == AlertKind.MISSING:
        words += [f"of {series.problem} on {series.device}" for series in message.series[:1]]
    elif (machine := message.machine) is not None:
        words.append(f"{machine.name} in {alert.n_series} series x{machine.ratio:.3f}")
        words.append(f"since {machine.since:%Y-%m-%d %H:%M} UTC")
    else:
        words.append(f"in {alert.n_series} series")
        if (worst := next((series.change for series in message.series), None)) is not None:
            words.append(f"up to {_ascii_change(worst)}")
        if message.revision is not None:
            words.append(f"since {message.revision.name[:12]}")
    if alert.cause:
        words.append(f"({cause_text(alert.cause)})")
    return one_line(" ".join(words), _MAX_SUBJECT)


def text(message: Message) -> str:
    alert = message.alert
    if alert is None:
        lines = ["This is a test message, requested on Kiln's Channels page."]
    else:
        why = _WHY.get(EventKind(message.event), message.event)
        lines = [f"Alert {alert.id}, {AlertKind(alert.kind).label}: {why}.", alert.url, ""]
        lines.append(f"State:    {alert.state}")
        if alert.cause:
            lines.append(f"Cause:    {cause_text(alert.cause)} (series with the largest change)")
        if (revision := message.revision) is not None:
            branch = f"on {revision.branch}" if revision.branch else ""
            parts = filter(None, (revision.name, branch, revision.repository))
            lines.append(f"Revision: {one_line(' '.join(parts))}")
        if (machine := message.machine) is not None:
            lines += _machine_lines(machine, alert.n_series)
        for name, url in (("Dup. of", alert.duplicate_of), ("Part of", alert.downstream_of)):
            if url:
                lines.append(f"{name + ':':<9} {url}")
        shown = message.series[:_MAX_SERIES]
        for series in shown:
            lines += ["", *_series_lines(series)]
        if (more := alert.n_series - len(shown)) > 0:
            lines += ["", f"and {more} series more."]
    channels = f"Sent to the channel {one_line(message.channel)}: {absolute_url('/channels')}"
    return "\n".join([*lines, "", "-- ", channels]) + "\n"


def _machine_lines(machine: MachineNote, n_series: int) -> list[str]:
    moved = f"{n_series} of {machine.n_measured} series measured there"
    return [
        one_line(f"Machine:  {machine.name}, {moved}"),
        f"Ratio:    x{machine.ratio:.3f} after / before, geometric mean of its series"
        f" (95%: {machine.ratio_low:.3f} - {machine.ratio_high:.3f})",
        f"Since:    {machine.since:%Y-%m-%d %H:%M} UTC",
        *(one_line(f"Reading:  {sentence}") for sentence in machine.readings),
        "Its points are set aside, and not compared, until it is back.",
    ]


def _series_lines(series: SeriesNote) -> list[str]:
    sizes = format_bindings(series.sizes)
    what = f"{series.metric} of {series.problem}" + (f" ({sizes})" if sizes else "")
    target = f" ({series.target})" if series.target else ""
    origin = ": generated, not measured" if series.is_generated else ""
    lines = [one_line(f"{what} on {series.device}{target}{origin}")]
    if (change := series.change) is not None:
        levels = f"  {change.before:.5g} -> {change.after:.5g} {series.unit}".rstrip()
        lines.append(f"{levels}, {_ascii_change(change)}")
        lines.append(f"  {_SOURCES.get(change.source, change.source)}")
        if change.cause:
            lines.append(one_line(f"  cause: {cause_text(change.cause)}. {change.reason}"))
    elif series.last_point_at is not None:
        lines.append(f"  no new point since {series.last_point_at:%Y-%m-%d %H:%M} UTC")
    return [*lines, f"  {change.url if change else series.url}"]


def _ascii_change(change: ChangeNote) -> str:
    """Return a change in ASCII, which every terminal and every subject can show."""
    return format_change(change).translate({0xD7: "x", 0x2013: "-"})
