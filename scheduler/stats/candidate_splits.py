"""Finds the splits at which values may change: those whose medians differ by the minimum effect.

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

_Indices: TypeAlias = npt.NDArray[np.int64]
_PADDING = np.array([np.inf])


def candidate_splits(
    logs: Array, splits: Sequence[int], max_before: int, effect: float
) -> list[int]:
    """Return the splits where the median of the values from there on and the median of at most
    ``max_before`` values before differ by ``effect`` or more."""
    if not splits:
        return []
    before, after = _windows(logs.size, tuple(splits), max_before)
    padded_logs = np.concatenate((logs, _PADDING))
    distances = np.abs(_medians(padded_logs, after) - _medians(padded_logs, before))
    return [
        split
        for split, is_candidate in zip(splits, (distances >= effect).tolist(), strict=True)
        if is_candidate
    ]


@dataclass(frozen=True)
class _Windows:
    """A row of indices for each split, padded with an index whose value is larger than any other.
    ``middle`` has, for each sorted row, the two columns that its median lies between."""

    indices: _Indices
    rows: _Indices
    middle: tuple[_Indices, _Indices]


def _medians(values: Array, windows: _Windows) -> Array:
    ordered = np.sort(values[windows.indices], axis=1)
    low, high = windows.middle
    medians: Array = (ordered[windows.rows, low] + ordered[windows.rows, high]) / 2
    return medians


@lru_cache(maxsize=256)  # a level that is long enough always has the same windows
def _windows(n: int, splits: tuple[int, ...], max_before: int) -> tuple[_Windows, _Windows]:
    split_indices = np.array(splits)
    first = np.maximum(split_indices - max_before, 0)
    return _padded_rows(first, split_indices, n), _padded_rows(
        split_indices, np.full_like(split_indices, n), n
    )


def _padded_rows(first: _Indices, end: _Indices, padding_index: int) -> _Windows:
    counts = end - first
    indices = first[:, None] + np.arange(counts.max())
    indices[indices >= end[:, None]] = padding_index
    return _Windows(indices, np.arange(counts.size), ((counts - 1) // 2, counts // 2))
