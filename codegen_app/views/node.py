"""One scheduled node."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from codegen_app import charts
from codegen_app.forms.address import NodeForm
from codegen_app.forms.axes import AxesForm
from codegen_app.forms.times import TimesForm
from codegen_app.selectors.pages.node import node_page
from codegen_app.views.page import Crumb, found, respond

_OTHERS = ("times", "sizes", "language")


def template_node(request: HttpRequest, pk: int, *, as_json: bool = False) -> HttpResponse:
    """The problem, its origins and its candidates; ``?x=``, ``?y=`` and ``?colour=`` set the chart,
    ``?times=`` says whose times are shown, ``?sizes=`` at which sizes its limits are."""
    address = NodeForm(request.GET)
    sizes, bucket = address.number("sizes") or 0, address.text("times")
    page = found(f"scheduled node {pk}", node_page, pk, sizes, bucket)
    language = address.text("language")
    shown = tuple(row for row in page.candidates if language in ("", row.language))
    times = charts.times(shown)
    axes = AxesForm(request.GET, charts.axes(shown), *_OTHERS, times=times)
    return respond(
        request,
        "pages/node.html",
        page,
        as_json=as_json,
        title=f"{page.name} · {page.op}",
        stages=[Crumb(page.graph, page.graph_url), Crumb(f"{page.name} {page.op}")],
        address=address,
        previous=page.previous,
        next=page.next,
        times=TimesForm(request.GET, page.buckets, "x", "y", "colour", "sizes", "language"),
        axes=axes,
        candidates=shown,
        language=language,
        figure=charts.candidates(
            shown,
            axes.axis_x,
            axes.axis_colour,
            axes.axis_y,
            page.modelled_at.where if page.modelled_at else "",
        ),
        roofline=charts.roofline(page.limits),
    )
