"""Retune and remeasure from an alert."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from codegen_app.accounts import permissions
from codegen_app.tracking.alerting import retuning
from codegen_app.tracking.bisecting import walk
from codegen_app.tracking.models import (
    Alert,
    Bisection,
    BisectionMeans,
    MeasurementRequest,
    Remeasurement,
)
from codegen_app.tracking.pages.alert.actions_query import alert_actions
from codegen_app.tracking.pages.alert.bisect_form import BisectForm
from codegen_app.tracking.remeasuring import requests
from codegen_app.web.page import Crumb, get_or_404, render_page
from codegen_app.web.require_permission import actor, require_permission
from codegen_app.workers import work
from scheduler.errors import UserError


def actions(request: HttpRequest, pk: int, *, as_json: bool = False) -> HttpResponse:
    """The available actions and their results. The alert's page embeds the inner part, which polls
    while something is open."""
    page = get_or_404(f"alert {pk}", alert_actions, pk)
    inner = bool(request.headers.get("HX-Request"))
    return render_page(
        request,
        "tracking/alert/measured.html" if inner else "tracking/alert_actions.html",
        page,
        as_json=as_json,
        title=f"Measure again: {page.title}",
        stages=[Crumb(f"alert {pk}", f"/alerts/{pk}"), Crumb("measure again")],
        inner=inner,
    )


@require_permission(permissions.RETUNE)
@require_POST
def retune_alert(request: HttpRequest, pk: int) -> HttpResponse:
    """Start a run for each of the alert's problems without an open one."""
    try:
        runs = retuning.retune(get_object_or_404(Alert, pk=pk), actor(request))
    except UserError as error:
        messages.error(request, str(error))
    else:
        names = ", ".join(f"run {run.pk}" for run in runs)
        messages.success(request, f"{names}: {retuning.BUDGET_S:.0f} s each.")
    return redirect("alert_actions", pk)


@require_permission(permissions.RETUNE)
@require_POST
def remeasure_alert(request: HttpRequest, pk: int) -> HttpResponse:
    """Have both sides of the alert's changes remeasured, here or by their senders."""
    try:
        answers = requests.request_remeasurement(get_object_or_404(Alert, pk=pk), actor(request))
    except UserError as error:
        messages.error(request, f"Re-measurement not started: {error}")
    else:
        here = sum(answer.remeasurement is not None for answer in answers)
        asked = sum(answer.requests for answer in answers)
        parts = [f"{here} series queued for re-measurement here"] if here else []
        parts += [f"{asked} revisions requested from their senders"] if asked else []
        messages.success(request, f"{' and '.join(parts)}.")
    return redirect("alert_actions", pk)


@require_permission(permissions.RETUNE)
@require_POST
def bisect_alert(request: HttpRequest, pk: int) -> HttpResponse:
    """Start to bisect the largest change of an alert."""
    form = BisectForm(request.POST)
    try:
        if not form.is_valid():
            raise UserError("; ".join(f"{name}: {line[0]}" for name, line in form.errors.items()))
        bisection = walk.start(
            get_object_or_404(Alert, pk=pk),
            form.cleaned_data["limit"],
            actor(request),
            BisectionMeans(form.cleaned_data["means"]),
        )
    except UserError as error:
        messages.error(request, f"Bisection not started: {error}")
    else:
        if bisection.culprit is not None:
            messages.success(request, f"{bisection.culprit} made the change.")
        elif not bisection.is_open:
            messages.error(request, f"The bisection stopped: {bisection.reason}.")
        else:
            by_worker = bisection.means == BisectionMeans.WORKER
            done = "queued for a worker" if by_worker else "requested"
            messages.success(request, f"The first revision was {done}.")
    return redirect("alert_actions", pk)


@require_permission(permissions.RETUNE)
@require_POST
def cancel_bisection(request: HttpRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(Bisection, pk=pk)
    if not walk.cancel(row, actor(request)):
        messages.info(request, "The bisection has already finished.")
    return redirect("alert_actions", row.alert_id)


@require_permission(permissions.RETUNE)
@require_POST
def skip_revision(request: HttpRequest, pk: int) -> HttpResponse:
    """Skip a revision that a bisection requested: it cannot be measured."""
    rows = MeasurementRequest.objects.select_related("bisection")
    row = get_object_or_404(rows, pk=pk, bisection__isnull=False)
    assert row.bisection is not None
    try:
        walk.skip(row, request.POST.get("reason", ""), actor(request))
    except UserError as error:
        messages.error(request, str(error))
    return redirect("alert_actions", row.bisection.alert_id)


@require_permission(permissions.RETUNE)
@require_POST
def cancel_remeasurement(request: HttpRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(Remeasurement, pk=pk)
    if not work.cancel(row, actor(request)):
        messages.info(request, "The re-measurement has already finished.")
    return redirect("alert_actions", row.alert_id)


@require_permission(permissions.RETUNE)
@require_POST
def withdraw_requests(request: HttpRequest, pk: int) -> HttpResponse:
    requests.withdraw(get_object_or_404(Alert, pk=pk), actor(request))
    return redirect("alert_actions", pk)
