"""The glossary page."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from codegen_app.selectors.pages.glossary import glossary as read
from codegen_app.views.page import render_page


def glossary(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """Each term with its meaning."""
    return render_page(request, "pages/glossary.html", read(), as_json=as_json, title="Glossary")
