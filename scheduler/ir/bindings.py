"""Concrete values for symbolic sizes: what a user asks for, and what a check should try."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler.ir.graph import SymbolInfo
from scheduler.ir.index.functions import is_unbacked
from scheduler.outcome import UserError

Bindings = dict[str, int]
_LARGEST_PRIME = 1 << 24  # that is looked for: no loop of a check is longer


def parse_bindings(texts: Sequence[str], symbols: Mapping[str, SymbolInfo]) -> Bindings:
    """``SYMBOL=128`` texts as bindings. ``UserError`` for a name or value that cannot be."""
    given: Bindings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not value.strip().lstrip("-").isdecimal():
            raise UserError(f"{text!r}: write SYMBOL=NUMBER, for example s0=128")
        given[name.strip()] = int(value)
    check_bindings(given, symbols)
    return given


def format_bindings(bindings: Mapping[str, int]) -> str:
    """``s0=16 s1=32``, by name, as ``parse_bindings`` takes them one by one."""
    return " ".join(f"{name}={value}" for name, value in sorted(bindings.items()))


def check_bindings(given: Mapping[str, int], symbols: Mapping[str, SymbolInfo]) -> None:
    """Raise ``UserError`` unless every binding names a symbol and lies within its range."""
    for name, value in given.items():
        if name not in symbols:
            known = ", ".join(sorted(symbols)) or "none: all its sizes are fixed"
            raise UserError(f"{name}={value}: the model's symbols are {known}")
        symbol = symbols[name]
        if value < symbol.minimum or (symbol.maximum is not None and value > symbol.maximum):
            upper = "" if symbol.maximum is None else f" to {symbol.maximum}"
            raise UserError(f"{name}={value}: its range is {symbol.minimum}{upper}")


def learn(bindings: Bindings, symbols: Mapping[str, SymbolInfo], found: Mapping[str, int]) -> None:
    """Note sizes that were read from data. ``UserError`` where one is none that the export allows:
    its kernels are made for those alone."""
    for name, value in found.items():
        symbol = symbols.get(name)
        most = None if symbol is None else symbol.maximum
        if symbol is not None and (value < symbol.minimum or (most is not None and value > most)):
            upper = " or more" if most is None else f" to {most}"
            raise UserError(
                f"the size {name}, which depends on data, is {value}: the model was exported for"
                f" {symbol.minimum}{upper}"
            )
        bindings[name] = value


def backed(bindings: Mapping[str, int]) -> Bindings:
    """Without the sizes that depend on data, for which only the data speak."""
    return {name: value for name, value in bindings.items() if not is_unbacked(name)}


def check_backed(given: Mapping[str, int]) -> None:
    """Raise ``UserError`` where a size is given that only the data can say."""
    for name in given:
        if is_unbacked(name):
            raise UserError(f"{name} depends on data: the model says it while it runs")


def hints(symbols: Mapping[str, SymbolInfo], given: Mapping[str, int] | None = None) -> Bindings:
    """Every symbol at its hint, where nothing else is given."""
    return {name: symbol.hint for name, symbol in symbols.items()} | dict(given or {})


def trial_bindings(symbols: Mapping[str, SymbolInfo]) -> tuple[Bindings, ...]:
    """What a check should try: the least that each range allows, a prime, and the hint.

    A prime divides by no tile, so that every edge is met. Without symbols there is one empty
    binding.
    """
    trials = (
        {name: symbol.minimum for name, symbol in symbols.items()},
        {name: _prime_within(symbol) for name, symbol in symbols.items()},
        hints(symbols),
    )
    unique: list[Bindings] = []
    for trial in trials:
        if trial not in unique:
            unique.append(trial)
    return tuple(unique)


def _prime_within(symbol: SymbolInfo) -> int:
    """The largest prime up to just above the hint; the least value where there is none."""
    top = min(symbol.hint + 2, _LARGEST_PRIME)
    if symbol.maximum is not None:
        top = min(top, symbol.maximum)
    for value in range(top, max(symbol.minimum, 2) - 1, -1):
        if value != symbol.hint and _is_prime(value):
            return value
    return symbol.minimum


def _is_prime(value: int) -> bool:
    return value > 1 and all(value % d for d in range(2, int(value**0.5) + 1))
