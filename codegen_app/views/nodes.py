"""One scheduled node."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse

from codegen_app import charts
from codegen_app.forms.times import TimesForm
from codegen_app.models import TemplateNode
from codegen_app.selectors.pages.node import node_page
from codegen_app.views.page import Crumb, kept, number, respond


def template_node(request: HttpRequest, pk: int, *, as_json: bool = False) -> HttpResponse:
    """The problem, its origins and its candidates; ``?x=`` and ``?colour=`` set the chart,
    ``?times=`` says whose times are shown, ``?sizes=`` at which sizes its limits are."""
    try:
        page = node_page(pk, number(request, "sizes") or 0, request.GET.get("times", ""))
    except TemplateNode.DoesNotExist:
        raise Http404(f"there is no scheduled node {pk}") from None
    axes = charts.axes(page.candidates)
    x = charts.chosen(request.GET.get("x"), axes)
    colour = charts.chosen(request.GET.get("colour"), axes, default="")
    return respond(
        request,
        "pages/node.html",
        page,
        as_json=as_json,
        title=f"{page.name} · {page.op}",
        stages=[Crumb(page.graph, page.graph_url), Crumb(f"{page.name} {page.op}")],
        previous=page.previous,
        next=page.next,
        times=TimesForm(request.GET, page.buckets),
        kept=kept(request, "x", "colour", "sizes"),
        axes=axes,
        parameters=axes[1:],
        x=x,
        colour=colour,
        figure=charts.candidates(page.candidates, x, colour),
        limits=page.limits,
        roofline=charts.roofline(page.limits) if page.limits else None,
    )
