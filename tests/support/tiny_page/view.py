"""The page of the number of graphs."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from codegen_app.web.page import render_page
from tests.support.tiny_page.query import graph_count


def tiny(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """How many graphs there are."""
    return render_page(request, "tiny.html", graph_count(), as_json=as_json, title="Graph count")
