"""Figures of several builds side by side, with their ratios to the first."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log2


@dataclass(frozen=True)
class FigureRow:
    """One figure of every side, None if a side has none. ``unit`` is µs, %, cycles or "" for
    others; ``texts`` are shown instead of the values if there are any."""

    name: str
    unit: str
    values: tuple[float | None, ...]
    texts: tuple[str, ...] = ()
    note: str = ""

    @property
    def title(self) -> str:
        """The displayed name."""
        return self.name.replace("_", " ")

    @property
    def ratios(self) -> tuple[float | None, ...]:
        """Each value over the first side's; None if either is missing or the first is 0."""
        first = self.values[0]
        return tuple(
            value / first if value is not None and first else None for value in self.values
        )

    @property
    def cells(self) -> tuple[tuple[str, float | None, float | None], ...]:
        """Text, value and ratio of each side."""
        texts = self.texts or ("",) * len(self.values)
        return tuple(zip(texts, self.values, self.ratios, strict=True))

    @property
    def differs(self) -> bool:
        """Whether any side differs from the first."""
        return len(set(self.texts or self.values)) > 1

    @property
    def change(self) -> float:
        """The largest change in powers of two, infinite from or to nothing; 0 without values."""
        if all(value is None for value in self.values):
            return 0.0
        return max(
            inf if not ratio else abs(log2(abs(ratio)))
            for value, ratio in zip(self.values, self.ratios, strict=True)
            if value != self.values[0] or ratio is not None
        )


@dataclass(frozen=True)
class FigureGroup:
    """Figures of one kind: time, pipes, waits, limits, resources, instructions."""

    title: str
    rows: tuple[FigureRow, ...]
    note: str = ""

    @property
    def changed(self) -> tuple[FigureRow, ...]:
        """The rows that differ, the largest change first."""
        rows = (row for row in self.rows if row.differs)
        return tuple(sorted(rows, key=lambda row: -row.change))

    @property
    def equal(self) -> tuple[FigureRow, ...]:
        """The rows that are equal on all sides."""
        return tuple(row for row in self.rows if not row.differs)
