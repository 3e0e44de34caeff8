"""AUTOTUNE blocks of Inductor's output (``TORCHINDUCTOR_MAX_AUTOTUNE``), and of Kiln's own log.

The time of a call is that of its fastest choice, which the conditions name. Inductor prints four
decimals of a millisecond: the times are multiples of 100 ns.

An incomplete block is left out and reported by name. Lines of several processes may alternate: the
prefix of a line (``[rank0]:``, a collector's columns, without their times) identifies its process.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NamedTuple

from scheduler.errors import UserError
from scheduler.results.points import fields
from scheduler.results.points.formats.common import NANOSECONDS, Rows, make_point
from scheduler.results.points.model import ImportContext, Points
from scheduler.tuning.autotune_log import NOT_MEASURED

_HEAD = "AUTOTUNE "
_TIME = r"-?[0-9]+(?:\.[0-9]+)?|-?inf|nan"
_SHARE = r"(?:-?[0-9.]+|-?inf|nan)%|<DIVIDED BY ZERO ERROR>"
_MAX_LINES = 1_000_000
#: Log collectors write a line end as two characters, escaped again inside JSON.
_ESCAPED_NEWLINE = re.compile(r"(?<!\\)(?:\\++r)?\\++n")
_COLOUR = re.compile(r"\x1b\[[0-9;]*+m")
#: The varying part of a process's line prefix: the time, and the line of code that logged it.
_VARYING_PREFIX = re.compile(
    r"(?=[\d.DIWEF])(?:\d{4}[-/]\d\d[-/]\d\d|\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?|(?<![\d.])\d+\.\d{3,}(?![\d.])"
    r"|\b\d{10,}(?:\.\d+)?|\b[DIWEF]\d{4}\b|\.py:\d+)"
)
# Lines may be as long as the text. Each pattern begins with characters that are fast to find, and
# the text before them is examined once.
_BLOCK = re.compile(r"AUTOTUNE (?<=\bAUTOTUNE )(?!(?:benchmarking )?takes\b)")
_TIMED = re.compile(rf" (?<=[^\s\"|\]] )({_TIME}) ms ({_SHARE})")
_NAME_REVERSED = re.compile(r"[^\s\"|\]]+")
_OPERANDS = re.compile(r"(strides(?<![\w.]strides)|dtypes(?<![\w.]dtypes)): ")
_END = re.compile(r"AUTOTUNE (?<=\bAUTOTUNE )(?:benchmarking )?takes\b")


class _Kind(Enum):
    HEAD = auto()
    CHOICE = auto()
    OPERANDS = auto()
    END = auto()


class _Match(NamedTuple):
    """A match in a line: its position and its parts."""

    start: int
    end: int
    parts: tuple[str, ...] = ()


def _pattern_finder(pattern: re.Pattern[str]) -> Callable[[str], _Match | None]:
    """Return the function that finds a pattern; its groups are the parts."""

    def find(text: str) -> _Match | None:
        match = pattern.search(text)
        return _Match(*match.span(), match.groups()) if match else None

    return find


def _find_choice(text: str) -> _Match | None:
    match = _TIMED.search(text)
    if match is None:
        return None
    reversed_name = _NAME_REVERSED.match(text[: match.start()][::-1])
    assert reversed_name is not None  # the pattern requires one character before it
    name = reversed_name[0][::-1]
    name_start = match.start() - len(name)
    if name[0] == ":" and name != ":" and text[:name_start].endswith("]"):  # ``[rank0]:mm 0.1 ms``
        name = name[1:]
    return _Match(match.start() - len(name), match.end(), (name, *match.groups()))


def _find_end(text: str) -> _Match | None:
    match = _END.search(text)
    if match is None:
        return None
    start = match.start()
    for mode in ("SingleProcess ", "SubProcess "):
        if text.endswith(mode, 0, start):
            return _Match(start - len(mode), match.end())
    return _Match(start, match.end())


#: For each kind of line, a text that it contains, and the function that matches it.
_KINDS: dict[_Kind, tuple[str, Callable[[str], _Match | None]]] = {
    _Kind.HEAD: (_HEAD, _pattern_finder(_BLOCK)),
    _Kind.CHOICE: (" ms ", _find_choice),
    _Kind.OPERANDS: ("s: ", _pattern_finder(_OPERANDS)),
    _Kind.END: (_HEAD, _find_end),
}


class _Line(NamedTuple):
    """A line of a block: its prefix, its parts, and the rest, if two processes wrote into one
    line."""

    kind: _Kind
    before: str
    parts: tuple[str, ...]
    also: frozenset[_Kind]


class _Choice(NamedTuple):
    name: str
    ms: str
    share: str
    config: str


@dataclass
class _Block:
    line: int
    call: str
    is_mixed: bool = False
    ended: bool = False
    operands: dict[str, None] = field(default_factory=dict)  # in order
    choices: list[_Choice] = field(default_factory=list)

    @property
    def problem(self) -> str:
        return " ".join((self.call, *self.operands))

    @property
    def is_modelled(self) -> bool:
        return self.call.endswith(NOT_MEASURED)

    def take(self, line: _Line) -> None:
        self.is_mixed |= bool(line.also)
        if line.kind is _Kind.END:
            self.ended = True
        elif line.kind is _Kind.CHOICE:
            self.choices.append(_Choice(*line.parts))
        else:
            operands = f"{line.parts[0]}: {line.parts[1]}"
            self.is_mixed |= bool(self.choices) or operands in self.operands
            self.operands[operands] = None


def accepts(text: str) -> bool:
    """Whether the text contains such a block."""
    return _HEAD in text and any(
        line.kind is _Kind.HEAD
        for _, raw_line in _numbered_lines(text)
        if _HEAD in raw_line
        for line in _parse_lines(raw_line)
    )


def read(text: str, context: ImportContext) -> Points:
    """Read one point per block. Raises ``UserError`` if there is none, and if there are too many
    lines or blocks."""
    rows = Rows(context)
    blocks: list[_Block] = []
    for block in _blocks(text):
        blocks.append(block)
        rows.need_room(f"line {block.line}", len(blocks))
    if not blocks:
        raise UserError("line 1: no AUTOTUNE block in the file")
    for block in blocks:
        location = f"line {block.line}"
        with rows.row(location, block.call):
            ms, name, config = _fastest(block, location)
            facts = {"kernel": fields.as_text(name[:1_000], location, 1_000)}
            if config:
                facts["flags"] = fields.as_text(config[:1_000], location, 1_000)
            figure: dict[str, Any] = {"value": ms * NANOSECONDS["ms"], "conditions": facts}
            rows.add(
                location,
                make_point(
                    rows.context, block.problem, location, metric="time", unit="ns", **figure
                ),
            )
    return rows.points(once=False)


def _fastest(block: _Block, location: str) -> tuple[float, str, str]:
    """Return time in ms, name and configuration. Raises ``UserError`` if the block is incomplete or
    a time in it is invalid."""
    fields.require(not block.is_modelled, location, "modelled, not measured")
    mixed = "another block begins before it ends, and the lines have no process prefix"
    fields.require(not block.is_mixed, location, mixed)
    fields.require(
        block.ended, location, 'its last line ("AUTOTUNE benchmarking takes") is missing'
    )
    for choice in block.choices:
        fields.require(choice.ms != "nan", location, "the time of a choice is not a number")
        fields.require(not choice.ms.startswith("-"), location, "a choice has a negative time")
        fields.require(float(choice.ms) > 0, location, "a choice has a time of 0")
    timed = [choice for choice in block.choices if choice.ms != "inf"]
    times = [float(choice.ms) for choice in timed]
    fields.require(bool(timed) and math.isfinite(times[0]), location, "no choice has a time")
    # Kiln's own log lists the selected one first, which may tie with a faster one.
    is_ordered = timed[0].share == "100.0%" and times[1:] == sorted(times[1:])
    fields.require(
        is_ordered, location, "incomplete: its choices are not in the order of their times"
    )
    return min((float(choice.ms), choice.name, choice.config) for choice in timed)


def _blocks(text: str) -> Iterator[_Block]:
    """Yield blocks in the order of their first lines."""
    streams: dict[str, _Stream] = {}
    for number, raw_line in _numbered_lines(text):
        lines = list(_parse_lines(raw_line))
        for line in lines:
            process = _process_prefix(line.before)
            if len(lines) > 1:  # a collector joined a log into one line, maybe inside JSON
                process = f"{number}\n" + _process_prefix(line.before.rpartition('"')[2])
            stream = streams.get(process)
            if stream is None:
                if line.kind is not _Kind.HEAD:
                    continue  # the first line of its block is not in this text
                stream = streams[process] = _Stream()
            if (block := stream.take(line, number)) is not None:
                yield block


class _Stream:
    """The lines of one process, or of several that cannot be told apart: until a block has ended,
    later lines may belong to it, and no other block is started."""

    def __init__(self) -> None:
        self._latest: _Block | None = None
        self._unended = 0

    def take(self, line: _Line, number: int) -> _Block | None:
        """Take a line; return the block that begins with it, if any."""
        latest = self._latest
        if line.kind is _Kind.HEAD:
            is_mixed = self._unended > 0 or bool(line.also)
            block = self._latest = _Block(number, line.parts[0], is_mixed)
            if latest is not None and not latest.ended:
                latest.is_mixed = True
            if block.is_modelled:  # such a log has no end line of this form
                block.ended = True
            else:
                self._unended += 1 + (_Kind.HEAD in line.also) - (_Kind.END in line.also)
            return block
        assert latest is not None  # a stream begins with a head line
        if line.kind is _Kind.END:
            latest.is_mixed |= not self._unended
            self._unended = max(0, self._unended - 1)
        if not latest.ended:
            latest.take(line)
        return None


def _numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines that may belong to a block, with their numbers. Raises ``UserError`` for more
    lines than can be read, counting escaped line ends."""
    number = count = start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        for raw_line in text[start:end].splitlines():
            number += 1
            # Nearly all lines of a training log have none of these.
            is_marked = " ms " in raw_line or _HEAD in raw_line or "s: " in raw_line
            count += 1 + (raw_line.count("\\n") if is_marked else 0)
            if count > _MAX_LINES:
                raise UserError(f"line {number}: more than {_MAX_LINES} lines: split the log")
            if is_marked:
                yield number, raw_line
        start = end


def _parse_lines(raw_line: str) -> Iterator[_Line]:
    for part in _ESCAPED_NEWLINE.split(_COLOUR.sub("", raw_line)):
        if (line := _parse_line(part)) is not None:
            yield line


def _match_kinds(text: str) -> dict[_Kind, _Match]:
    return {
        kind: match
        for kind, (mark, find) in _KINDS.items()
        if mark in text and (match := find(text)) is not None
    }


def _parse_line(text: str) -> _Line | None:
    matches = _match_kinds(text)
    if not matches:
        return None
    kind, match = next(iter(matches.items()))
    # If the line is a text inside JSON, more follows it.
    text_after = text[match.end :].partition('"')[0].strip().rstrip("\\").rstrip()
    also = _match_kinds(text_after).keys() | (matches.keys() - {kind})
    if kind is _Kind.HEAD and "(" not in text_after.rpartition(")")[0][1:]:
        return None
    return _Line(kind, text[: match.start], (*match.parts, text_after), frozenset(also))


def _process_prefix(before: str) -> str:
    return " ".join(_VARYING_PREFIX.sub("", before).split())
