"""The list of series."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from codegen_app.forms.history import SeriesForm
from codegen_app.selectors.pages.history import MOST_BESIDE
from codegen_app.selectors.pages.series import PERIODS, series_list
from codegen_app.views.page import respond


def all_series(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """Series, narrowed by words and filters. ``?together=1&together=2`` leads to the history of the
    first with the others beside it."""
    address = SeriesForm(request.GET)
    together = address.cleaned_data.get("together") or []
    if together:
        first, *others = dict.fromkeys(together)
        beside = ",".join(map(str, others[:MOST_BESIDE]))
        return redirect(reverse("series", args=[first]) + (f"?with={beside}" if beside else ""))
    page = series_list(address.filters, address.cleaned_data.get("after"))
    return respond(
        request,
        "pages/series.html",
        page,
        as_json=as_json,
        title="Series",
        address=address,
        periods=PERIODS,
        most_together=MOST_BESIDE + 1,
    )
