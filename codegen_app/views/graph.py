"""One graph."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from codegen_app import codeview
from codegen_app.forms.address import GraphForm
from codegen_app.forms.times import TimesForm
from codegen_app.selectors.pages.graph import graph_page
from codegen_app.services import choices
from codegen_app.views.page import Crumb, changed, found, respond

_TABS = {GraphForm.KERNELS: "Scheduled nodes", GraphForm.NODES: "Graph nodes"}
_TABS |= {GraphForm.FUSION: "Fusion", GraphForm.WRAPPER: "Wrapper"}


def graph(request: HttpRequest, pk: int, *, as_json: bool = False) -> HttpResponse:
    """The node graph beside a table, or the wrapper; ``?times=`` says whose times are shown."""
    address = GraphForm(request.GET)
    page = found(f"graph {pk}", graph_page, pk, address.text("times"))
    view = address.shown(has_wrapper=bool(page.wrapper))
    page = choices.as_generated(page, with_wrapper=view == GraphForm.WRAPPER)
    return respond(
        request,
        "pages/graph.html",
        page,
        as_json=as_json,
        title=page.name,
        stages=[Crumb(page.name)],
        address=address,
        tabs=_tabs(request, view, has_wrapper=bool(page.wrapper)),
        view=view,
        times=TimesForm(request.GET, page.buckets, "view", "node"),
        wrapper=codeview.plain(page.wrapper) if view == GraphForm.WRAPPER else "",
    )


def _tabs(request: HttpRequest, shown: str, *, has_wrapper: bool) -> list[tuple[str, str, bool]]:
    """Each table's title, its address, and whether it is the one that is shown."""
    return [
        (text, changed(request, view="" if key == GraphForm.KERNELS else key), key == shown)
        for key, text in _TABS.items()
        if has_wrapper or key != GraphForm.WRAPPER
    ]
