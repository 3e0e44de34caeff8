"""The page that shows every component in both themes."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from codegen_app.web.templatetags.nodes import GLYPHS

_STATES = ("queued", "running", "done", "rejected", "cancelled", "quarantined")


def components(request: HttpRequest) -> HttpResponse:
    """Every component, once in each theme."""
    context = {
        "title": "Components",
        "themes": ("light", "dark"),
        "states": _STATES,
        "kinds": tuple(GLYPHS),
    }
    return render(request, "web/components.html", context)
