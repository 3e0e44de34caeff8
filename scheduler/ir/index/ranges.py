"""Ranges of the symbols in index expressions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import sympy

from scheduler.ir.graph import Expr, SymbolInfo
from scheduler.ir.index import polynomial as poly

if TYPE_CHECKING:
    from scheduler.ir.operations import Axis

#: Minimum and maximum; infinite if unbounded.
Interval: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Ranges:
    """The domain of a fact: every point of the loops, at every binding of the sizes.

    ``loops`` holds variables with their sizes: each runs from 0 to its size, exclusive. Indices
    read from memory are included. ``sizes`` holds the intervals of symbolic sizes by name. Other
    symbols have sympy's assumptions: nonnegative integers.
    """

    loops: tuple[tuple[sympy.Symbol, Expr], ...] = ()
    sizes: tuple[tuple[str, Interval], ...] = ()

    @staticmethod
    def from_symbols(symbols: Mapping[str, SymbolInfo]) -> Ranges:
        """Return the ranges of a graph's symbolic sizes that the export guarantees."""
        return Ranges(
            sizes=tuple(
                (name, (info.minimum, math.inf if info.maximum is None else info.maximum))
                for name, info in symbols.items()
            )
        )

    def over(self, axes: Iterable[Axis]) -> Ranges:
        """Return these ranges with additional loops."""
        return Ranges((*self.loops, *[(axis.var, axis.size) for axis in axes]), self.sizes)

    def with_loops(self, loops: Iterable[tuple[sympy.Symbol, Expr]]) -> Ranges:
        """Return these ranges with additional loops: variables with their sizes."""
        return Ranges((*self.loops, *loops), self.sizes)

    @cached_property
    def extents(self) -> Mapping[sympy.Symbol, Expr]:
        return dict(self.loops)

    @cached_property
    def intervals(self) -> Mapping[str, Interval]:
        """The interval of each symbolic size that has one."""
        return dict(self.sizes)

    @cached_property
    def lower_bounds(self) -> Mapping[Expr, int]:
        """Lower bounds of sizes, since every loop has at least one step: s // 2 - 3 >= 1 implies
        s // 2 >= 4. Without a step the domain is empty."""
        bounds: dict[Expr, int] = {}
        for _, size in self.loops:
            for part, value in _part_lower_bounds(size):
                bounds[part] = max(value, bounds.get(part, 0))
        return bounds


def _part_lower_bounds(size: Expr) -> Iterable[tuple[Expr, int]]:
    """Return the lower bounds of parts implied by ``factor * part * … + constant >= 1``."""
    terms = dict(poly.expand(size))
    constant = terms.pop((), 0)
    if len(terms) != 1:
        return []
    ((parts, factor),) = terms.items()
    if factor <= 0 or not all(part.is_nonnegative for part in parts):
        return []
    product = -((constant - 1) // factor)
    return [(part, product if len(parts) == 1 else min(product, 1)) for part in parts]


#: Only sympy's assumptions.
ANY_SIZES = Ranges()


def loop_ranges(*groups: Iterable[Axis]) -> Ranges:
    """Return the ranges of loops, without ranges of sizes."""
    return Ranges(tuple([(axis.var, axis.size) for group in groups for axis in group]))
