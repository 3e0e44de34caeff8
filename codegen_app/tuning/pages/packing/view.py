"""Bundles that a worker packs: request one, follow its progress, cancel it."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from codegen_app.graphs.models import Graph
from codegen_app.kernels.models import KernelUse, Packing
from codegen_app.tuning.pages.packing.query import packing_page
from codegen_app.tuning.services import bundles, packing
from codegen_app.tuning.services.bundles import BundleRequest
from codegen_app.web.forms.query import PackForm
from codegen_app.web.page import Crumb, get_or_404, render_page
from codegen_app.web.require_permission import actor
from codegen_app.workers import work
from scheduler.errors import UserError


def pack(request: HttpRequest, pk: int) -> HttpResponse:
    """The contents of a graph's bundle (or of the kernel ``?use=`` at one of its nodes), and the
    form that requests it, which needs an account."""
    graph = get_object_or_404(Graph.objects.select_related("file"), pk=pk)
    try:
        form = PackForm(request.GET)
        use = form.number("use")
        if use is None:
            requested = bundles.graph_bundle(graph, form.text("times"))
        else:
            uses = KernelUse.objects.select_related("kernel", "template_node__graph__file")
            row = get_object_or_404(uses, pk=use, template_node__graph=graph)
            requested = bundles.kernel_bundle(row)
        if request.method == "POST":
            return _ask(request, requested)
    except UserError as error:
        messages.error(request, str(error))
        return redirect(graph)
    existing = packing.find_packing(requested)
    if existing is not None and existing.is_open:
        return redirect(existing)
    context = {
        "title": f"Bundle of {graph.name}",
        "stages": [Crumb(graph.name, graph.get_absolute_url()), Crumb("bundle")],
        "requested": requested,
        "subject": requested.use.kernel if requested.use else graph,
        "kept_days": settings.KEEP_BUNDLES_DAYS,
    }
    return render(request, "tuning/pack.html", context)


@login_required
def _ask(request: HttpRequest, requested: BundleRequest) -> HttpResponse:
    return redirect(packing.request_packing(requested, actor(request)))


def packing_state(request: HttpRequest, pk: int, *, as_json: bool = False) -> HttpResponse:
    """One packing; while it is open the page polls its inner part."""
    page = get_or_404(f"packing {pk}", packing_page, pk)
    inner = bool(request.headers.get("HX-Request"))
    return render_page(
        request,
        "tuning/packing/state.html" if inner else "tuning/packing.html",
        page,
        as_json=as_json,
        title=f"Bundle of {page.name}",
        stages=[Crumb(page.graph, page.graph_url), Crumb("bundle")],
        may_cancel=packing.may_cancel(page.requested_by_id, request.user),
    )


@login_required
@require_POST
def cancel_packing(request: HttpRequest, pk: int) -> HttpResponse:
    """Cancel a packing: allowed for the requester and the site's staff."""
    row = get_object_or_404(Packing, pk=pk)
    if not packing.may_cancel(row.requested_by_id, request.user):
        raise PermissionDenied("Only the requester and staff can cancel this bundle.")
    if not work.cancel(row, actor(request)):
        messages.info(request, "This bundle was already finished.")
    return redirect(row)
