"""The thresholds of one series: tried on its history, saved with a reason, removed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from codegen_app.accounts import permissions
from codegen_app.tracking.models import Baseline, Series
from codegen_app.tracking.pages.thresholds.form import (
    BaselineForm,
    ThresholdsForm,
    ThresholdsQueryForm,
    parse_reason,
)
from codegen_app.tracking.pages.thresholds.query import ThresholdsPage, thresholds_page
from codegen_app.tracking.services import thresholds as services
from codegen_app.web.page import Crumb, get_or_404, render_page, sentence
from codegen_app.web.require_permission import actor, require_permission
from scheduler.errors import UserError


@dataclass(frozen=True)
class ThresholdsTrial:
    """The current thresholds, and the result of a proposal in the address on the history."""

    settings: ThresholdsPage
    trial: services.Trial | None


def thresholds(request: HttpRequest, pk: int, *, as_json: bool = False) -> HttpResponse:
    """The current thresholds; with a proposal in the address (``?try=1&least_effect=2``) its dry
    run."""
    return _page(request, pk, as_json=as_json)


@require_permission(permissions.TRIAGE)
@require_POST
def save_thresholds(request: HttpRequest, pk: int) -> HttpResponse:
    """Save the proposal with a reason, or restore the defaults."""
    series, by = get_object_or_404(Series, pk=pk), actor(request)
    form, reason = ThresholdsForm(request.POST), parse_reason(request.POST)
    if "reset" in request.POST:
        _attempt(
            request,
            lambda: services.reset(series, reason, by),
            "Reset: the rules, or the defaults, are in effect.",
        )
    elif form.is_valid():
        proposed = form.proposed()
        _attempt(request, lambda: services.save(series, proposed, reason, by), "Saved.")
    else:
        return _page(request, pk, sent=form)
    return redirect("thresholds", pk=pk)


@require_permission(permissions.TRIAGE)
@require_POST
def add_baseline(request: HttpRequest, pk: int) -> HttpResponse:
    """Add a baseline: the level begins again."""
    series, by = get_object_or_404(Series, pk=pk), actor(request)
    form, reason = BaselineForm(request.POST), parse_reason(request.POST)
    if form.is_valid():
        at = form.cleaned_data["at"]
        line = f"Baseline added at {at:%Y-%m-%d %H:%M} UTC."
        _attempt(request, lambda: services.add_baseline(series, at, reason, by), line)
    else:
        messages.error(request, str(form.errors["at"][0]))
    return redirect("thresholds", pk=pk)


@require_permission(permissions.TRIAGE)
@require_POST
def remove_baseline(request: HttpRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(Baseline.objects.select_related("series"), pk=pk)
    if services.remove_baseline(row, actor(request)):
        messages.success(request, "Baseline removed. The series will be analyzed again.")
    else:
        messages.warning(request, "The baseline was already removed.")
    return redirect("thresholds", pk=row.series_id)


def _page(
    request: HttpRequest, pk: int, *, as_json: bool = False, sent: ThresholdsForm | None = None
) -> HttpResponse:
    request.path = reverse("thresholds", args=[pk])  # also after an error
    address = ThresholdsQueryForm(request.GET)
    page = get_or_404(f"series {pk}", thresholds_page, pk, address.number("baseline"))
    form, line = sent, ""
    trial = None
    if form is None and "try" in request.GET:
        form = ThresholdsForm(request.GET)
        if form.is_valid():
            trial, line = _trial(pk, form.proposed())
    elif form is None:
        rules = page.rules
        form = ThresholdsForm.from_settings(rules, page.at)
        if page.at is not None:
            proposed = services.Proposal(
                rules.least_effect, rules.muted, rules.stale_after, begins=(page.at,)
            )
            trial, line = _trial(pk, proposed)
    context: dict[str, Any] = {} if as_json else {"form": form, "line": line}
    return render_page(
        request,
        "tracking/thresholds.html",
        ThresholdsTrial(page, trial),
        as_json=as_json,
        title="Thresholds",
        stages=[
            Crumb(page.series.name, page.series.url),
            Crumb("Thresholds"),
        ],
        status=422 if sent is not None else 200,
        address=address,
        **context,
    )


def _trial(pk: int, proposed: services.Proposal) -> tuple[services.Trial | None, str]:
    try:
        return services.dry_run(Series.objects.get(pk=pk), proposed), ""
    except UserError as error:
        return None, str(error)


def _attempt(request: HttpRequest, act: Callable[[], object], line: str) -> None:
    try:
        act()
        messages.success(request, f"{line} The series will be analyzed again.")
    except UserError as error:
        messages.error(request, sentence(str(error)))
