"""Withdraw points of series with a reason, and restore them."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from codegen_app.accounts import permissions
from codegen_app.tracking.models import Datum
from codegen_app.tracking.pages.thresholds.form import parse_reason
from codegen_app.tracking.services import withdrawals
from codegen_app.web.page import sentence
from codegen_app.web.require_permission import actor, require_permission
from scheduler.errors import UserError


@require_permission(permissions.TRIAGE)
@require_POST
def withdraw_point(request: HttpRequest, pk: int, datum: int) -> HttpResponse:
    """Withdraw a point: it no longer counts, and is kept with the reason."""
    row = get_object_or_404(Datum, pk=datum, series=pk)
    try:
        withdrawals.withdraw(row, parse_reason(request.POST), actor(request))
        messages.success(request, "Point withdrawn. The series will be analyzed again.")
    except UserError as error:
        messages.error(request, sentence(str(error)))
    return redirect(row)


@require_permission(permissions.TRIAGE)
@require_POST
def restore_point(request: HttpRequest, pk: int, datum: int) -> HttpResponse:
    """Restore a point: it is compared with others again."""
    row = get_object_or_404(Datum, pk=datum, series=pk)
    try:
        withdrawals.restore(row, actor(request))
        messages.success(request, "Point restored. The series will be analyzed again.")
    except UserError as error:
        messages.warning(request, sentence(str(error)))
    return redirect(row)
