"""The glossary page."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from codegen_app.web.page import render_page
from codegen_app.web.pages.glossary.query import glossary as read


def glossary(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """Each term with its meaning."""
    return render_page(request, "web/glossary.html", read(), as_json=as_json, title="Glossary")
