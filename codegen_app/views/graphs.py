"""The list of graphs."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from codegen_app.selectors.pages.graphs import graph_list
from codegen_app.views.page import respond


def graphs(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """All graphs."""
    return respond(request, "pages/graphs.html", graph_list(), as_json=as_json, title="Graphs")
