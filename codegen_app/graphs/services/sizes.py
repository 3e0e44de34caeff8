"""The symbolic sizes of a graph."""

from __future__ import annotations

from collections.abc import Mapping

from codegen_app.graphs.models import Graph
from scheduler.errors import UserError


def checked_bindings(graph: Graph, bindings: Mapping[str, int]) -> dict[str, int]:
    """Return a size for every symbol of the graph, each within its bounds; raises ``UserError``."""
    for name in bindings:
        if name not in graph.symbols:
            symbols = ", ".join(graph.symbols) or "none"
            raise UserError(f"{graph} has no symbolic size {name!r}; it has: {symbols}")
    chosen = {name: bindings.get(name, info["hint"]) for name, info in graph.symbols.items()}
    for name, value in chosen.items():
        low, high = graph.symbols[name]["min"], graph.symbols[name]["max"]
        if value < low or (high is not None and value > high):
            bounds = f"{low} to {'any' if high is None else high}"
            raise UserError(f"{name}={value} is out of the bounds of {graph}: {bounds}")
    return chosen
