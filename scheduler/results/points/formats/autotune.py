"""AUTOTUNE blocks of Inductor's output (``TORCHINDUCTOR_MAX_AUTOTUNE``), and of Kiln's own log.

The time of a call is that of its fastest choice, which the conditions name. Inductor prints four
decimals of a millisecond: the times are multiples of 100 ns.

A block is taken whole or left out by name. Lines of several processes may alternate: what stands
before a line (``[rank0]:``, a collector's columns, without their times) says whose it is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NamedTuple

from scheduler.outcome import UserError
from scheduler.results.points import fields
from scheduler.results.points.formats.common import NANOSECONDS, Rows, point
from scheduler.results.points.model import Context, Points
from scheduler.tuning.oracle.log import NOT_MEASURED

_HEAD = "AUTOTUNE "
_TIME = r"-?[0-9]+(?:\.[0-9]+)?|-?inf|nan"
_SHARE = r"(?:-?[0-9.]+|-?inf|nan)%|<DIVIDED BY ZERO ERROR>"
#: Collectors of logs write a line's end as two characters, escaped once more inside JSON.
_WRITTEN_NEWLINE = re.compile(r"(?:\\+r)?\\+n")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
#: What differs before each line of one process: when it was written, and by which line of code.
_VARYING = re.compile(
    r"\d{4}[-/]\d\d[-/]\d\d|\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?|(?<![\d.])\d+\.\d{3,}(?![\d.])"
    r"|\b\d{10,}(?:\.\d+)?|\b[DIWEF]\d{4}\b|\.py:\d+"
)


class _Kind(Enum):
    HEAD = auto()
    CHOICE = auto()
    OPERANDS = auto()
    END = auto()


#: What a line is known by: the first group is where it begins.
_PATTERNS = {
    _Kind.HEAD: re.compile(r"\b(AUTOTUNE )(?!(?:benchmarking )?takes\b)"),
    _Kind.CHOICE: re.compile(rf'(?:^|[\s"|]|\]:?)(([^\s"|\]]+) ({_TIME}) ms ({_SHARE}))'),
    _Kind.OPERANDS: re.compile(r"(?<![\w.])((strides|dtypes): )"),
    _Kind.END: re.compile(r"((?:SingleProcess |SubProcess )?\bAUTOTUNE (?:benchmarking )?takes\b)"),
}


class _Line(NamedTuple):
    """A line of a block: what stands before it, its parts, and what else is in it where two
    processes wrote into one line."""

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
    operands: list[str] = field(default_factory=list)
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
            self.operands.append(operands)


def accepts(text: str) -> bool:
    """Whether there is such a block in it."""
    return any(
        line.kind is _Kind.HEAD
        for one in text.splitlines()
        if _HEAD in one
        for line in _lines_in(one)
    )


def read(text: str, context: Context) -> Points:
    """A point a block. Raises ``UserError`` where there is none."""
    rows = Rows(context)
    blocks = list(_blocks(text))
    if not blocks:
        raise UserError("line 1: there is no AUTOTUNE block in this text")
    for block in blocks:
        at = f"line {block.line}"
        with rows.row(at, block.call):
            ms, name, config = _fastest(block, at)
            facts = {"kernel": fields.as_text(name[:1_000], at, 1_000)}
            if config:
                facts["flags"] = fields.as_text(config[:1_000], at, 1_000)
            figure: dict[str, Any] = {"value": ms * NANOSECONDS["ms"], "conditions": facts}
            rows.add(at, point(rows.context, block.problem, at, metric="time", unit="ns", **figure))
    return rows.points(once=False)


def _fastest(block: _Block, at: str) -> tuple[float, str, str]:
    """Time in ms, name and configuration. Raises ``UserError`` where the block is not whole or a
    time in it is none."""
    fields.need(not block.is_modelled, at, "modelled, not measured")
    mixed = "another block begins before it ends, and nothing before a line says whose it is"
    fields.need(not block.is_mixed, at, mixed)
    fields.need(block.ended, at, 'its last line ("AUTOTUNE benchmarking takes") is missing')
    for choice in block.choices:
        fields.need(choice.ms != "nan", at, "the time of a choice is no number")
        fields.need(not choice.ms.startswith("-"), at, "a choice has a negative time")
        fields.need(float(choice.ms) > 0, at, "a choice has a time of 0")
    timed = [choice for choice in block.choices if choice.ms != "inf"]
    times = [float(choice.ms) for choice in timed]
    fields.need(bool(timed) and math.isfinite(times[0]), at, "no choice has a time")
    # Kiln's own log has the chosen one first, which may tie with a faster one.
    is_whole = timed[0].share == "100.0%" and times[1:] == sorted(times[1:])
    fields.need(is_whole, at, "it is not whole: its choices are not in the order of their times")
    return min((float(choice.ms), choice.name, choice.config) for choice in timed)


def _blocks(text: str) -> Iterator[_Block]:
    """In the order of their first lines."""
    streams: dict[str, _Stream] = {}
    for number, whole in enumerate(text.splitlines(), start=1):
        lines = list(_lines_in(whole))
        for line in lines:
            process = _process(line.before)
            if len(lines) > 1:  # a collector made one line of a log, maybe a text inside of JSON
                process = f"{number}\n" + _process(line.before.rpartition('"')[2])
            found = streams.setdefault(process, _Stream()).take(line, number)
            if found is not None:
                yield found


class _Stream:
    """The lines of one process, or of several that nothing tells apart: while a block has not
    ended, what follows may be of it, and no other is taken."""

    def __init__(self) -> None:
        self._latest: _Block | None = None
        self._unended = 0

    def take(self, line: _Line, number: int) -> _Block | None:
        """The block that begins with the line."""
        latest = self._latest
        if line.kind is _Kind.HEAD:
            is_mixed = self._unended > 0 or bool(line.also)
            block = self._latest = _Block(number, line.parts[0], is_mixed)
            if latest is not None and not latest.ended:
                latest.is_mixed = True
            if block.is_modelled:  # such a log has no end of this form
                block.ended = True
            else:
                self._unended += 1 + (_Kind.HEAD in line.also) - (_Kind.END in line.also)
            return block
        if latest is None:  # its block's first line is not in this text
            return None
        if line.kind is _Kind.END:
            latest.is_mixed |= not self._unended
            self._unended = max(0, self._unended - 1)
        if not latest.ended:
            latest.take(line)
        return None


def _lines_in(whole: str) -> Iterator[_Line]:
    if " ms " not in whole and _HEAD not in whole and "s: " not in whole:
        return  # nearly all lines of a training's log
    for part in _WRITTEN_NEWLINE.split(_COLOUR.sub("", whole)):
        if (line := _line(part)) is not None:
            yield line


def _line(text: str) -> _Line | None:
    found = {kind: one for kind, pattern in _PATTERNS.items() if (one := pattern.search(text))}
    if not found:
        return None
    kind = next(iter(found))
    match = found[kind]
    rest = _unquoted(text[match.end() :])
    also = {one for one, pattern in _PATTERNS.items() if pattern.search(rest)}
    also |= found.keys() - {kind}
    if kind is _Kind.HEAD and "(" not in rest.rpartition(")")[0][1:]:
        return None
    return _Line(kind, text[: match.start(1)], (*match.groups()[1:], rest), frozenset(also))


def _unquoted(text: str) -> str:
    """Without what follows where the line is a text inside of JSON."""
    return text.partition('"')[0].strip().rstrip("\\").rstrip()


def _process(before: str) -> str:
    return " ".join(_VARYING.sub("", before).split())
