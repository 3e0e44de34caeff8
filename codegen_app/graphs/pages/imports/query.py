"""The page that imports a model: accepted files and recent imports."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from codegen_app.graphs.models import Graph
from codegen_app.graphs.pages.graphs.query import GraphRow, graph_rows

_LATEST = 5


@dataclass(frozen=True)
class ImportPage:
    """Files that end with ``accepts``, of at most ``limit_bytes``; the newest graphs with their
    state."""

    accepts: str
    limit_bytes: int
    graphs: tuple[GraphRow, ...]


def import_page() -> ImportPage:
    """Return the accepted files and the newest graphs (7 queries)."""
    return ImportPage(
        accepts=".pt2",
        limit_bytes=settings.GRAPH_FILE_MAX_BYTES,
        graphs=graph_rows(Graph.objects.all()[:_LATEST]),
    )
