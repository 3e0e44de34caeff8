"""Short descriptions of instructions, for readers of listings."""

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
"""A pattern of names, the title, the text. Both may contain groups of the pattern as ``{name}``."""


def look_up(rows: Iterable[Row], name: str, words: Mapping[str, str]) -> Description | None:
    """Return the description of the first row whose pattern matches the whole name, or None.
    Matched groups are replaced by their entries in ``words``."""
    for pattern, title, text in rows:
        if match := re.fullmatch(pattern, name):
            return describe_match(match, title, text, words)
    return None


def describe_match(
    match: re.Match[str], title: str, text: str, words: Mapping[str, str]
) -> Description:
    """Return the description with the groups of a match, as in ``look_up``."""
    groups = {key: words.get(value or "", value or "") for key, value in match.groupdict().items()}
    return Description(title.format(**groups), text.format(**groups))
