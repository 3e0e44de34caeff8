"""Shape buckets: a symbolic size tuned at several values, and the bucket that serves a size.

A bucket reaches from the previous one up to the value at which it was tuned; sizes beyond the last
one use the selection at the model's own sizes (or the requested ones).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scheduler.errors import UserError
from scheduler.ir.bindings import Bindings, check_bindings, parse_bindings
from scheduler.ir.graph import Guard, SymbolInfo
from scheduler.tuning.problems import TuningProblem


@dataclass(frozen=True)
class ShapeBucket:
    """Sizes up to ``at_most``, tuned at ``bindings``."""

    symbol: str
    at_most: int
    bindings: Mapping[str, int]


def parse_buckets(
    texts: Sequence[str],
    symbols: Mapping[str, SymbolInfo],
    usual: Bindings,
    guards: Sequence[Guard] = (),
) -> tuple[ShapeBucket, ...]:
    """Parse ``SYMBOL=16`` texts into buckets below the usual size, the smallest first.

    Raises ``UserError`` for an impossible symbol or size, for more than one symbol, and for a size
    that is not below the usual one.
    """
    sizes: set[tuple[str, int]] = set()
    for text in texts:
        sizes.update(parse_bindings([text], symbols).items())
    names = sorted({name for name, _ in sizes})
    if len(names) > 1:
        raise UserError(f"all buckets must be sizes of one symbol, not of {' and '.join(names)}")
    buckets = []
    for name, size in sorted(sizes):
        if size >= usual[name]:
            raise UserError(
                f"the bucket {name}={size} is not below {name}={usual[name]}, which covers all"
                f" larger sizes: set a larger {name}"
            )
        bindings = {**usual, name: size}
        check_bindings(bindings, symbols, guards)
        buckets.append(ShapeBucket(name, size, bindings))
    return tuple(buckets)


def unique_problems(problems: Iterable[TuningProblem]) -> tuple[TuningProblem, ...]:
    """Return the problems without those of a bucket whose sizes do not depend on the symbol."""
    seen: dict[str, TuningProblem] = {}
    for problem in problems:
        seen.setdefault(problem.key, problem)
    return tuple(seen.values())
