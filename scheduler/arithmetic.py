"""Whole numbers."""

from __future__ import annotations


def ceil_div(value: int, divisor: int) -> int:
    """How many of ``divisor`` cover ``value``."""
    return -(-value // divisor)


def round_up(value: int, multiple: int) -> int:
    """The least multiple that is not below ``value``."""
    return ceil_div(value, multiple) * multiple
