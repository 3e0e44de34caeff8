"""The list of tuning runs, one run with live progress, and its cancel button."""

from __future__ import annotations

import json

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from codegen_app import charts
from codegen_app.models import TuningRun
from codegen_app.selectors import ledger
from codegen_app.selectors.pages.runs import is_open, run_list, run_page
from codegen_app.views.page import Crumb, respond


def tuning_runs(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """The latest runs."""
    return respond(request, "pages/runs.html", run_list(), as_json=as_json, title="Tuning runs")


def tuning_run(request: HttpRequest, pk: int, *, as_json: bool = False) -> HttpResponse:
    """One run; while it is open the page asks for its inner part again.

    ``?show=all`` lists what a rule refused or the budget left untried as well.
    """
    try:
        page = run_page(pk)
    except TuningRun.DoesNotExist:
        raise Http404(f"there is no tuning run {pk}") from None
    everything = request.GET.get("show") == "all"
    inner = bool(request.headers.get("HX-Request"))
    return respond(
        request,
        "partials/run/live.html" if inner else "pages/run.html",
        page,
        as_json=as_json,
        title=f"Run {pk} of {page.run.graph}",
        stages=[Crumb(page.run.graph, page.run.graph_url), Crumb(f"run {pk}")],
        live=is_open(page.run.state),
        everything=everything,
        figure=json.dumps(charts.best_so_far(page.curves, page.emulated)),
        ledger=[row for row in page.ledger if everything or row.kernel],
    )


def run_ledger(_: HttpRequest, pk: int) -> HttpResponse:
    """What became of every candidate, as JSON lines."""
    run = get_object_or_404(TuningRun.objects.select_related("graph"), pk=pk)
    lines = "".join(
        f"{json.dumps(line, ensure_ascii=False, default=str)}\n" for line in ledger.run_ledger(run)
    )
    return _file(lines, "application/jsonl", f"run-{pk}.ledger.jsonl")


def run_log(_: HttpRequest, pk: int) -> HttpResponse:
    """The run as users of Inductor know it: its AUTOTUNE log."""
    run = get_object_or_404(TuningRun, pk=pk)
    return _file(ledger.run_log(run), "text/plain", f"run-{pk}.autotune.log")


def _file(text: str, kind: str, name: str) -> HttpResponse:
    answer = HttpResponse(text, content_type=f"{kind}; charset=utf-8")
    answer.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer
