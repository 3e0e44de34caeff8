"""External kernels: upload one, show its modelled results, cancel it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from codegen_app.accounts import permissions
from codegen_app.kernels.models import ForeignKernel
from codegen_app.kernels.pages.external_kernel.form import UploadKernelForm
from codegen_app.kernels.pages.external_kernel.query import (
    external_kernel_page,
    external_kernels_page,
    result_files,
)
from codegen_app.kernels.pages.kernel import codeview, timelineview
from codegen_app.kernels.pages.kernel.codecolumns import listing_columns, widest_code
from codegen_app.kernels.services import external_kernels
from codegen_app.tuning.services import packing
from codegen_app.web.addresses import replace_query
from codegen_app.web.forms.query import ExternalKernelForm
from codegen_app.web.page import TEXT_FILE, Crumb, download, get_or_404, render_page
from codegen_app.web.require_permission import actor, require_permission
from codegen_app.web.server import bodies
from codegen_app.workers import work
from scheduler.cycles import report_json
from scheduler.errors import UserError


@require_permission(permissions.IMPORT)
def external_kernel_list(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """The upload form for a kernel and its launch, and the earlier kernels."""
    is_post = request.method == "POST"
    form = UploadKernelForm(request.POST, request.FILES) if is_post else UploadKernelForm()
    if is_post and form.is_valid():
        file, launch = form.cleaned_data["file"], form.cleaned_data["launch"]
        board = form.chosen()
        try:
            row = external_kernels.submit(file, file.name or "", launch, board, actor(request))
            return redirect(row)
        except UserError as error:
            form.add_error(None, str(error))
    return render_page(
        request,
        "kernels/external_kernels.html",
        external_kernels_page(),
        as_json=as_json,
        title="External kernels",
        status=422 if is_post else 200,
        form=form,
        action=bodies.ticket_url(request, "look"),
    )


def external_kernel(request: HttpRequest, pk: int, *, as_json: bool = False) -> HttpResponse:
    """One kernel; while it is open the page polls its inner part."""
    address = ExternalKernelForm(request.GET)
    page = get_or_404(f"kernel {pk}", external_kernel_page, pk, 0, address.number("at"))
    inner = bool(request.headers.get("HX-Request"))
    context: dict[str, Any] = {}
    if page.modelled is not None and not (as_json or inner):
        view, whole_url = page.modelled, replace_query(request, at="")
        context = {
            "modelled": view,
            "kernel": page.row.function,
            "whole": whole_url,
            "timeline": timelineview.timeline(view.timeline, whole_url) if view.timeline else None,
        }
        if page.listing is not None:
            context |= {
                "listing": codeview.whole_listing(page.listing, view),
                "columns": listing_columns(page.listing, view),
                "widest": widest_code(page.listing),
            }
    answer = render_page(
        request,
        "kernels/external_kernel/state.html" if inner else "kernels/external_kernel.html",
        page,
        as_json=as_json,
        title=page.row.name,
        stages=[Crumb(page.row.name)],
        address=address,
        may_cancel=packing.may_cancel(page.requested_by, request.user),
        **context,
    )
    if inner and not page.is_open:
        answer.headers["HX-Refresh"] = "true"  # the result can be shown now
    return answer


def external_listing(_request: HttpRequest, pk: int) -> HttpResponse:
    """The listing as a file."""
    text, _ = result_files(pk)
    if not text:
        raise Http404(f"kernel {pk} has no listing")
    return download(text, f"kernel-{pk}.s", TEXT_FILE)


def external_report(_request: HttpRequest, pk: int) -> HttpResponse:
    """The model's full report as a file."""
    _, report = result_files(pk)
    if report is None:
        raise Http404(f"kernel {pk} has no report")
    return HttpResponse(report_json.write(report), content_type="application/json")


@login_required
@require_POST
def cancel_external_kernel(request: HttpRequest, pk: int) -> HttpResponse:
    """Cancel the modelling: allowed for the requester and the site's staff."""
    row = get_object_or_404(ForeignKernel, pk=pk)
    if not packing.may_cancel(row.requested_by_id, request.user):
        raise PermissionDenied("Only the requester and staff can cancel this kernel.")
    if not work.cancel(row, actor(request)):
        messages.info(request, "This kernel was already finished.")
    return redirect(row)
