"""The first page."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from codegen_app.site.pages.overview.query import overview as read
from codegen_app.tuning.pages.runs.query import is_open
from codegen_app.web.forms.query import OverviewForm
from codegen_app.web.page import render_page


def overview(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """Summary, recent graphs and runs, rejections with reasons, and workers."""
    address = OverviewForm(request.GET)
    page = read(address.number("graph"))
    states = [*(row.state for row in page.graphs), *(row.state for row in page.runs)]
    building = any(builds.open for row in page.graphs for builds in row.builds)
    live = building or any(map(is_open, states))
    template = "site/overview/body.html" if request.headers.get("HX-Request") else _TEMPLATE
    return render_page(
        request, template, page, as_json=as_json, title="Overview", live=live, address=address
    )


_TEMPLATE = "site/overview.html"
