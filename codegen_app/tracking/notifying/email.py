"""A message as an e-mail: a subject, and lines that a terminal can show."""

from __future__ import annotations

from codegen_app.tracking.notifying import wording
from codegen_app.tracking.notifying.message import Message
from codegen_app.web.addresses import absolute_url
from scheduler.text import one_line

_MAX_SERIES = 20
_MAX_SUBJECT = 200
_ASCII = {0xD7: "x", 0x2013: "-", 0x2192: "->"}


def subject(message: Message) -> str:
    """Return one line: what, how much, since when."""
    return f"[Kiln] {to_ascii(wording.headline(message, _MAX_SUBJECT - 7))}"


def text(message: Message) -> str:
    alert = message.alert
    lines = [wording.event_line(message)]
    if alert is not None:
        lines += [alert.url, ""]
        lines += [
            f"{name + ':':<9} {value}".translate(_ASCII) for name, value in wording.facts(message)
        ]
        if message.machine is not None:
            lines.append(wording.SET_ASIDE)
        for name, url in (("Dup. of", alert.duplicate_of), ("Part of", alert.downstream_of)):
            if url:
                lines.append(f"{name + ':':<9} {url}")
        shown = message.series[:_MAX_SERIES]
        for series in shown:
            details = [line.translate(_ASCII) for line in wording.series_lines(series)]
            lines += ["", wording.series_title(series)]
            lines += [f"  {line}" for line in (*details, wording.series_url(series))]
        if (more := alert.n_series - len(shown)) > 0:
            lines += ["", f"and {more} series more."]
    return "\n".join([*lines, *footer(message.channel)]) + "\n"


def to_ascii(text: str) -> str:
    """Replace the signs of figures, which not every terminal and subject can show."""
    return text.translate(_ASCII)


def footer(channel: str) -> list[str]:
    """Return the lines that say who sent an e-mail, and where to change that."""
    return ["", "-- ", f"Sent to the channel {one_line(channel)}: {absolute_url('/channels')}"]
