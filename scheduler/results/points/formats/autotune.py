"""AUTOTUNE blocks of Inductor's output (``TORCHINDUCTOR_MAX_AUTOTUNE``), and of Kiln's own log.

The time of a call is that of its fastest choice, which the conditions name. Inductor prints four
decimals of a millisecond: the times are multiples of 100 ns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from scheduler.outcome import UserError
from scheduler.results.points import fields
from scheduler.results.points.formats.common import NANOSECONDS, point
from scheduler.results.points.model import Context, LeftOut, Points
from scheduler.tuning.oracle.log import NOT_MEASURED

# Kiln's own title goes on behind the operands: ``mm(64x32, 32x16) f16 at s0=64``.
_HEAD = re.compile(r"\bAUTOTUNE (\S[^(]*\(.*\)[^()]*?)\s*$")
_OPERANDS = re.compile(r"(?:^|\s)(strides|dtypes): (.+?)\s*$")
_CHOICE = re.compile(r"(?:^|\s)(\S+) ([0-9]+(?:\.[0-9]+)?|inf) ms [0-9.]+%\s*(.*?)\s*$")
_END = re.compile(r"\bAUTOTUNE benchmarking takes\b")


@dataclass
class _Block:
    line: int
    call: str
    operands: list[str] = field(default_factory=list)
    choices: list[tuple[float, str, str]] = field(default_factory=list)

    @property
    def problem(self) -> str:
        return " ".join((self.call, *self.operands))


def accepts(text: str) -> bool:
    """Whether there is such a block in it."""
    return any(_HEAD.search(line) for line in text.splitlines())


def read(text: str, context: Context) -> Points:
    """A point a block. Raises ``UserError`` naming the line."""
    made, left_out = [], []
    for block in _blocks(text):
        at = f"line {block.line}"
        if block.call.endswith(NOT_MEASURED):
            left_out.append(LeftOut(at, f"{block.call[:200]}: modelled, not measured"))
            continue
        if not block.choices:
            left_out.append(LeftOut(at, f"{block.call[:200]}: no choice has a time"))
            continue
        ms, name, config = min(block.choices)
        facts = {"kernel": fields.as_text(name[:1_000], at, 1_000)}
        if config:
            facts["flags"] = fields.as_text(config[:1_000], at, 1_000)
        made.append(
            point(
                context,
                block.problem,
                at,
                metric="time",
                unit="ns",
                value=ms * NANOSECONDS["ms"],
                conditions=facts,
            )
        )
    if not made and not left_out:
        raise UserError("line 1: there is no AUTOTUNE block in this text")
    return Points(tuple(made), tuple(left_out))


def _blocks(text: str) -> Iterator[_Block]:
    block: _Block | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if head := _HEAD.search(line):
            if block is not None:
                yield block
            block = _Block(number, head[1])
        elif block is None:
            continue
        elif _END.search(line):
            yield block
            block = None
        elif not block.choices and (operands := _OPERANDS.search(line)):
            block.operands.append(f"{operands[1]}: {operands[2]}")
        elif (choice := _CHOICE.search(line)) and choice[2] != "inf":
            block.choices.append((float(choice[2]), choice[1], choice[3]))
    if block is not None:
        yield block
