"""The list of tuning runs."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from codegen_app.tuning.pages.runs.columns import COLUMNS
from codegen_app.tuning.pages.runs.query import run_list
from codegen_app.web.forms.tables import TableForm
from codegen_app.web.table_view import render_table_page
from codegen_app.web.tables import build_table


def tuning_runs(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """The latest runs, as a table."""
    page, form = run_list(), TableForm(request.GET, COLUMNS)
    table = build_table("runs", COLUMNS, page.runs, form.asked)
    return render_table_page(
        request,
        "tuning/runs.html",
        page,
        table,
        form,
        as_json=as_json,
        title="Tuning runs",
    )
