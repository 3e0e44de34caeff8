"""Finds the splits at which values may change: those whose medians differ by the least effect.

At nearly all splits the medians already rule a change out. All splits of a level are examined
together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from scheduler.stats.reference import Array

_Places: TypeAlias = npt.NDArray[np.int64]
_BESIDE = np.array([np.inf])


def candidate_splits(
    logs: Array, splits: Sequence[int], most_before: int, effect: float
) -> list[int]:
    """Return the splits where the median of the values from there on and the median of at most
    ``most_before`` values before differ by ``effect`` or more."""
    if not splits:
        return []
    before, after = _windows(logs.size, tuple(splits), most_before)
    beyond = np.concatenate((logs, _BESIDE))
    distances = np.abs(_medians(beyond, after) - _medians(beyond, before))
    return [split for split, far in zip(splits, (distances >= effect).tolist(), strict=True) if far]


@dataclass(frozen=True)
class _Windows:
    """A row of indices for each split, padded with an index whose value is larger than any other.
    ``middle`` has, for each sorted row, the two columns that its median lies between."""

    places: _Places
    rows: _Places
    middle: tuple[_Places, _Places]


def _medians(values: Array, windows: _Windows) -> Array:
    ordered = np.sort(values[windows.places], axis=1)
    low, high = windows.middle
    medians: Array = (ordered[windows.rows, low] + ordered[windows.rows, high]) / 2
    return medians


@lru_cache(maxsize=256)  # a level that is long enough always has the same windows
def _windows(n: int, splits: tuple[int, ...], most_before: int) -> tuple[_Windows, _Windows]:
    at = np.array(splits)
    first = np.maximum(at - most_before, 0)
    return _padded_rows(first, at, n), _padded_rows(at, np.full_like(at, n), n)


def _padded_rows(first: _Places, end: _Places, beside: int) -> _Windows:
    counts = end - first
    indices = first[:, None] + np.arange(counts.max())
    indices[indices >= end[:, None]] = beside
    return _Windows(indices, np.arange(counts.size), ((counts - 1) // 2, counts // 2))
