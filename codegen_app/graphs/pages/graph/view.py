"""One graph."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse

from codegen_app.graphs.pages.graph.code import with_generated_code
from codegen_app.graphs.pages.graph.columns import NODES, scheduled_columns
from codegen_app.graphs.pages.graph.query import GraphPage, graph_page
from codegen_app.graphs.pages.times import TimesForm
from codegen_app.web import codelines
from codegen_app.web.addresses import replace_query
from codegen_app.web.forms.query import GraphForm
from codegen_app.web.forms.tables import TableForm
from codegen_app.web.page import Crumb, get_or_404, render_page
from codegen_app.web.table_view import tsv_response, wants_tsv
from codegen_app.web.tables import Table
from codegen_app.web.tables import build_table as made

_SHORT = {GraphForm.KERNELS: ""}
_RESET_TABLE = dict.fromkeys(("sort", "filter", "column"), "")  # another table has other columns
_TABS = {GraphForm.KERNELS: "Scheduled nodes", GraphForm.NODES: "Graph nodes"}
_TABS |= {GraphForm.FUSION: "Fusion", GraphForm.WRAPPER: "Wrapper"}


def graph(request: HttpRequest, pk: int, *, as_json: bool = False) -> HttpResponse:
    """The node graph beside a table, or the wrapper; ``?times=`` selects whose times are shown."""
    address = GraphForm(request.GET)
    page = get_or_404(f"graph {pk}", graph_page, pk, address.text("times"))
    view = address.view_name(has_wrapper=bool(page.wrapper))
    page = with_generated_code(page, with_wrapper=view == GraphForm.WRAPPER)
    table, asks = _table(request, page, view)
    if table is not None and wants_tsv(request):
        return tsv_response(table)
    return render_page(
        request,
        "graphs/graph.html",
        page,
        as_json=as_json,
        title=page.name,
        stages=[Crumb(page.name)],
        address=address,
        table=table,
        table_address=asks,
        tabs=_tabs(request, view, has_wrapper=bool(page.wrapper)),
        view=view,
        colour=address.text("colour") or GraphForm.KIND,
        colours=_colours(request),
        times=TimesForm(request.GET, page.buckets, "view", "scheduled", "node", "colour"),
        wrapper=codelines.highlight_python(page.wrapper) if view == GraphForm.WRAPPER else "",
    )


def _table(
    request: HttpRequest, page: GraphPage, view: str
) -> tuple[Table[Any] | None, TableForm | None]:
    """Return the table beside the drawing, as the address asks; None if a text is shown there."""
    if view == GraphForm.NODES:
        asks = TableForm(request.GET, NODES)
        return made("nodes", NODES, page.nodes, asks.asked), asks
    if view == GraphForm.KERNELS:
        columns = scheduled_columns(page)
        asks = TableForm(request.GET, columns)
        return made("scheduled", columns, page.scheduled, asks.asked), asks
    return None, None


def _tabs(request: HttpRequest, shown: str, *, has_wrapper: bool) -> list[tuple[str, str, bool]]:
    """Return each table's title, its address, and whether it is the displayed one."""
    return [
        (
            text,
            replace_query(request, view="" if key == GraphForm.KERNELS else key, **_RESET_TABLE),
            key == shown,
        )
        for key, text in _TABS.items()
        if has_wrapper or key != GraphForm.WRAPPER
    ]


def _colours(request: HttpRequest) -> list[tuple[str, str, str]]:
    """Return the options of the drawing's colours: key, title, address."""
    return [
        (GraphForm.KIND, "Kind", replace_query(request, colour="")),
        (GraphForm.TIME, "Time", replace_query(request, colour=GraphForm.TIME)),
    ]
