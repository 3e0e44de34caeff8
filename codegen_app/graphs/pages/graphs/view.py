"""The list of graphs."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from codegen_app.graphs.pages.graph.columns import GRAPHS
from codegen_app.graphs.pages.graphs.query import graph_list
from codegen_app.web.forms.tables import TableForm
from codegen_app.web.table_view import render_table_page
from codegen_app.web.tables import build_table


def graphs(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """All graphs, as a table."""
    page, form = graph_list(), TableForm(request.GET, GRAPHS)
    table = build_table("graphs", GRAPHS, page.graphs, form.asked)
    return render_table_page(
        request, "graphs/graphs.html", page, table, form, as_json=as_json, title="Graphs"
    )
