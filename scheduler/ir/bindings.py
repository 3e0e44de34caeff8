"""Concrete values for symbolic sizes: given by a user, or to be tried by a check."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import sympy

from scheduler.errors import UserError
from scheduler.ir.graph import Expr, Guard, SymbolInfo
from scheduler.ir.guards import check_guards, guard_holds, guard_sizes
from scheduler.ir.index.functions import is_unbacked, symbol

Bindings = dict[str, int]
_MAX_TRIALS = 4096  # sizes tried in the search for some that satisfy the guards
_LARGEST_PRIME = 1 << 24  # searched for; limits the loops of a check


def parse_bindings(texts: Sequence[str], symbols: Mapping[str, SymbolInfo]) -> Bindings:
    """Parse ``SYMBOL=128`` texts. Raises ``UserError`` for an invalid name or value."""
    bindings: Bindings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not value.strip().lstrip("-").isdecimal():
            raise UserError(f"{text!r}: write SYMBOL=NUMBER, for example s0=128")
        bindings[name.strip()] = int(value)
    check_bindings(bindings, symbols)
    return bindings


def format_bindings(bindings: Mapping[str, int]) -> str:
    """Format as ``s0=16 s1=32``, sorted by name; ``parse_bindings`` reads each part."""
    return " ".join(f"{name}={value}" for name, value in sorted(bindings.items()))


def check_bindings(
    given: Mapping[str, int], symbols: Mapping[str, SymbolInfo], guards: Iterable[Guard] = ()
) -> None:
    """Raise ``UserError`` unless every binding names a symbol and is in its range, and all of them
    satisfy the guards."""
    for name, value in given.items():
        if name not in symbols:
            known = ", ".join(sorted(symbols)) or "none: all its sizes are fixed"
            raise UserError(f"{name}={value}: unknown symbol; the model's symbols are {known}")
        symbol = symbols[name]
        if value < symbol.minimum or (symbol.maximum is not None and value > symbol.maximum):
            upper = "" if symbol.maximum is None else f" to {symbol.maximum}"
            raise UserError(f"{name}={value}: out of range; the range is {symbol.minimum}{upper}")
    check_guards(guards, given)


def bind_unbacked(
    bindings: Bindings, symbols: Mapping[str, SymbolInfo], value_by_symbol: Mapping[str, int]
) -> None:
    """Add sizes that were read from data to ``bindings``. Raises ``UserError`` if one is outside
    the range of the export: kernels support only that range."""
    for name, value in value_by_symbol.items():
        symbol = symbols.get(name)
        maximum = None if symbol is None else symbol.maximum
        if symbol is not None and (
            value < symbol.minimum or (maximum is not None and value > maximum)
        ):
            upper = " or more" if maximum is None else f" to {maximum}"
            raise UserError(
                f"the data-dependent size {name} is {value}, but the model was exported "
                f"for {symbol.minimum}{upper}"
            )
        bindings[name] = value


def backed_bindings(bindings: Mapping[str, int]) -> Bindings:
    """Return the bindings without data-dependent sizes, which only the data determine."""
    return {name: value for name, value in bindings.items() if not is_unbacked(name)}


def check_backed(given: Mapping[str, int]) -> None:
    """Raise ``UserError`` if a data-dependent size is given."""
    for name in given:
        if is_unbacked(name):
            raise UserError(f"{name} depends on data: the model computes it at run time")


def hint_bindings(
    symbols: Mapping[str, SymbolInfo], given: Mapping[str, int] | None = None
) -> Bindings:
    """Return every symbol at its given value, else at its hint."""
    return {name: symbol.hint for name, symbol in symbols.items()} | dict(given or {})


@dataclass(frozen=True)
class SizeSource:
    """An input's dimension that determines a symbolic size: it equals ``factor * size + rest``."""

    size: str
    input: str
    axis: int
    factor: int
    rest: int

    def value(self, extent: int, symbols: Mapping[str, SymbolInfo]) -> int:
        """Return the size for a dimension of ``extent``. Raises ``UserError`` if it is invalid."""
        info = symbols[self.size]
        value, remainder = divmod(extent - self.rest, self.factor)
        if remainder or value < info.minimum or (info.maximum is not None and value > info.maximum):
            raise UserError(
                f"input {self.input}: dimension {self.axis} is {extent}, but the model was "
                f"exported for {self.extent_range(info)}"
            )
        return value

    def extent_range(self, info: SymbolInfo) -> str:
        """Return the dimension's valid values as text: ``4 to 200, in steps of 2``."""
        least = self.factor * info.minimum + self.rest
        most = None if info.maximum is None else self.factor * info.maximum + self.rest
        upper = " or more" if most is None else f" to {most}"
        return f"{least}{upper}" + (f", in steps of {self.factor}" if self.factor > 1 else "")


