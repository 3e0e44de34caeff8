"""The difference of two listings, blind to addresses, labels and the choice of registers.

Anchored like patience diff: runs of instructions that stand once on either side hold the two
together, longest runs first, and only the gaps between them are compared line by line. So two
listings of 10,000 lines take well under a second, however much they repeat.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

from scheduler.isa.instructions import Kind
from scheduler.isa.listing import Function, Instruction

_REGISTER = re.compile(
    r"\b(?:([vas])(?:\d+|\[(\d+)(?::(\d+))?\])|(ttmp)\d+|(vcc|exec|m0)(_lo|_hi)?)"
)
_LABEL = re.compile(r"\.L\w+")
_ADDRESS = re.compile(r"\b(?:offset:|0x)[0-9a-f]+|\b\d{4,}\b")
_ANCHOR_RUNS = (8, 4, 2, 1)
_SMALL = 1 << 14  # pairs of lines that are compared exactly
_LARGE_GAP = 4000  # lines of a gap beyond which frequent ones stop being compared


class Change(StrEnum):
    """``renamed``: equal but for registers, labels or addresses."""

    SAME = "same"
    RENAMED = "renamed"
    CHANGED = "changed"
    REMOVED = "removed"
    ADDED = "added"


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the two sides: instructions by index, None where a side has none."""

    change: Change
    left: int | None
    right: int | None


def normalized(instruction: Instruction) -> str:
    """The instruction with registers by their class and width, labels and addresses left out."""
    operands = _LABEL.sub("label", instruction.operands)
    operands = _REGISTER.sub(_register, operands)
    return f"{instruction.mnemonic} {_ADDRESS.sub('address', operands)}"


def diff(left: Function, right: Function) -> tuple[Row, ...]:
    """Rows in the order of both sides."""
    old = [normalized(instruction) for instruction in left.instructions]
    new = [normalized(instruction) for instruction in right.instructions]
    rows: list[Row] = []
    at_left = at_right = 0
    for begin_left, begin_right, length in _merged(_matches(old, new)):
        rows += _gap(left, right, (at_left, begin_left), (at_right, begin_right))
        for step in range(length):
            one, other = begin_left + step, begin_right + step
            same = left.instructions[one].operands == right.instructions[other].operands
            rows.append(Row(Change.SAME if same else Change.RENAMED, one, other))
        at_left, at_right = begin_left + length, begin_right + length
    rows += _gap(left, right, (at_left, len(old)), (at_right, len(new)))
    return tuple(rows)


def summary(rows: Sequence[Row]) -> dict[Change, int]:
    """How many rows of each kind."""
    found = Counter(row.change for row in rows)
    return {change: found[change] for change in Change}


def _register(match: re.Match[str]) -> str:
    if match[1]:
        width = int(match[3]) - int(match[2]) + 1 if match[3] else 1
        return f"{match[1]}{width}"
    return "s2" if match[5] and not match[6] else "s1"


def _gap(
    left: Function, right: Function, of_left: tuple[int, int], of_right: tuple[int, int]
) -> Iterator[Row]:
    """What has no partner: side by side where the mnemonics' kinds agree, else one by one."""
    one, other = of_left[0], of_right[0]
    while one < of_left[1] and other < of_right[1]:
        kind: Kind = left.instructions[one].kind
        if kind is not right.instructions[other].kind:
            break
        yield Row(Change.CHANGED, one, other)
        one, other = one + 1, other + 1
    for index in range(one, of_left[1]):
        yield Row(Change.REMOVED, index, None)
    for index in range(other, of_right[1]):
        yield Row(Change.ADDED, None, index)


def _merged(matches: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    result: list[tuple[int, int, int]] = []
    for left, right, length in sorted(matches):
        if (
            result
            and result[-1][0] + result[-1][2] == left
            and result[-1][1] + result[-1][2] == right
        ):
            result[-1] = (*result[-1][:2], result[-1][2] + length)
        else:
            result.append((left, right, length))
    return result


def _matches(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int, int]]:
    """Runs (left, right, length) that are equal, in ascending order on both sides."""
    found: list[tuple[int, int, int]] = []
    work = [(0, len(old), 0, len(new), 0)]
    while work:
        low, high, below, above, level = work.pop()
        prefix = 0
        while (
            low + prefix < high
            and below + prefix < above
            and old[low + prefix] == new[below + prefix]
        ):
            prefix += 1
        if prefix:
            found.append((low, below, prefix))
            low, below = low + prefix, below + prefix
        suffix = 0
        while (
            high - suffix > low
            and above - suffix > below
            and old[high - suffix - 1] == new[above - suffix - 1]
        ):
            suffix += 1
        if suffix:
            high, above = high - suffix, above - suffix
            found.append((high, above, suffix))
        if low == high or below == above:
            continue
        small = (high - low) * (above - below) <= _SMALL
        if small or level == len(_ANCHOR_RUNS):
            found += _exact(old[low:high], new[below:above], low, below)
            continue
        anchors = _anchors(old, new, (low, high), (below, above), _ANCHOR_RUNS[level])
        if not anchors:
            work.append((low, high, below, above, level + 1))
            continue
        for one, other in anchors:
            work.append((low, one, below, other, level))
            found.append((one, other, 1))
            low, below = one + 1, other + 1
        work.append((low, high, below, above, level))
    return found


def _exact(
    old: Sequence[str], new: Sequence[str], low: int, below: int
) -> list[tuple[int, int, int]]:
    frequent_aside = len(old) + len(new) > _LARGE_GAP
    matcher = SequenceMatcher(None, old, new, autojunk=frequent_aside)
    return [(low + i, below + j, size) for i, j, size in matcher.get_matching_blocks() if size]


def _anchors(
    old: Sequence[str],
    new: Sequence[str],
    of_old: tuple[int, int],
    of_new: tuple[int, int],
    run: int,
) -> list[tuple[int, int]]:
    """Places where a run of lines stands that each side has once, in ascending order on both."""
    left = _unique(old, *of_old, run)
    right = _unique(new, *of_new, run)
    pairs = sorted((place, right[key]) for key, place in left.items() if key in right)
    return _increasing(pairs)


def _unique(lines: Sequence[str], low: int, high: int, run: int) -> dict[Hashable, int]:
    places: dict[Hashable, int] = {}
    repeated = set()
    for index in range(low, high - run + 1):
        key = tuple(lines[index : index + run])
        if key in places:
            repeated.add(key)
        places[key] = index
    for key in repeated:
        del places[key]
    return places


def _increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest subsequence whose second numbers ascend (patience sorting)."""
    tails: list[int] = []
    tail_index: list[int] = []
    before: list[int] = []
    for index, (_, right) in enumerate(pairs):
        place = bisect_left(tails, right)
        before.append(tail_index[place - 1] if place else -1)
        tails[place : place + 1] = [right]
        tail_index[place : place + 1] = [index]
    result = []
    index = tail_index[-1] if tail_index else -1
    while index >= 0:
        result.append(pairs[index])
        index = before[index]
    return result[::-1]
