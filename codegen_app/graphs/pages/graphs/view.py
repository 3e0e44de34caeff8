"""The list of graphs."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from codegen_app.graphs.pages.graph.columns import GRAPHS
from codegen_app.graphs.pages.graphs.query import graph_list
from codegen_app.web.forms.tables import TableForm
from codegen_app.web.page import render_page
from codegen_app.web.table_view import tsv_response, wants_tsv
from codegen_app.web.tables import build_table as made


def graphs(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """All graphs, as a table."""
    page, asks = graph_list(), TableForm(request.GET, GRAPHS)
    table = made("graphs", GRAPHS, page.graphs, asks.asked)
    if wants_tsv(request):
        return tsv_response(table)
    return render_page(
        request,
        "graphs/graphs.html",
        page,
        as_json=as_json,
        title="Graphs",
        table=table,
        table_address=asks,
    )