def size_sources(
    shapes: Mapping[str, Sequence[Expr]], symbols: Iterable[str]
) -> tuple[SizeSource, ...]:
    """Return the dimension that determines each size: the first that equals the size, else the
    first that is linear in it. Sizes that no dimension determines are omitted."""
    sources: dict[str, SizeSource] = {}
    dimensions = [(name, axis, e) for name, size in shapes.items() for axis, e in enumerate(size)]
    for name, axis, expr in sorted(dimensions, key=lambda dimension: not dimension[2].is_Symbol):
        for size in sorted(s.name for s in expr.free_symbols):
            factor = expr.coeff(symbol(size))
            rest = expr - factor * symbol(size)
            if factor.is_Integer and rest.is_Integer and factor > 0:
                sources.setdefault(size, SizeSource(size, name, axis, int(factor), int(rest)))
    return tuple(sources[size] for size in symbols if size in sources)


def trial_bindings(
    symbols: Mapping[str, SymbolInfo], guards: Sequence[Guard] = ()
) -> tuple[Bindings, ...]:
    """Return the bindings for a check: the minima, a prime, and the hints; if these violate a
    guard, the next sizes that satisfy all guards, if there are any nearby.

    A prime is no multiple of a tile, so that all edges are tested. Without symbols there is one
    empty binding.
    """
    trials = (
        {name: symbol.minimum for name, symbol in symbols.items()},
        {name: _prime_within(symbol) for name, symbol in symbols.items()},
        hint_bindings(symbols),
    )
    unique: list[Bindings] = []
    for trial in trials:
        allowed = next(_nearby(trial, symbols, guards), None)
        if allowed is not None and allowed not in unique:
            unique.append(allowed)
    return tuple(unique)


def _nearby(
    trial: Bindings, symbols: Mapping[str, SymbolInfo], guards: Sequence[Guard]
) -> Iterator[Bindings]:
    """Yield sizes, starting at a trial's, that are in their ranges and satisfy the guards."""
    names = sorted({name for guard in guards for name in guard_sizes(guard)})
    reach = int(_MAX_TRIALS ** (1 / max(1, len(names))))
    for steps in sorted(product(range(reach), repeat=len(names)), key=sum):
        candidate = trial | {n: trial[n] + step for n, step in zip(names, steps, strict=True)}
        is_in_range = all(
            info.maximum is None or candidate[name] <= info.maximum
            for name, info in symbols.items()
        )
        if is_in_range and all(guard_holds(guard, candidate) for guard in guards):
            yield candidate


def _prime_within(symbol: SymbolInfo) -> int:
    """Return the largest prime up to just above the hint, or the minimum if there is none."""
    top = min(symbol.hint + 2, _LARGEST_PRIME)
    if symbol.maximum is not None:
        top = min(top, symbol.maximum)
    for value in range(top, max(symbol.minimum, 2) - 1, -1):
        if value != symbol.hint and sympy.isprime(value):
            return value
    return symbol.minimum
