"""The difference of two listings, ignoring addresses, labels and the choice of registers.

It computes the exact longest common subsequence with rapidfuzz's bit-parallel dynamic programming
(H. Hyyrö, "Bit-Parallel LCS-length Computation Revisited", 2004). The table has a bit for each pair
of lines; if it would exceed its memory limit, both sides are first cut at runs of instructions that
occur once on each side.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rapidfuzz.distance import LCSseq

from scheduler.isa.instructions import Kind
from scheduler.isa.listing import Function
from scheduler.isa.reader import ListingReader

_ANCHOR_RUNS = (8, 4, 2, 1)
_TABLE_BITS = 1 << 29  # 64 MiB


class Change(StrEnum):
    """``renamed``: equal except for registers, labels or addresses."""

    SAME = "same"
    RENAMED = "renamed"
    CHANGED = "changed"
    REMOVED = "removed"
    ADDED = "added"


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One row of the two sides: instructions by index, None if a side has none."""

    change: Change
    left: int | None
    right: int | None


def diff(
    left: Function,
    right: Function,
    readers: tuple[ListingReader, ListingReader],
    table_bits: int = _TABLE_BITS,
) -> tuple[DiffRow, ...]:
    """Return rows in the order of both sides, each side read by its own reader. ``table_bits``
    limits the memory of an exact comparison."""
    old = [readers[0].normalized(instruction) for instruction in left.instructions]
    new = [readers[1].normalized(instruction) for instruction in right.instructions]
    rows: list[DiffRow] = []
    at_left = at_right = 0
    for begin_left, begin_right, length in common_runs(old, new, table_bits):
        rows += _gap_rows(left, right, (at_left, begin_left), (at_right, begin_right))
        for step in range(length):
            left_index, right_index = begin_left + step, begin_right + step
            same = (
                left.instructions[left_index].operands == right.instructions[right_index].operands
            )
            rows.append(DiffRow(Change.SAME if same else Change.RENAMED, left_index, right_index))
        at_left, at_right = begin_left + length, begin_right + length
    rows += _gap_rows(left, right, (at_left, len(old)), (at_right, len(new)))
    return tuple(rows)


def common_runs(
    old: Sequence[str], new: Sequence[str], table_bits: int = _TABLE_BITS
) -> list[tuple[int, int, int]]:
    """Return the common lines of two texts: runs (left, right, length) that ascend on both
    sides."""
    result: list[tuple[int, int, int]] = []
    for left, right, length in sorted(_matching_runs(old, new, table_bits)):
        if (
            result
            and result[-1][0] + result[-1][2] == left
            and result[-1][1] + result[-1][2] == right
        ):
            result[-1] = (*result[-1][:2], result[-1][2] + length)
        else:
            result.append((left, right, length))
    return result


def count_changes(rows: Sequence[DiffRow]) -> dict[Change, int]:
    """Count the rows of each kind."""
    counts = Counter(row.change for row in rows)
    return {change: counts[change] for change in Change}


def _gap_rows(
    left: Function, right: Function, of_left: tuple[int, int], of_right: tuple[int, int]
) -> Iterator[DiffRow]:
    """Yield unmatched instructions: side by side if their kinds agree, else one by one."""
    left_index, right_index = of_left[0], of_right[0]
    while left_index < of_left[1] and right_index < of_right[1]:
        kind: Kind = left.instructions[left_index].kind
        if kind is not right.instructions[right_index].kind:
            break
        yield DiffRow(Change.CHANGED, left_index, right_index)
        left_index, right_index = left_index + 1, right_index + 1
    for index in range(left_index, of_left[1]):
        yield DiffRow(Change.REMOVED, index, None)
    for index in range(right_index, of_right[1]):
        yield DiffRow(Change.ADDED, None, index)


def _matching_runs(
    old: Sequence[str], new: Sequence[str], table_bits: int
) -> list[tuple[int, int, int]]:
    """Return equal runs (left, right, length) that ascend on both sides, in no order."""
    matches: list[tuple[int, int, int]] = []
    work = [(0, len(old), 0, len(new))]
    while work:
        low, high, below, above = work.pop()
        prefix = _common_length(old, new, low, below, min(high - low, above - below), 1)
        if prefix:
            matches.append((low, below, prefix))
            low, below = low + prefix, below + prefix
        suffix = _common_length(old, new, high - 1, above - 1, min(high - low, above - below), -1)
        if suffix:
            high, above = high - suffix, above - suffix
            matches.append((high, above, suffix))
        if (high - low) * (above - below) <= table_bits:
            blocks = LCSseq.editops(old[low:high], new[below:above]).as_matching_blocks()
            matches += [
                (low + block.a, below + block.b, block.size) for block in blocks if block.size
            ]
            continue
        for old_cut, new_cut in _cuts(old, new, (low, high), (below, above)):
            work.append((low, old_cut, below, new_cut))
            low, below = old_cut, new_cut
        work.append((low, high, below, above))
    return matches


def _common_length(
    old: Sequence[str], new: Sequence[str], old_start: int, new_start: int, most: int, step: int
) -> int:
    """Count how many lines agree from there on, forwards or backwards."""
    count = 0
    while count < most and old[old_start + step * count] == new[new_start + step * count]:
        count += 1
    return count


def _cuts(
    old: Sequence[str], new: Sequence[str], of_old: tuple[int, int], of_new: tuple[int, int]
) -> list[tuple[int, int]]:
    """Return where to cut both sides: at the anchors of the longest runs that have any, else
    halfway."""
    for run in _ANCHOR_RUNS:
        anchors = [
            pair
            for pair in _anchors(old, new, of_old, of_new, run)
            if pair != (of_old[0], of_new[0])
        ]
        if anchors:
            return anchors
    return [(sum(of_old) // 2, sum(of_new) // 2)]


def _anchors(
    old: Sequence[str],
    new: Sequence[str],
    of_old: tuple[int, int],
    of_new: tuple[int, int],
    run: int,
) -> list[tuple[int, int]]:
    """Return the positions of runs of lines that occur once on each side, in ascending order on
    both."""
    place_of_key = _unique(old, *of_old, run)
    right = _unique(new, *of_new, run)
    pairs = sorted((place, right[key]) for key, place in place_of_key.items() if key in right)
    return _longest_increasing(pairs)


def _unique(lines: Sequence[str], low: int, high: int, run: int) -> dict[Hashable, int]:
    place_of_key: dict[Hashable, int] = {}
    repeated = set()
    for index in range(low, high - run + 1):
        key = tuple(lines[index : index + run])
        if key in place_of_key:
            repeated.add(key)
        place_of_key[key] = index
    for key in repeated:
        del place_of_key[key]
    return place_of_key


def _longest_increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence whose second numbers ascend (patience sorting)."""
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
