"""What is asked of every kernel of ours beside its rate: of LDS, registers and stores."""

from __future__ import annotations

from collections.abc import Iterator

MOST_CONFLICT = 1.05
LEAST_STORED_BYTES = 8
MOST_NARROW = 0.02  # of what is stored: partial sums' few numbers a row


def missed(conflict: float, spills: int, narrow: float) -> Iterator[str]:
    """A line for each bar that is not reached. ``conflict`` is cycles of LDS over those without
    conflicts; ``spills`` registers that lie in memory; ``narrow`` the share of the stored bytes
    whose stores write fewer than 8 a lane."""
    if conflict > MOST_CONFLICT:
        yield f"LDS conflicts x{conflict:.2f}, x{MOST_CONFLICT:g} allowed"
    if spills:
        yield f"{spills} registers spilled"
    if narrow > MOST_NARROW:
        yield f"{narrow:.0%} of stored bytes by fewer than {LEAST_STORED_BYTES} at once"
