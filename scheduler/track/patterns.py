"""Patterns that select series by what they are of: repository, problem, device, metric and path.

Names have ``*`` for any characters and ``?`` for one, and ignore the case of ASCII letters. Paths
have the syntax of CODEOWNERS, so that lines of such a file serve as they are. Matching takes at
most the product of both lengths, for every pattern.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import takewhile

from scheduler.errors import UserError

MAX_PATTERNS = 50
MAX_CHARACTERS = 200
_ANY_DEPTH = "**"
_BENEATH = "**/"  # one segment or more
_UNSUPPORTED = {
    "!": "exclusions (!) are not supported",
    "[": "character ranges ([ ]) are not supported",
    "\\": "escapes (\\) are not supported",
}


@dataclass(frozen=True)
class SeriesFacts:
    """What patterns are compared with; "" if unknown. ``path`` is that of the measured source, or
    of its benchmark, from the root of the repository."""

    repository: str
    problem: str
    device: str
    metric: str
    path: str


@dataclass(frozen=True)
class SeriesPatterns:
    """Alternatives by fact: a series matches if each fact with patterns matches one of them."""

    repository: tuple[str, ...] = ()
    problem: tuple[str, ...] = ()
    device: tuple[str, ...] = ()
    metric: tuple[str, ...] = ()
    path: tuple[str, ...] = ()

    def matches(self, facts: SeriesFacts) -> bool:
        return self.match_names(facts) and self.match_path(facts.path)

    def match_names(self, facts: SeriesFacts) -> bool:
        """Return whether all facts but the path match."""
        return all(
            any(matches_name(pattern, value) for pattern in patterns)
            for patterns, value in (
                (self.metric, facts.metric),
                (self.device, facts.device),
                (self.repository, facts.repository),
                (self.problem, facts.problem),
            )
            if patterns
        )

    def match_path(self, path: str) -> bool:
        return not self.path or any(matches_path(pattern, path) for pattern in self.path)

    def __str__(self) -> str:
        parts = [
            f"{field.name} {' | '.join(patterns)}"
            for field in fields(self)
            if (patterns := getattr(self, field.name))
        ]
        return ", ".join(parts) or "every series"


FACT_NAMES = tuple(field.name for field in fields(SeriesPatterns))


def parse_patterns(texts: Mapping[str, str]) -> SeriesPatterns:
    """Return the patterns of each fact from a text with one pattern a line.

    Raises ``UserError`` for a pattern that is too long, and for too many of them.
    """
    parsed: dict[str, tuple[str, ...]] = {}
    for name in FACT_NAMES:
        lines = [line.strip() for line in texts.get(name, "").splitlines()]
        patterns = tuple(dict.fromkeys(filter(None, lines)))
        if len(patterns) > MAX_PATTERNS:
            raise UserError(f"{name}: {len(patterns)} patterns, more than {MAX_PATTERNS}")
        for pattern in patterns:
            if len(pattern) > MAX_CHARACTERS:
                raise UserError(
                    f"{name}: {pattern[:40]}… has {len(pattern)} characters, more than"
                    f" {MAX_CHARACTERS}"
                )
            if name == "path":
                check_path_pattern(pattern)
        parsed[name] = patterns
    return SeriesPatterns(**parsed)


def check_path_pattern(pattern: str) -> None:
    """Raise ``UserError`` for syntax of .gitignore that CODEOWNERS does not have either."""
    for sign, reason in _UNSUPPORTED.items():
        if sign in pattern if sign != "!" else pattern.startswith(sign):
            raise UserError(f"path {pattern[:MAX_CHARACTERS]}: {reason}")
    if not pattern.strip("/"):
        raise UserError(f"path {pattern[:MAX_CHARACTERS]}: names no file; * is every file")


def matches_name(pattern: str, text: str) -> bool:
    """Return whether the whole text matches."""
    return _expression(pattern, re.DOTALL | re.ASCII | re.IGNORECASE).match(text) is not None


def matches_path(pattern: str, path: str) -> bool:
    """Return whether a line of CODEOWNERS with this pattern would cover the file.

    A pattern with a slash before its end begins at the root, any other matches at every depth. A
    folder covers what is beneath it; a last segment ``*`` covers one level.
    """
    segments, line = _segments(path), _path_line(pattern)
    begin = len(line.root)
    if not segments or segments[:begin] != line.root:
        return False
    # The states of a nondeterministic automaton: how many parts are matched so far.
    parts = line.parts
    states = _skip_any_depth(parts, {begin})
    for segment in segments[begin:]:
        following = set()
        for state in states:
            if state == len(parts):
                continue
            if parts[state] in (_ANY_DEPTH, _BENEATH):
                following.add(state)
                if parts[state] == _BENEATH:
                    following.add(state + 1)
            elif _expression(parts[state], re.DOTALL).match(segment):
                following.add(state + 1)
        states = _skip_any_depth(parts, following)
        if not states:
            return False
    return len(parts) in states or (line.is_file_or_folder and len(parts) - 1 in states)


def _skip_any_depth(parts: Sequence[str], states: set[int]) -> set[int]:
    """Add the states after ``**``, which may match nothing."""
    skipped = set(states)
    for state in sorted(states):
        following = state
        while following < len(parts) and parts[following] == _ANY_DEPTH:
            following += 1
            skipped.add(following)
    return skipped


@dataclass(frozen=True)
class _PathLine:
    """A pattern of CODEOWNERS: the ``parts`` to match in order, of which ``root`` are the first
    ones without wildcards. ``is_file_or_folder``: it may name a file, too, with nothing beneath."""

    parts: tuple[str, ...]
    root: tuple[str, ...]
    is_file_or_folder: bool


@lru_cache(maxsize=8192)
def _path_line(pattern: str) -> _PathLine:
    inner = pattern.rstrip("/")
    parts = [part for part in inner.split("/") if part]
    if "/" not in inner and parts != [_ANY_DEPTH]:
        parts.insert(0, _ANY_DEPTH)
    names_file = False
    if parts[-1] == _ANY_DEPTH:
        parts[-1] = _BENEATH
    elif pattern.endswith("/") or parts[-1] != "*":
        names_file = not pattern.endswith("/")
        parts.append(_BENEATH)
    elif parts == [_ANY_DEPTH, "*"]:
        parts = [_BENEATH]
    root = takewhile(lambda part: "*" not in part and "?" not in part, parts)
    return _PathLine(tuple(parts), tuple(root), names_file)


@lru_cache(maxsize=8192)
def _segments(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.replace("\\", "/").split("/") if part not in ("", "."))


@lru_cache(maxsize=8192)
def _expression(pattern: str, flags: int) -> re.Pattern[str]:
    """Return the expression of a pattern. What is between two stars is looked for once, from the
    left: an atomic group, so that no text makes it try again."""
    first, *others = [
        "".join("." if character == "?" else re.escape(character) for character in part)
        for part in re.split(r"\*+", pattern)
    ]
    if not others:
        return re.compile(rf"{first}\Z", flags)
    middle = "".join(f"(?>.*?{part})" for part in others[:-1])
    return re.compile(rf"{first}{middle}.*{others[-1]}\Z", flags)
