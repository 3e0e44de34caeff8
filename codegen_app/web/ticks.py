"""Round numbers for the axes of pictures."""

from __future__ import annotations

import math
from collections.abc import Iterator

_TICKS = 4


def round_ticks(low: float, high: float) -> Iterator[float]:
    """Yield round numbers between two values, about ``_TICKS``."""
    rough = (high - low) / _TICKS
    if not rough > 0 or not math.isfinite(rough):
        return
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * m for m in (1, 2, 5, 10) if size * m >= rough)
    first = math.ceil(low / step)
    for number in range(first, math.floor(high / step) + 1):
        yield number * step
