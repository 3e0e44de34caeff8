"""A message for a Slack webhook: blocks, within Slack's limits.

All text of others is escaped (``&``, ``<``, ``>``): a mention such as ``<!channel>`` in the name
of a problem is text. Sections are verbatim, so that Slack makes no links or mentions of words.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from codegen_app.tracking.notifying import wording
from codegen_app.tracking.notifying.message import Message, SeriesNote
from scheduler.text import one_line

# https://docs.slack.dev/reference/block-kit/blocks (2026-11)
MAX_BLOCKS = 50
MAX_SECTION = 3_000
MAX_HEADER = 150
_MAX_SERIES = 20
_MAX_LINE = 300  # of which each character may take five when escaped


def body(message: Message) -> bytes:
    """Return the message as JSON. ``text`` is what notifications show."""
    title = wording.headline(message, MAX_HEADER)
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": title, "emoji": False}},
        _section(_summary(message)),
    ]
    shown = message.series[:_MAX_SERIES]
    blocks += [_section(_series(series)) for series in shown]
    notes = [f"Sent to the channel {escape(message.channel)}."]
    if message.alert is not None and (more := message.alert.n_series - len(shown)) > 0:
        notes.insert(0, f"and {more} series more.")
    elements = [{"type": "mrkdwn", "text": note, "verbatim": True} for note in notes]
    blocks.append({"type": "context", "elements": elements})
    return json.dumps({"text": escape(title), "blocks": blocks}, ensure_ascii=False).encode()


def escape(text: str) -> str:
    """Return text as Slack's markup, shortened to one line of ``_MAX_LINE`` characters."""
    short = one_line(text, _MAX_LINE)
    return short.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _summary(message: Message) -> Iterable[str]:
    alert = message.alert
    yield _link(alert.url if alert else "", wording.event_line(message))
    if alert is None:
        return
    for name, value in wording.facts(message):
        yield escape(f"{name}: {value}")
    if message.machine is not None:
        yield wording.SET_ASIDE
    for name, url in (
        ("Duplicate of another alert", alert.duplicate_of),
        ("Downstream of another alert", alert.downstream_of),
    ):
        if url:
            yield _link(url, name)


def _series(series: SeriesNote) -> Iterable[str]:
    yield _link(wording.series_url(series), wording.series_title(series))
    yield from map(escape, wording.series_lines(series))


def _link(url: str, text: str) -> str:
    """Return a link, or the text alone if the site's address is not known."""
    return f"<{url}|{escape(text)}>" if url.startswith(("http://", "https://")) else escape(text)


def _section(lines: Iterable[str]) -> dict[str, Any]:
    """Return a section of as many lines as fit."""
    text = ""
    for line in lines:
        if len(text) + len(line) + 1 > MAX_SECTION:
            break
        text = f"{text}\n{line}" if text else line
    return {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}}
