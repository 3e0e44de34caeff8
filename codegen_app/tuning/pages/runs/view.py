"""The list of tuning runs."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from codegen_app.tuning.pages.runs.columns import COLUMNS
from codegen_app.tuning.pages.runs.query import run_list
from codegen_app.web.forms.tables import TableForm
from codegen_app.web.page import render_page
from codegen_app.web.table_view import tsv_response, wants_tsv
from codegen_app.web.tables import build_table as made


def tuning_runs(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """The latest runs, as a table."""
    page, asks = run_list(), TableForm(request.GET, COLUMNS)
    table = made("runs", COLUMNS, page.runs, asks.asked)
    if wants_tsv(request):
        return tsv_response(table)
    return render_page(
        request,
        "tuning/runs.html",
        page,
        as_json=as_json,
        title="Tuning runs",
        table=table,
        table_address=asks,
    )
