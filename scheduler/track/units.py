"""Formats figures of series for display: times in the unit that leaves one to three digits before
the point, all figures with about four digits."""

from __future__ import annotations

import math
from dataclasses import dataclass

_NS_PER_UNIT = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "seconds": 1e9}
_DISPLAY_UNITS = (("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0))
_THIN_SPACE = "\u202f"


@dataclass(frozen=True)
class Scale:
    """A figure times ``factor`` is in ``unit``."""

    factor: float
    unit: str

    def text(self, value: float) -> str:
        """Format without the unit: ``12.34``, with thousands separators."""
        return format_digits(value * self.factor)


def scale_of(unit: str, magnitude: float) -> Scale:
    """Return the scale for figures about as large as ``magnitude``; only units of time change."""
    ns_per_unit = _NS_PER_UNIT.get(unit)
    if ns_per_unit is None or not magnitude or not math.isfinite(magnitude):
        return Scale(1.0, unit)
    in_ns = _rounded(abs(magnitude) * ns_per_unit)
    display_unit, size = next(
        (row for row in _DISPLAY_UNITS if in_ns >= row[1]), _DISPLAY_UNITS[-1]
    )
    return Scale(ns_per_unit / size, display_unit)


def unit_factor(unit: str, to: str) -> float | None:
    """Return what to multiply figures in a unit with to have them in another; None if they are of
    different kinds."""
    if unit == to:
        return 1.0
    sizes = _NS_PER_UNIT.get(unit), _NS_PER_UNIT.get(to)
    return sizes[0] / sizes[1] if sizes[0] is not None and sizes[1] is not None else None


def format_value(value: float, unit: str) -> str:
    """Format with the unit: ``12.34 µs``."""
    scale = scale_of(unit, value)
    return f"{scale.text(value)} {scale.unit}".rstrip()


def format_ratio(ratio: float, decimals: int = 3) -> str:
    """Format after by before, with a multiplication sign."""
    return f"\N{MULTIPLICATION SIGN}{ratio:.{decimals}f}"


def format_digits(value: float) -> str:
    """Format about four digits, with thousands separators; very large and small ones with an
    exponent."""
    size = abs(value)
    if size and not 1e-4 <= size < 1e9:
        return f"{value:.4g}"
    decimals = 3 - math.floor(math.log10(_rounded(size))) if size else 0
    text = f"{value:,.{max(0, decimals)}f}".replace(",", _THIN_SPACE)
    return text.rstrip("0").rstrip(".") if value == int(value) and "." in text else text


def _rounded(value: float) -> float:
    """Round to the four digits that are shown, so that 999.97 ns is 1.000 µs and not 1000.0 ns."""
    return float(f"{value:.4g}")
