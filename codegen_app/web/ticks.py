"""Round numbers for the axes of pictures."""

from __future__ import annotations

import math
from collections.abc import Iterator

_TICKS = 4


def round_ticks(least: float, most: float) -> Iterator[float]:
    """Yield round numbers between two values, about ``_TICKS``."""
    rough = (most - least) / _TICKS
    if not rough > 0 or not math.isfinite(rough):
        return
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * m for m in (1, 2, 5, 10) if size * m >= rough)
    first = math.ceil(least / step)
    for number in range(first, math.floor(most / step) + 1):
        yield number * step
