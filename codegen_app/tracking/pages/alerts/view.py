"""Alerts: the list, one alert, and triage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from codegen_app.accounts import permissions
from codegen_app.tracking.alerting import triage as services
from codegen_app.tracking.models import AlertKind, AlertState, Relation
from codegen_app.tracking.pages.alert import query as one_alert
from codegen_app.tracking.pages.alert.actions_query import alert_actions
from codegen_app.tracking.pages.alerts.columns import COLUMNS
from codegen_app.tracking.pages.alerts.form import (
    ASSIGN,
    MINE,
    NOTE,
    UNLINK,
    AlertForm,
    AlertsForm,
    TriageForm,
    UndoForm,
)
from codegen_app.tracking.pages.alerts.query import alert_list, alert_table
from codegen_app.tracking.queries import alert_rows
from codegen_app.web.forms.tables import TableForm
from codegen_app.web.page import Crumb, get_or_404, render_page, sentence
from codegen_app.web.require_permission import actor, require_permission
from codegen_app.web.table_view import render_table_page, wants_tsv
from codegen_app.web.tables import paged_table
from scheduler.errors import UserError


def alerts(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """The list: open alerts unless the address says otherwise, with the table's parameters."""
    address, form = AlertsForm(request.GET), TableForm(request.GET, COLUMNS)
    narrowed = address.alert_filter()
    if form.asked.is_arranged or wants_tsv(request):
        page, table = alert_table(narrowed, form.asked, request.user)
    else:
        page = alert_list(narrowed, request.user)
        table = paged_table("alerts", COLUMNS, page.alerts, form.asked, page.found)
    return render_table_page(
        request,
        "tracking/alerts.html",
        page,
        table,
        form,
        as_json=as_json,
        title="Alerts",
        address=address,
        **({} if as_json else _controls(request)),
    )


def alert(request: HttpRequest, pk: int, *, as_json: bool = False) -> HttpResponse:
    """One alert with its changes and its events."""
    address = AlertForm(request.GET)
    page = get_or_404(f"alert {pk}", one_alert.alert_page, pk, address.number("start") or 0)
    context = {} if as_json else {**_controls(request), "again": alert_actions(pk)}
    return render_page(
        request,
        "tracking/alert.html",
        page,
        as_json=as_json,
        title=f"Alert {pk}",
        stages=[Crumb(f"#{pk}")],
        address=address,
        **context,
    )


@require_permission(permissions.TRIAGE)
@require_POST
def triage(request: HttpRequest) -> HttpResponse:
    """Apply a triage action to alerts, and return to the previous page."""
    form = TriageForm(request.POST)
    if form.is_valid():
        _attempt(request, lambda: _apply_triage(form, request))
    else:
        messages.error(request, form.line)
    return _back(request)


@require_permission(permissions.TRIAGE)
@require_POST
def undo_triage(request: HttpRequest) -> HttpResponse:
    key = UndoForm(request.POST).key()
    if key is None:
        messages.error(request, "There is nothing to undo.")
    else:
        _attempt(request, lambda: services.undo(key, actor(request)))
    return _back(request)


def _controls(request: HttpRequest) -> dict[str, Any]:
    """Return the context for users who may triage: people, and the action that can be undone."""
    people = alert_rows.triagers()
    may = request.user.has_perm(permissions.TRIAGE)
    return {
        "kinds": AlertKind.choices,
        "people": [(key, name) for key, (name, _) in people.items()],
        "undoable": alert_rows.last_undoable_action(actor(request)) if may else None,
        "back": request.get_full_path(),
    }


def _attempt(request: HttpRequest, act: Callable[[], services.TriageAction]) -> None:
    try:
        messages.success(request, sentence(act().line))
    except UserError as error:
        messages.error(request, sentence(str(error)))


def _apply_triage(form: TriageForm, request: HttpRequest) -> services.TriageAction:
    values, by = form.cleaned_data, actor(request)
    keys, action = values["alert"], values["do"]
    if action == ASSIGN:
        person = None
        if name := values["assignee"]:
            person = User.objects.filter(username=name, is_active=True).first()
            if person is None:
                raise UserError(f"account {name} does not exist")
        return services.assign(keys, person, by)
    if action == MINE:
        return services.assign(keys, by, by)
    if action == NOTE:
        return services.add_note(keys, values["note"], by)
    if action == UNLINK:
        return services.unlink(keys, by)
    if action in Relation.values:
        return services.link(keys, values["to"], Relation(action), by)
    return services.set_state(keys, AlertState(action), by, values["note"])


def _back(request: HttpRequest) -> HttpResponse:
    """Redirect to the page of the form, if it is on this site."""
    address = request.POST.get("back", "")
    ours = url_has_allowed_host_and_scheme(address, {request.get_host()})
    return redirect(address if ours and address.startswith("/") else reverse("alerts"))
