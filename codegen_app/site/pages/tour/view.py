"""The steps of the tour."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from codegen_app.site.pages.tour.query import tour_stop
from codegen_app.web.forms.query import OptionalChoiceField, QueryForm
from codegen_app.web.tour import TOUR


class TourForm(QueryForm):
    """``back``: if the step has no page on this site, an earlier one is shown, not a later one."""

    back = OptionalChoiceField(("1",))


def tour(request: HttpRequest, step: int) -> HttpResponse:
    """Redirect to the page of a step, which shows the step's note; ``?back=1``."""
    if not 1 <= step <= len(TOUR):
        raise Http404(f"the tour has the steps 1 to {len(TOUR)}")
    number, address = tour_stop(step, backwards=bool(TourForm(request.GET).text("back")))
    separator = "&" if "?" in address else "?"
    return redirect(f"{address}{separator}{urlencode({'tour': number})}")
