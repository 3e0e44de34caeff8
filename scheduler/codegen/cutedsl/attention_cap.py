"""A soft cap of attention's scores, as texts of its kernel for Hopper."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scheduler.codegen.attention import MAX_SHIFTED_CAP


@dataclass(frozen=True)
class CapText:
    """Scores become multiples of the cap, or numbers (``whole``) where a mask is added to them.
    ``above_lowest``: by 1 + tanh, which powers of 2 make, with a ``slope`` for those."""

    value: str
    slope: str
    above_lowest: bool
    whole: bool

    @staticmethod
    def create(cap: float | None, scale: float, added: bool, in_powers: bool) -> CapText | None:
        """Of an operation's cap and scale; ``in_powers``: numbers are exponents of 2."""
        if cap is None:
            return None
        above_lowest = cap <= MAX_SHIFTED_CAP
        slope = scale / cap * (-2 * math.log2(math.e) if above_lowest else 1)
        value = cap * (math.log2(math.e) if in_powers else 1)
        return CapText(repr(value), repr(slope), above_lowest, added)
