"""One run with live progress, and its cancel button."""

from __future__ import annotations

import json

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from codegen_app import charts
from codegen_app.access import permissions
from codegen_app.forms.address import RunForm
from codegen_app.forms.reasons import ReasonForm
from codegen_app.models import TuningRun
from codegen_app.selectors.pages.run import run_page
from codegen_app.selectors.pages.runs import is_open
from codegen_app.services import ledger
from codegen_app.views.page import Crumb, found, respond
from codegen_app.views.permissions import actor, needs


def tuning_run(
    request: HttpRequest, pk: int, *, as_json: bool = False, cancelling: ReasonForm | None = None
) -> HttpResponse:
    """One run; while it is open the page asks for its inner part again. ``cancelling`` is a form
    that was filled in wrongly.

    ``?show=all`` lists what a rule rejected or the budget left untried as well, ``?language=``
    candidates in one language alone.
    """
    address = RunForm(request.GET)
    page = found(f"tuning run {pk}", run_page, pk)
    everything = address.text("show") == "all"
    language = address.text("language")
    inner = bool(request.headers.get("HX-Request"))
    return respond(
        request,
        "partials/run/live.html" if inner else "pages/run.html",
        page,
        as_json=as_json,
        title=f"Run {pk} of {page.run.graph}",
        stages=[Crumb(page.run.graph, page.run.graph_url), Crumb(f"run {pk}")],
        status=422 if cancelling else 200,
        address=address,
        cancelling=cancelling or ReasonForm(),
        live=is_open(page.run.state),
        everything=everything,
        figure=json.dumps(charts.best_so_far(page.curves, page.kind)),
        language=language,
        ledger=[
            row
            for row in page.ledger
            if (everything or row.kernel) and language in ("", row.language)
        ],
    )


@needs(permissions.RETUNE)
@require_POST
def cancel_run(request: HttpRequest, pk: int) -> HttpResponse:
    """Stop a run; what was measured stays."""
    run = get_object_or_404(TuningRun, pk=pk)
    form = ReasonForm(request.POST)
    if not form.is_valid():
        request.path = run.get_absolute_url()  # whose links the page has
        return tuning_run(request, pk, cancelling=form)
    if not ledger.cancel(run, actor(request), form.cleaned_data["why"]):
        messages.info(request, "This run was over already.")
    return redirect(run)
