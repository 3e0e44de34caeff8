"""The list of graphs, and one graph."""

from __future__ import annotations

from dataclasses import replace

from django.http import Http404, HttpRequest, HttpResponse

from codegen_app import codeview
from codegen_app.forms.times import TimesForm
from codegen_app.models import Graph
from codegen_app.selectors.pages.graph import GraphPage, graph_page
from codegen_app.selectors.pages.graphs import graph_list
from codegen_app.services import choices
from codegen_app.views.page import Crumb, changed, kept, respond
from scheduler.outcome import UserError

_TABS = (("kernels", "Scheduled nodes"), ("nodes", "Graph nodes"), ("fusion", "Fusion"))


def graphs(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """All graphs."""
    return respond(request, "pages/graphs.html", graph_list(), as_json=as_json, title="Graphs")


def graph(request: HttpRequest, pk: int, *, as_json: bool = False) -> HttpResponse:
    """One graph: the node graph beside a table; ``?view=`` says which table, ``?times=`` whose
    times are shown."""
    try:
        page = graph_page(pk, request.GET.get("times", ""))
    except Graph.DoesNotExist:
        raise Http404(f"there is no graph {pk}") from None
    tabs = dict([*_TABS, *([("wrapper", "Wrapper")] if page.wrapper else [])])
    asked = request.GET.get("view", "")
    view = asked if asked in tabs else "kernels"
    page, wrapper_error = _with_wrapper(page) if view == "wrapper" else (page, "")
    return respond(
        request,
        "pages/graph.html",
        page,
        as_json=as_json,
        title=page.name,
        stages=[Crumb(page.name)],
        tabs=[
            (text, changed(request, view="" if key == "kernels" else key), key == view)
            for key, text in tabs.items()
        ],
        view=view,
        times=TimesForm(request.GET, page.buckets),
        kept=kept(request, "view", "node"),
        selected=request.GET.get("node", ""),
        wrapper=codeview.plain(page.wrapper) if view == "wrapper" else "",
        wrapper_error=wrapper_error,
    )


def _with_wrapper(page: GraphPage) -> tuple[GraphPage, str]:
    """The page with the wrapper that calls what serves, or why there is none."""
    chosen = any(row.serving and row.serving.selected for row in page.scheduled)
    if not chosen or page.bucket is None or page.bucket.emulated:
        return page, ""
    try:
        text = choices.wrapper(
            Graph.objects.select_related("file").get(pk=page.id), page.bucket.name
        )
    except UserError as error:
        return page, str(error)
    return replace(page, wrapper=text), ""
