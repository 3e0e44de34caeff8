"""One run with live progress, and its cancel button."""

from __future__ import annotations

import json
from dataclasses import replace

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from codegen_app.accounts import permissions
from codegen_app.tuning import charts
from codegen_app.tuning.models import TuningRun
from codegen_app.tuning.pages.explorer.builder import parameters_of
from codegen_app.tuning.pages.explorer.form import MODELLED, SECONDS, TRIED, ExplorerForm
from codegen_app.tuning.pages.explorer.sources import run_source
from codegen_app.tuning.pages.explorer.view import ROWS, ExplorerView, explorer_view, matching_rows
from codegen_app.tuning.pages.run.columns import columns
from codegen_app.tuning.pages.run.query import RunPage, run_page
from codegen_app.tuning.pages.runs.query import is_open
from codegen_app.tuning.services import ledger, selections
from codegen_app.web.forms.fields import ReasonForm, RepeatedField
from codegen_app.web.forms.query import RunForm
from codegen_app.web.forms.tables import TableForm
from codegen_app.web.page import Crumb, get_or_404
from codegen_app.web.require_permission import actor, require_permission
from codegen_app.web.table_view import render_table_page
from codegen_app.web.tables import build_table
from scheduler.errors import UserError


class PutBackForm(ReasonForm):
    """The run's selections to put back, by number, and the reason."""

    selection = RepeatedField(keys=True)


def tuning_run(
    request: HttpRequest,
    pk: int,
    *,
    as_json: bool = False,
    cancelling: ReasonForm | None = None,
    restoring: PutBackForm | None = None,
) -> HttpResponse:
    """One run; while it is open the page polls its inner part. The forms are invalid submissions.

    ``?show=all`` also lists candidates that a rule rejected or the budget left untried;
    ``?language=`` lists only candidates in one language. The ledger takes a table's parameters, its
    plots those of an explorer (``ExplorerForm``).
    """
    address = RunForm(request.GET)
    page = get_or_404(f"tuning run {pk}", run_page, pk)
    everything = address.text("show") == "all"
    language = address.text("language")
    inner = bool(request.headers.get("HX-Request"))
    explored = _explorer_view(request.GET, page, language)
    all_columns = columns(page, sorted({name for row in page.ledger for name in row.config}))
    form = TableForm(request.GET, all_columns)
    rows = (
        row for row in page.ledger if (everything or row.kernel) and language in ("", row.language)
    )
    table = build_table("ledger", all_columns, rows, form.asked, page=ROWS)
    response = render_table_page(
        request,
        "tuning/run/inner.html" if inner else "tuning/run.html",
        replace(page, explorer=explored.explorer if explored else None),
        table,
        form,
        as_json=as_json,
        title=f"Run {pk} of {page.run.graph}",
        stages=[Crumb(page.run.graph, page.run.graph_url), Crumb(f"run {pk}")],
        status=422 if cancelling or restoring else 200,
        address=address,
        cancelling=cancelling or ReasonForm(),
        restoring=restoring or PutBackForm(),
        live=is_open(page.run.state),
        everything=everything,
        figure=json.dumps(charts.best_so_far(page.curves, page.kind)),
        language=language,
        explored=explored,
        inner=inner,
        matching=matching_rows(table, "id"),
    )
    response.shows_time = is_open(page.run.state)  # type: ignore[attr-defined]
    return response


def _explorer_view(query: QueryDict, page: RunPage, language: str) -> ExplorerView | None:
    """Return the trials of the node in the address; None while there is no candidate."""
    rows = [row for row in page.ledger if language in ("", row.language) or not row.kernel]
    source = run_source(page, rows, query.get("of", ""))
    if source is None:
        return None
    parameters = parameters_of(source)
    axes = [TRIED, *([SECONDS] if any(trial.at_s for trial in source.trials) else [])]
    if page.kind != MODELLED and any(trial.modelled_us for trial in source.trials):
        axes.append(MODELLED)
    names = [parameter.name for parameter in parameters]
    return explorer_view(source, parameters, ExplorerForm(query, names, axes, nodes=source.nodes))


@require_permission(permissions.RETUNE)
@require_POST
def cancel_run(request: HttpRequest, pk: int) -> HttpResponse:
    """Cancel a run; its measurements are kept."""
    run = get_object_or_404(TuningRun, pk=pk)
    form = ReasonForm(request.POST)
    if not form.is_valid():
        request.path = run.get_absolute_url()  # the page's links use it
        return tuning_run(request, pk, cancelling=form)
    if not ledger.cancel(run, actor(request), form.cleaned_data["why"]):
        messages.info(request, "This run has already ended.")
    return redirect(run)


@require_permission(permissions.SELECT)
@require_POST
def put_back_run(request: HttpRequest, pk: int) -> HttpResponse:
    """Restore the kernels that a run replaced."""
    run = get_object_or_404(TuningRun, pk=pk)
    form = PutBackForm(request.POST)
    if form.is_valid():
        try:
            restored = selections.put_back(
                run, form.cleaned_data["selection"], actor(request), form.cleaned_data["why"]
            )
        except UserError as error:
            form.add_error(None, str(error))
        else:
            kernels = ", ".join(row.kernel.name for row in restored)
            messages.success(request, f"Selected again: {kernels}.")
            return redirect(run)
    request.path = run.get_absolute_url()  # the page's links use it
    return tuning_run(request, pk, restoring=form)
