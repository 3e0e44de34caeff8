"""The list of graphs, and one graph."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse

from codegen_app import codeview
from codegen_app.models import Graph
from codegen_app.selectors.pages.graph import graph_page
from codegen_app.selectors.pages.graphs import graph_list
from codegen_app.views.page import Crumb, respond

_TABS = (("kernels", "Scheduled nodes"), ("nodes", "Graph nodes"), ("fusion", "Fusion"))


def graphs(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """All graphs."""
    return respond(request, "pages/graphs.html", graph_list(), as_json=as_json, title="Graphs")


def graph(request: HttpRequest, pk: int, *, as_json: bool = False) -> HttpResponse:
    """One graph: the node graph beside a table; ``?view=`` says which table."""
    try:
        page = graph_page(pk)
    except Graph.DoesNotExist:
        raise Http404(f"there is no graph {pk}") from None
    tabs = [*_TABS, *([("wrapper", "Wrapper")] if page.wrapper else [])]
    view = request.GET.get("view", "kernels")
    return respond(
        request,
        "pages/graph.html",
        page,
        as_json=as_json,
        title=page.name,
        stages=[Crumb(page.name)],
        tabs=tabs,
        view=view if view in dict(tabs) else "kernels",
        selected=request.GET.get("node", ""),
        wrapper=codeview.plain(page.wrapper) if view == "wrapper" else "",
    )
