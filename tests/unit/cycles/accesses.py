"""Accesses of a wave, made by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.isa.rocm.emulator.trace import Access


def access(addresses: Sequence[int], width: int, lanes: Sequence[int] | None = None) -> Access:
    """``addresses`` of the lanes 0, 1, 2 … or of those named."""
    numbers = range(len(addresses)) if lanes is None else lanes
    return Access(np.array(addresses, np.int64), np.array(numbers, np.int64), width)
