"""A message for a Microsoft Teams workflow: an adaptive card, within its limit of 28 KB.

Text is in runs of rich text, which Teams shows as they are: Markdown and mentions in the name of a
problem have no effect.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from codegen_app.tracking.notifying import wording
from codegen_app.tracking.notifying.message import Message, SeriesNote
from scheduler.text import one_line

# https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors (2026-11)
MAX_BYTES = 28_000
_MAX_SERIES = 20
_MAX_LINE = 400
Part = dict[str, Any]


def body(message: Message) -> bytes:
    """Return the message as JSON, with as many series as fit."""
    series = message.series[:_MAX_SERIES]
    while True:
        content = json.dumps(_card(message, series), ensure_ascii=False).encode()
        if len(content) <= MAX_BYTES or not series:
            return content
        series = series[: len(series) // 2]


def _card(message: Message, shown: Sequence[SeriesNote]) -> Part:
    alert = message.alert
    title = _run(wording.headline(message))
    parts = [_block([{**title, "size": "Large", "weight": "Bolder"}])]
    parts += [_block([_run(line)]) for line in _summary(message)]
    for series in shown:
        name = _run(wording.series_title(series), wording.series_url(series))
        parts.append({**_block([{**name, "weight": "Bolder"}]), "separator": True})
        parts += [_block([_run(line)]) for line in wording.series_lines(series)]
    if alert is not None and (more := alert.n_series - len(shown)) > 0:
        parts.append(_block([_run(f"and {more} series more.")]))
    parts.append(_block([{**_run(f"Sent to the channel {message.channel}."), "isSubtle": True}]))
    links = (
        ("Open the alert", alert.url if alert else ""),
        ("Duplicate of", alert.duplicate_of if alert else ""),
        ("Downstream of", alert.downstream_of if alert else ""),
    )
    actions = [{**_open(url), "title": name} for name, url in links if _is_absolute(url)]
    content = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "fallbackText": wording.headline(message),
        "msteams": {"width": "Full"},
        "body": parts,
        **({"actions": actions} if actions else {}),
    }
    kind = "application/vnd.microsoft.card.adaptive"
    attachment = {"contentType": kind, "contentUrl": None, "content": content}
    return {"type": "message", "attachments": [attachment]}


def _summary(message: Message) -> Iterable[str]:
    yield wording.event_line(message)
    for name, value in wording.facts(message):
        yield f"{name}: {value}"
    if message.machine is not None:
        yield wording.SET_ASIDE


def _block(runs: list[Part]) -> Part:
    return {"type": "RichTextBlock", "inlines": runs}


def _run(text: str, url: str = "") -> Part:
    run = {"type": "TextRun", "text": one_line(text, _MAX_LINE)}
    return {**run, "selectAction": _open(url)} if _is_absolute(url) else run


def _open(url: str) -> Part:
    return {"type": "Action.OpenUrl", "url": url}


def _is_absolute(url: str) -> bool:
    """Return whether a reader outside the site can follow it (``KILN_SITE_URL`` is set)."""
    return url.startswith(("http://", "https://"))
