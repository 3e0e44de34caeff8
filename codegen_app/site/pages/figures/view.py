"""The legend of the kinds of figures."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from codegen_app.site.pages.figures.query import figures_page
from codegen_app.web.page import render_page


def figures(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """Each kind of figure with its meaning, and where those of this site come from."""
    return render_page(
        request, "site/figures.html", figures_page(), as_json=as_json, title="Kinds of figures"
    )
