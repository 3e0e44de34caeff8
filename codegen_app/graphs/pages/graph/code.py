"""What bundles generate for a graph with its selected kernels, on the graph's page."""

from __future__ import annotations

from dataclasses import replace

from codegen_app.graphs.models import Graph
from codegen_app.graphs.pages.graph.query import GraphPage
from codegen_app.tuning.services.choices import Choices, NotGeneratedRow, graph_choices
from scheduler.bundle.writer import wrapper_of
from scheduler.errors import UserError


def with_generated_code(page: GraphPage, *, with_wrapper: bool) -> GraphPage:
    """Return the graph's page with what bundles generate for it, and the matching wrapper."""
    if page.bucket is None or page.bucket.emulated or not page.selected:
        return page  # defaults are used, and so is the wrapper from the preparation
    graph = Graph.objects.select_related("file").only("name", "targets", "file").get(pk=page.id)
    try:
        chosen = graph_choices(graph, page.bucket.name)
        page = _with_not_generated(page, chosen.not_made())
        return replace(page, wrapper=_wrapper(graph, chosen)) if with_wrapper else page
    except FileNotFoundError:
        return replace(page, code_error="the imported file is missing from the storage")
    except UserError as error:
        return replace(page, code_error=str(error))


def _wrapper(graph: Graph, chosen: Choices) -> str:
    """Return ``wrapper.py`` for the graph's own targets."""
    manifest = chosen.generated().manifest()
    return wrapper_of(replace(manifest, targets=tuple(graph.targets) or manifest.targets))


def _with_not_generated(page: GraphPage, not_made: tuple[NotGeneratedRow, ...]) -> GraphPage:
    """Return the page with these selected kernels marked as no longer generated."""
    instead = {one.node: one.instead for one in not_made if not one.sizes}
    rows = tuple(
        replace(row, serving=replace(row.serving, instead=instead[row.name]))
        if row.serving and row.name in instead
        else row
        for row in page.scheduled
    )
    return replace(page, scheduled=rows, not_made=not_made)
