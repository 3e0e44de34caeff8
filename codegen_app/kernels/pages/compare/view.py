"""Builds side by side."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from codegen_app.kernels.models import Build
from codegen_app.kernels.pages.compare import diffview
from codegen_app.kernels.pages.compare.form import CompareForm
from codegen_app.kernels.pages.compare.query import builds_of_kernels, compare_page
from codegen_app.web.page import render_page


def compare(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """``?build=…&build=…``: the address holds the whole comparison; ``&shown=`` selects whose texts
    are shown. ``?kernel=…&kernel=…`` (and ``&target=``) redirects to the builds of these
    kernels."""
    address = CompareForm(request.GET)
    if "build" in address.errors or address.non_field_errors():
        raise Http404(address.lines[0])
    try:
        if address.cleaned_data["kernel"]:
            found = builds_of_kernels(address.cleaned_data["kernel"], address.text("target"))
            return redirect(f"{request.path}?{urlencode({'build': found}, doseq=True)}")
        page = compare_page(address.cleaned_data["build"], address.number("shown") or 1)
    except Build.DoesNotExist as error:
        raise Http404(str(error)) from None
    return render_page(
        request,
        "kernels/compare.html",
        page,
        as_json=as_json,
        title="Compare",
        address=address,
        source=diffview.diff(page.source, "the sources"),
        functions=[
            (function, diffview.diff(function.rows, function.left)) for function in page.functions
        ],
    )
