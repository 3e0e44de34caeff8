"""Search, and the list of kernels."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from codegen_app.selectors.pages.search import kernel_list
from codegen_app.selectors.pages.search import search as find
from codegen_app.views.page import respond


def search(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """Everything whose name or digest holds ``?q=``."""
    page = find(request.GET.get("q", ""))
    return respond(request, "pages/search.html", page, as_json=as_json, title="Search")


def kernels(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """Kernels by name; ``?filter=`` and ``?start=``."""
    start = request.GET.get("start", "")
    page = kernel_list(request.GET.get("filter", ""), int(start) if start.isdecimal() else 0)
    return respond(request, "pages/kernels.html", page, as_json=as_json, title="Kernels")
