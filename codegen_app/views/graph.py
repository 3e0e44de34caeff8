"""One graph."""

from __future__ import annotations

from dataclasses import replace

from django.http import Http404, HttpRequest, HttpResponse

from codegen_app import codeview
from codegen_app.forms.address import GraphForm
from codegen_app.forms.times import TimesForm
from codegen_app.models import Graph
from codegen_app.selectors.pages.graph import GraphPage, graph_page
from codegen_app.services import choices
from codegen_app.views.page import Crumb, changed, kept, respond
from scheduler.outcome import UserError

_KERNELS, _WRAPPER = "kernels", "wrapper"
_TABS = {_KERNELS: "Scheduled nodes", "nodes": "Graph nodes", "fusion": "Fusion"}


def graph(request: HttpRequest, pk: int, *, as_json: bool = False) -> HttpResponse:
    """The node graph beside a table, or the wrapper; ``?times=`` says whose times are shown."""
    address = GraphForm(request.GET)
    try:
        page = graph_page(pk, address.text("times"))
    except Graph.DoesNotExist:
        raise Http404(f"there is no graph {pk}") from None
    tabs = _TABS | ({_WRAPPER: "Wrapper"} if page.wrapper else {})
    view = address.text("view") if address.text("view") in tabs else _KERNELS
    page, wrapper_error = _with_wrapper(page) if view == _WRAPPER else (page, "")
    return respond(
        request,
        "pages/graph.html",
        page,
        as_json=as_json,
        title=page.name,
        stages=[Crumb(page.name)],
        address=address,
        tabs=[
            (text, changed(request, view="" if key == _KERNELS else key), key == view)
            for key, text in tabs.items()
        ],
        view=view,
        times=TimesForm(request.GET, page.buckets),
        kept=kept(request, "view", "node"),
        selected=address.text("node"),
        wrapper=codeview.plain(page.wrapper) if view == _WRAPPER else "",
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
