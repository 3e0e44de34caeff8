"""What bundles generate for a graph with its selected kernels, on the graph's page."""

from __future__ import annotations

from dataclasses import replace

from codegen_app.graphs.models import Graph
from codegen_app.graphs.pages.graph.query import GraphPage
from codegen_app.tuning.services.choices import graph_choices
from scheduler.bundle.writer import wrapper_of
from scheduler.errors import UserError


def with_generated_code(page: GraphPage, *, with_wrapper: bool) -> GraphPage:
    """Return the graph's page with what bundles generate for it, and the matching wrapper."""
    if page.bucket is None or page.bucket.emulated or not page.selected:
        return page  # defaults are used, and so is the wrapper from the preparation
    graph = Graph.objects.select_related("file").only("name", "targets", "file").get(pk=page.id)
    try:
        choices = graph_choices(graph, page.bucket.name)
        not_generated = choices.not_made()
        instead = {row.node: row.instead for row in not_generated if not row.sizes}
        rows = tuple(
            replace(row, serving=replace(row.serving, instead=instead[row.name]))
            if row.serving and row.name in instead
            else row
            for row in page.scheduled
        )
        page = replace(page, scheduled=rows, not_made=not_generated)
        if not with_wrapper:
            return page
        manifest = choices.generated().manifest()
        own_targets = tuple(graph.targets) or manifest.targets
        return replace(page, wrapper=wrapper_of(replace(manifest, targets=own_targets)))
    except FileNotFoundError:
        return replace(page, code_error="the imported file is missing from the storage")
    except UserError as error:
        return replace(page, code_error=str(error))
