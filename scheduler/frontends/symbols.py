"""The symbols of a graph: their ranges and example values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from scheduler.errors import UserError
from scheduler.frontends.arguments import read_int
from scheduler.frontends.fields import Json, optional_field
from scheduler.ir.graph import Expr, Node, SymbolInfo
from scheduler.ir.index.functions import evaluate, is_unbacked
from scheduler.ir.random import (
    BLOCKS,
    BLOCKS_END,
    DEFAULT_BLOCKS,
    PHILOX_RAND,
    SEED,
    SEED_END,
    draws_random,
    has_target,
)

_UNBACKED_HINT = 64  # for a size that depends on data


def read_symbols(
    document: Json,
    names: Iterable[str],
    names_in_file: Mapping[str, str],
    hints: Mapping[Expr, int],
) -> dict[str, SymbolInfo]:
    """Read the ranges of the named symbols, some of which have another name in the file; ``hints``
    are the example values of expressions.

    Raises ``UserError`` naming the symbol if its range is not in the format.
    """
    ranges = optional_field(document, "range_constraints", dict, "model.json") or {}
    values = infer_hints(hints)
    symbols = {}
    for name in names:
        where = f"range of symbol {name!r}"
        name_in_file = names_in_file.get(name, name)
        bounds, hint = ranges.get(name_in_file, {}), values.get(name_in_file)
        if not isinstance(bounds, dict):
            raise UserError(f"{where}: not an object")
        least, most = bounds.get("min_val"), bounds.get("max_val")
        minimum = 0 if least is None else max(0, read_int(least, where))
        maximum = None if most is None else read_int(most, where)
        if is_unbacked(name) and hint is None:
            # Well below the maximum: several such sizes may have to fit into one tensor.
            hint = _UNBACKED_HINT if maximum is None else min(_UNBACKED_HINT, -(-maximum // 4))
            hint = max(minimum, hint)
        symbols[name] = SymbolInfo(name, minimum if hint is None else hint, minimum, maximum)
    return symbols


def infer_hints(hints: Mapping[Expr, int]) -> dict[str, int]:
    """Infer the example value of each symbol from example values of expressions: stated in the
    file, or solved from an expression that is linear in the symbol.

    A symbol that no expression determines is not in the result.
    """
    values = {expr.name: hint for expr, hint in hints.items() if expr.is_Symbol}
    for expr, hint in hints.items():
        unknown = [symbol.name for symbol in expr.free_symbols if symbol.name not in values]
        if len(unknown) != 1:
            continue
        name = unknown[0]
        try:  # as if it were linear; the solution is then checked
            at_0, at_1 = (evaluate(expr, {**values, name: value}) for value in (0, 1))
            value = (hint - at_0) // (at_1 - at_0)
            if evaluate(expr, {**values, name: value}) == hint:
                values[name] = value
        except (TypeError, ZeroDivisionError):
            continue
    return values


def random_symbols(nodes: Sequence[Node]) -> dict[str, SymbolInfo]:
    """The symbols of a graph that draws random numbers: the seed, and torch's blocks of threads."""
    symbols: dict[str, SymbolInfo] = {}
    if any(draws_random(node) for node in nodes):
        symbols[SEED] = SymbolInfo(SEED, hint=0, minimum=0, maximum=SEED_END - 1)
    if any(has_target(node, PHILOX_RAND) for node in nodes):
        symbols[BLOCKS] = SymbolInfo(BLOCKS, DEFAULT_BLOCKS, minimum=1, maximum=BLOCKS_END - 1)
    return symbols
