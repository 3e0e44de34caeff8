"""Shortens long loops: keeps a few of many equal iterations, and records how many each represents.

Waves of a block meet at barriers, so two iterations count as equal only if they are equal for all
waves of the block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from scheduler.isa.listing import Function

# Iterations kept: until the pipes have settled, those that are measured, and the last ones, which
# overlap with the code after the loop.
SETTLING_ITERATIONS, MEASURED_ITERATIONS, LAST_ITERATIONS = 3, 4, 2
_FEWEST_LEFT_OUT = 3

Indices = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Cut:
    """``left_out`` iterations between two positions of a shortened trace. They equal the
    ``measured`` ones from ``start`` to ``end``, also positions of the shortened trace."""

    start: int
    end: int
    measured: int
    left_out: int


@dataclass(frozen=True)
class ShortenedTrace:
    """A wave's trace without repeated iterations. ``kept`` are positions of the whole trace,
    ``weights`` how many executions each represents."""

    kept: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64]
    cuts: tuple[Cut, ...]


@dataclass
class _Removed:
    """Positions [start, end) of the whole trace; the iterations measured in their place."""

    start: int
    end: int
    measured_start: int
    measured_end: int
    left_out: int


def shorten(
    function: Function, waves: Sequence[Indices], barriers: frozenset[int]
) -> list[ShortenedTrace]:
    """Shorten the traces of one block's waves; ``barriers`` are the instructions at which they
    meet."""
    if len({len(wave) for wave in waves}) == 1 and all((w == waves[0]).all() for w in waves[1:]):
        removed = _cuts(function, waves[:1], barriers) * len(waves)
    else:
        removed = _cuts(function, waves, barriers)
    shortened = []
    for wave, removals in zip(waves, removed, strict=True):
        keep, weights = np.ones(len(wave), np.bool_), np.ones(len(wave), np.float64)
        for removal in removals:
            keep[removal.start : removal.end] = False
            represented = 1 + removal.left_out / MEASURED_ITERATIONS
            weights[removal.measured_start : removal.measured_end] *= represented
        kept = np.flatnonzero(keep)
        cuts = []
        for removal in removals:
            start, end = np.searchsorted(kept, [removal.measured_start, removal.measured_end])
            cuts.append(Cut(int(start), int(end), MEASURED_ITERATIONS, removal.left_out))
        shortened.append(ShortenedTrace(kept, weights[kept], tuple(cuts)))
    return shortened


def _cuts(
    function: Function, waves: Sequence[Indices], barriers: frozenset[int]
) -> list[list[_Removed]]:
    removed: list[list[_Removed]] = [[] for _ in waves]
    for loop in function.loops:  # outer ones first
        members = np.zeros(len(function.instructions), np.bool_)
        for number in loop.blocks:
            block = function.blocks[number]
            members[block.first : block.end] = True
        header = function.blocks[loop.header].first
        # For each wave and each time that it enters the loop: the starts of the iterations, and
        # the end.
        runs_by_wave: list[list[list[int]]] = []
        for wave in waves:
            inside = np.concatenate(([False], members[wave], [False])).astype(np.int8)
            edges = np.flatnonzero(np.diff(inside)).tolist()
            starts = np.flatnonzero(wave == header)
            runs = []
            for first, end in zip(edges[::2], edges[1::2], strict=True):
                low, high = np.searchsorted(starts, [first, end])
                if high > low:
                    runs.append([*starts[low:high].tolist(), end])
            runs_by_wave.append(runs)
        counts = [[len(run) for run in runs] for runs in runs_by_wave]
        if all(count == counts[0] for count in counts[1:]):
            groups = [list(range(len(waves)))]
        elif any(members[barrier] for barrier in barriers):
            continue
        else:
            groups = [[number] for number in range(len(waves))]
        for group in groups:
            _cut_runs(
                [waves[n] for n in group],
                [runs_by_wave[n] for n in group],
                [removed[n] for n in group],
            )
    return removed


def _cut_runs(
    waves: Sequence[Indices],
    runs_by_wave: Sequence[list[list[int]]],
    removed: Sequence[list[_Removed]],
) -> None:
    for entry in range(len(runs_by_wave[0])):
        starts = [runs[entry] for runs in runs_by_wave]
        if (
            len(starts[0]) - 1
            < SETTLING_ITERATIONS + MEASURED_ITERATIONS + LAST_ITERATIONS + _FEWEST_LEFT_OUT
        ):
            continue
        if any(removal.start <= starts[0][0] < removal.end for removal in removed[0]):
            continue
        alike = [
            tuple(
                wave[each[i] : each[i + 1]].tobytes()
                for wave, each in zip(waves, starts, strict=True)
            )
            for i in range(len(starts[0]) - 1)
        ]
        breaks = [i for i in range(1, len(alike)) if alike[i] != alike[i - 1]]
        for first, end in pairwise([0, *breaks, len(alike)]):
            left_out = end - first - SETTLING_ITERATIONS - MEASURED_ITERATIONS - LAST_ITERATIONS
            if left_out < _FEWEST_LEFT_OUT:
                continue
            for each, into in zip(starts, removed, strict=True):
                measured = first + SETTLING_ITERATIONS
                begin = measured + MEASURED_ITERATIONS
                into.append(
                    _Removed(
                        *(each[begin], each[begin + left_out], each[measured], each[begin]),
                        left_out,
                    )
                )
