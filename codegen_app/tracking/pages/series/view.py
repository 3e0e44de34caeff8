"""The list of series."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from codegen_app.tracking.pages.history.form import SeriesForm
from codegen_app.tracking.pages.history.query import MAX_BESIDE
from codegen_app.tracking.pages.series.columns import COLUMNS
from codegen_app.tracking.pages.series.query import PERIODS, series_list, series_table
from codegen_app.web.forms.tables import TableForm
from codegen_app.web.table_view import render_table_page, wants_tsv
from codegen_app.web.tables import paged_table


def all_series(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """Series, filtered by words and values, as a table. ``?together=1&together=2`` redirects to the
    history of the first with the others in its chart."""
    address = SeriesForm(request.GET)
    together = address.cleaned_data.get("together") or []
    if together:
        first, *others = dict.fromkeys(together)
        beside = ",".join(map(str, others[:MAX_BESIDE]))
        return redirect(reverse("series", args=[first]) + (f"?with={beside}" if beside else ""))
    form = TableForm(request.GET, COLUMNS)
    if form.asked.is_arranged or wants_tsv(request):
        page, table = series_table(address.filters, form.asked)
    else:
        page = series_list(address.filters, address.cleaned_data.get("after"))
        table = paged_table("series", COLUMNS, page.rows, form.asked, page.found)
    return render_table_page(
        request,
        "tracking/series.html",
        page,
        table,
        form,
        as_json=as_json,
        title="Series",
        address=address,
        periods=PERIODS,
        most_together=MAX_BESIDE + 1,
    )
