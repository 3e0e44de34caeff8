"""The list of tuning runs."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from codegen_app.forms.tables import TableForm
from codegen_app.selectors.pages.run_columns import COLUMNS
from codegen_app.selectors.pages.runs import run_list
from codegen_app.selectors.tables import table as made
from codegen_app.views.page import respond
from codegen_app.views.tables import wants_tsv, written


def tuning_runs(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """The latest runs, as a table takes them."""
    page, asks = run_list(), TableForm(request.GET, COLUMNS)
    table = made("runs", COLUMNS, page.runs, asks.asked)
    if wants_tsv(request):
        return written(table)
    return respond(
        request,
        "pages/runs.html",
        page,
        as_json=as_json,
        title="Tuning runs",
        table=table,
        table_address=asks,
    )
