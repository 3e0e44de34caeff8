"""The number of graphs."""

from __future__ import annotations

from dataclasses import dataclass

from codegen_app.graphs.models import Graph


@dataclass(frozen=True)
class GraphCount:
    """How many graphs there are."""

    graphs: int


def graph_count() -> GraphCount:
    """Count the graphs (1 query)."""
    return GraphCount(Graph.objects.count())
