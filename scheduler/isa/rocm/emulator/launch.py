"""One launch of a device function, at concrete sizes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Launch:
    """``grid`` in blocks, ``block`` in threads (x, y, z); ``dynamic_lds_bytes`` in addition to what
    the code object requests. ``arguments`` are the device function's, in order: addresses and
    integers, floats as such, by-value structures as their bytes."""

    function: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_lds_bytes: int
    arguments: tuple[int | float | bytes, ...]

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads(self) -> int:
        """The threads of one block."""
        return self.block[0] * self.block[1] * self.block[2]
