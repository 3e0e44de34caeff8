"""A soft cap of attention's scores, as source of its kernel for Hopper."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scheduler.codegen.attention import MAX_SHIFTED_CAP


@dataclass(frozen=True)
class CapText:
    """Maps scores to multiples of the cap, or to numbers (``whole``) if a mask is added to them.
    ``above_lowest``: by 1 + tanh, computed with powers of 2, with a ``slope`` for those."""

    value: str
    slope: str
    above_lowest: bool
    whole: bool

    @staticmethod
    def create(cap: float | None, scale: float, added: bool, in_powers: bool) -> CapText | None:
        """Create from an operation's cap and scale; ``in_powers``: numbers are exponents of 2."""
        if cap is None:
            return None
        above_lowest = cap <= MAX_SHIFTED_CAP
        slope = scale / cap * (-2 * math.log2(math.e) if above_lowest else 1)
        value = cap * (math.log2(math.e) if in_powers else 1)
        return CapText(repr(value), repr(slope), above_lowest, added)
