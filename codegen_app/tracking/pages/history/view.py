"""The history of a series: its page, its chart's data, and its points, which can be withdrawn with
a reason and restored."""

from __future__ import annotations

from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from codegen_app.accounts import embedding, permissions
from codegen_app.tracking.models import Annotation, Datum
from codegen_app.tracking.pages.history.branches import ALL_BRANCHES
from codegen_app.tracking.pages.history.chart import change_chart, encode_chart, history_chart
from codegen_app.tracking.pages.history.form import (
    LINEAR,
    LOG,
    RELATIVE,
    REVISION,
    TIME,
    HistoryForm,
)
from codegen_app.tracking.pages.history.point import point_page
from codegen_app.tracking.pages.history.query import history_page
from codegen_app.tracking.pages.thresholds.form import parse_reason
from codegen_app.tracking.services import point_notes, withdrawals
from codegen_app.web.addresses import absolute_url
from codegen_app.web.page import Crumb, get_or_404, render_page, sentence
from codegen_app.web.require_permission import actor, require_permission
from scheduler.errors import UserError


def series(request: HttpRequest, pk: int, *, as_json: bool = False) -> HttpResponse:
    """A series. ``?with=3,5`` shows others in its chart; ``?x=`` and ``?scale=`` set the axes;
    ``?branch=`` adds the points of a branch."""
    address = HistoryForm(request.GET)
    beside = [key for key in address.beside if key != pk]
    page = get_or_404(f"series {pk}", history_page, pk, beside)
    chosen = {
        "with": ",".join(str(other.head.id) for other in page.beside),
        "branch": address.text("branch"),
    }
    return render_page(
        request,
        "tracking/history.html",
        page,
        as_json=as_json,
        title=page.head.name,
        stages=[Crumb(page.head.problem)],
        address=address,
        points_query=urlencode({name: value for name, value in chosen.items() if value}),
        branch=address.text("branch"),
        all_branches=ALL_BRANCHES,
        scales=(LINEAR, LOG, RELATIVE),
        axes=(TIME, REVISION),
        embed_root=absolute_url(page.head.url) if settings.SITE_URL else "",
        embed_key=embedding.series_key(pk),
    )


def series_points(request: HttpRequest, pk: int) -> HttpResponse:
    """Columns for the chart, as JSON without spaces: it is the largest response of a history."""
    address = HistoryForm(request.GET)
    change = address.number("change")
    if change:
        chart = get_or_404(f"change {change}", change_chart, change)
    else:
        keys = [pk, *(key for key in address.beside if key != pk)]
        until = address.cleaned_data.get("until")
        chart = get_or_404(f"series {pk}", history_chart, keys, until, address.text("branch"))
    return HttpResponse(encode_chart(chart), content_type="application/json")


def series_point(
    request: HttpRequest, pk: int, datum: int, *, as_json: bool = False
) -> HttpResponse:
    """A point; without a frame when embedded in the history's page."""
    page = get_or_404(f"point {datum} of series {pk}", point_page, pk, datum)
    inner = bool(request.headers.get("HX-Request"))
    return render_page(
        request,
        "tracking/history/point.html" if inner else "tracking/point.html",
        page,
        as_json=as_json,
        title=f"{page.reading.revision} of {page.series.name}",
        stages=[
            Crumb(page.series.problem, page.series.url),
            Crumb(page.reading.revision),
        ],
    )


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


@require_permission(permissions.TRIAGE)
@require_POST
def annotate_point(request: HttpRequest, pk: int, datum: int) -> HttpResponse:
    """Add a note at a point."""
    row = get_object_or_404(Datum, pk=datum, series=pk)
    try:
        point_notes.annotate(row, request.POST.get("text", ""), actor(request))
        messages.success(request, "Note added.")
    except UserError as error:
        messages.error(request, sentence(str(error)))
    return redirect(row)


@require_permission(permissions.TRIAGE)
@require_POST
def remove_annotation(request: HttpRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(Annotation.objects.select_related("datum"), pk=pk)
    if point_notes.remove(row, actor(request)):
        messages.success(request, "Note removed.")
    else:
        messages.warning(request, "The note was already removed.")
    return redirect(row.datum)
