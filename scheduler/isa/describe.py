"""What an instruction does, in a few words: what readers of listings say of a name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Description:
    """``title`` is what the name stands for, ``text`` what it does, in a sentence or two."""

    title: str
    text: str


Row = tuple[str, str, str]
"""A pattern of names, the title, the text. Groups of the pattern stand in both as ``{name}``."""


def look_up(rows: Iterable[Row], name: str, words: Mapping[str, str]) -> Description | None:
    """What the first row says whose pattern fits the whole name; None where none does. What a
    group matched is replaced by what ``words`` call it."""
    for pattern, title, text in rows:
        if match := re.fullmatch(pattern, name):
            groups = {
                key: words.get(value or "", value or "") for key, value in match.groupdict().items()
            }
            return Description(title.format(**groups), text.format(**groups))
    return None
