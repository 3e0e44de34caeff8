"""Search, and the command palette, which queries while the user types."""

from __future__ import annotations

from dataclasses import asdict

from django.http import HttpRequest, HttpResponse, JsonResponse

from codegen_app.site.pages.search import query as selectors
from codegen_app.web.forms.query import PaletteForm, SearchForm
from codegen_app.web.page import render_page


def search(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """Everything whose name, digest, parameters or instructions contain ``?q=``."""
    address = SearchForm(request.GET)
    page = selectors.search(address.text("q"), with_people=request.user.is_authenticated)
    return render_page(
        request, "site/search.html", page, as_json=as_json, title="Search", address=address
    )


def palette(request: HttpRequest) -> HttpResponse:
    """A few hits of each kind for ``?q=`` and the actions for the page ``?at=``, as JSON."""
    address = PaletteForm(request.GET)
    results = selectors.palette(address.text("q"), address.text("at"), request.user)
    groups = [{**asdict(group), "count": group.count} for group in results.groups]
    response = JsonResponse({"query": results.query, "groups": groups})
    response.headers["Cache-Control"] = "no-store"
    return response
