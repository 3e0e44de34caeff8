"""One scheduled node."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse

from codegen_app import charts
from codegen_app.forms.address import NodeForm
from codegen_app.forms.axes import AxesForm
from codegen_app.forms.times import TimesForm
from codegen_app.models import TemplateNode
from codegen_app.selectors.pages.node import node_page
from codegen_app.views.page import Crumb, kept, respond


def template_node(request: HttpRequest, pk: int, *, as_json: bool = False) -> HttpResponse:
    """The problem, its origins and its candidates; ``?x=`` and ``?colour=`` set the chart,
    ``?times=`` says whose times are shown, ``?sizes=`` at which sizes its limits are."""
    address = NodeForm(request.GET)
    try:
        page = node_page(pk, address.number("sizes") or 0, address.text("times"))
    except TemplateNode.DoesNotExist:
        raise Http404(f"there is no scheduled node {pk}") from None
    names = charts.axes(page.candidates)
    axes = AxesForm(request.GET, names)
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
        times=TimesForm(request.GET, page.buckets),
        kept=kept(request, "x", "colour", "sizes"),
        axes=axes,
        axes_kept=kept(request, "times", "sizes"),
        parameters=names[1:],
        figure=charts.candidates(page.candidates, axes.axis_x, axes.axis_colour),
        limits=page.limits,
        roofline=charts.roofline(page.limits) if page.limits else None,
    )
