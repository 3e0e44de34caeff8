"""Finds how much less of a resource admits more waves."""

from __future__ import annotations

from collections.abc import Callable


def greatest_smaller(have: int, least: int, now: int, waves: Callable[[int], int]) -> int | None:
    """Return the greatest amount below ``have``, not below ``least``, with more than ``now`` waves,
    or None. The waves must not fall as the amount falls."""
    low, high = least, have  # waves(low) is more than now, waves(high) is not
    if low >= have or waves(low) <= now:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if waves(middle) > now else (low, middle)
    return low
