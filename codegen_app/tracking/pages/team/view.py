"""The team page, and budgets: one, added, changed, removed."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from codegen_app.accounts import permissions
from codegen_app.tracking.models import Budget
from codegen_app.tracking.pages.team.form import BudgetForm, TeamForm
from codegen_app.tracking.pages.team.query import budget_page, team_page
from codegen_app.tracking.services import budgets as services
from codegen_app.web.page import Crumb, get_or_404, render_page, sentence
from codegen_app.web.require_permission import actor, require_permission
from scheduler.errors import UserError


def team(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """The reader's alerts and series, or those of ``?person=``, and all budgets."""
    return _team(request, as_json=as_json)


def budget(request: HttpRequest, pk: int, *, as_json: bool = False) -> HttpResponse:
    """One budget with its burn-down."""
    return _budget(request, pk, as_json=as_json)


@require_permission(permissions.TRIAGE)
@require_POST
def add_budget(request: HttpRequest) -> HttpResponse:
    form = BudgetForm(request.POST)
    row = _save(request, None, form)
    return _team(request, form=form) if row is None else redirect("budget", pk=row.pk)


@require_permission(permissions.TRIAGE)
@require_POST
def save_budget(request: HttpRequest, pk: int) -> HttpResponse:
    form = BudgetForm(request.POST)
    row = _save(request, get_or_404(f"budget {pk}", Budget.objects.get, pk=pk), form)
    return _budget(request, pk, form=form) if row is None else redirect("budget", pk=pk)


@require_permission(permissions.TRIAGE)
@require_POST
def remove_budget(request: HttpRequest, pk: int) -> HttpResponse:
    row = get_or_404(f"budget {pk}", Budget.objects.get, pk=pk)
    services.remove_budget(row, actor(request))
    messages.success(request, f"{row} was removed.")
    return redirect("team")


def _save(request: HttpRequest, row: Budget | None, form: BudgetForm) -> Budget | None:
    """Return the saved budget; None if the form is to be shown again, with its errors."""
    if not form.is_valid():
        return None
    try:
        saved = services.save_budget(row, form.draft(), actor(request))
    except UserError as error:
        form.add_error("name", sentence(str(error)))
        return None
    messages.success(request, f"{saved} was saved.")
    return saved


def _team(
    request: HttpRequest, *, as_json: bool = False, form: BudgetForm | None = None
) -> HttpResponse:
    request.path = reverse("team")  # also after an error
    address = TeamForm(request.GET)
    person = address.text("person").strip() or request.user.get_username()
    context: dict[str, Any] = {} if as_json else {"form": form or BudgetForm()}
    return render_page(
        request,
        "tracking/team.html",
        team_page(person),
        as_json=as_json,
        title="Team",
        address=address,
        status=200 if form is None else 422,
        **context,
    )


def _budget(
    request: HttpRequest, pk: int, *, as_json: bool = False, form: BudgetForm | None = None
) -> HttpResponse:
    request.path = reverse("budget", args=[pk])  # also after an error
    page = get_or_404(f"budget {pk}", budget_page, pk)
    context: dict[str, Any] = {}
    if not as_json:
        context["form"] = form or BudgetForm.from_budget(Budget.objects.get(pk=pk))
    return render_page(
        request,
        "tracking/budget.html",
        page,
        as_json=as_json,
        title=page.budget.name,
        stages=[Crumb(page.budget.name)],
        status=200 if form is None else 422,
        **context,
    )
