"""Finds how much less of a resource admits more waves."""

from __future__ import annotations

from collections.abc import Callable


def greatest_amount_with_more_waves(
    used: int, least: int, current_waves: int, waves: Callable[[int], int]
) -> int | None:
    """Return the greatest amount below ``used``, not below ``least``, that admits more waves than
    ``current_waves``, or None. The waves must not fall as the amount falls."""
    low, high = least, used  # waves(low) is more than current_waves, waves(high) is not
    if low >= used or waves(low) <= current_waves:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if waves(middle) > current_waves else (low, middle)
    return low
