"""Builds side by side, and the page where they are picked."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from codegen_app.kernels.models import Build
from codegen_app.kernels.pages.compare import diffview
from codegen_app.kernels.pages.compare.choices import choices_page, compare_url
from codegen_app.kernels.pages.compare.query import MAX_SIDES, builds_of_kernels, compare_page
from codegen_app.web.forms.fields import RepeatedField
from codegen_app.web.forms.query import Number, QueryForm, Text
from codegen_app.web.page import render_page


class CompareForm(QueryForm):
    """Builds by their keys, or kernels by name (for one target); ``shown``: whose texts are shown;
    ``words`` of builds to add."""

    build = RepeatedField(keys=True)
    kernel = RepeatedField()
    target = Text()
    shown = Number()
    words = Text()

    def clean(self) -> dict[str, Any]:
        """Limit the sides to those that fit side by side."""
        cleaned = super().clean() or {}
        if max(len(cleaned.get(name, ())) for name in ("build", "kernel")) > MAX_SIDES:
            raise forms.ValidationError(f"Compare takes two to {MAX_SIDES} builds or kernels.")
        return cleaned


def compare(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """``?build=…&build=…``: the address holds the whole comparison; ``&shown=`` selects whose texts
    are shown. ``?kernel=…&kernel=…`` (and ``&target=``) redirects to the builds of these kernels.
    With fewer than two, or with ``words``, sides are picked."""
    address = CompareForm(request.GET)
    if "build" in address.errors or address.non_field_errors():
        raise Http404(address.lines[0])
    try:
        if address.cleaned_data["kernel"]:
            numbers = builds_of_kernels(address.cleaned_data["kernel"], address.text("target"))
            return redirect(compare_url(numbers))
        builds = address.cleaned_data["build"]
        if len(builds) < 2 or "words" in request.GET:
            choices = choices_page(address.text("words"), builds)
            return render_page(
                request,
                "kernels/compare_choices.html",
                choices,
                as_json=as_json,
                title="Compare",
                address=address,
            )
        page = compare_page(builds, address.number("shown") or 1)
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
