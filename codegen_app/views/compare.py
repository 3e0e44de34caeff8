"""Builds side by side."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from codegen_app import codeview
from codegen_app.models import Build
from codegen_app.selectors.pages.compare import MOST, builds_of, compare_page
from codegen_app.views.page import respond


def compare(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """``?build=…&build=…``: the address holds the whole comparison; ``&shown=`` says which one's
    texts. ``?kernel=…&kernel=…`` (and ``&target=``) leads to the builds of these kernels."""
    try:
        if "kernel" in request.GET:
            found = builds_of(_some(request, "kernel"), request.GET.get("target", ""))
            return redirect(f"{request.path}?{urlencode({'build': found}, doseq=True)}")
        builds = _some(request, "build")
        shown = request.GET.get("shown", "")
        if not all(build.isdecimal() for build in builds):
            raise Http404("a build is named by its number")
        page = compare_page(list(map(int, builds)), int(shown) if shown.isdecimal() else 1)
    except Build.DoesNotExist as error:
        raise Http404(str(error)) from None
    return respond(
        request,
        "pages/compare.html",
        page,
        as_json=as_json,
        title="Compare",
        source=codeview.diff(page.source),
        functions=[(function, codeview.diff(function.rows)) for function in page.functions],
    )


def _some(request: HttpRequest, name: str) -> list[str]:
    """Two or more values of a parameter, as many as fit beside one another."""
    values = request.GET.getlist(name)
    if not 2 <= len(values) <= MOST:
        raise Http404(f"compare takes two to {MOST} builds: ?{name}=…&{name}=…")
    return values
