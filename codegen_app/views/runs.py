"""The list of tuning runs."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from codegen_app.selectors.pages.runs import run_list
from codegen_app.views.page import respond


def tuning_runs(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """The latest runs."""
    return respond(request, "pages/runs.html", run_list(), as_json=as_json, title="Tuning runs")
