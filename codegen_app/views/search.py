"""Search."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from codegen_app.forms.address import SearchForm
from codegen_app.selectors.pages import search as selectors
from codegen_app.views.page import respond


def search(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """Everything whose name or digest holds ``?q=``."""
    address = SearchForm(request.GET)
    page = selectors.search(address.text("q"))
    return respond(
        request, "pages/search.html", page, as_json=as_json, title="Search", address=address
    )
