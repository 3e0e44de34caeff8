"""Rules by patterns: the list, one rule, a dry run of either, and their changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from codegen_app.accounts import permissions
from codegen_app.tracking.models import PatternRule
from codegen_app.tracking.pages.rules.form import OwnersForm, RuleForm
from codegen_app.tracking.pages.rules.query import rule_list, rule_page
from codegen_app.tracking.rules import book, codeowners, trial
from codegen_app.web.forms.query import hidden_params
from codegen_app.web.page import Crumb, get_or_404, render_page, sentence
from codegen_app.web.require_permission import actor, require_permission
from scheduler.errors import UserError
from scheduler.track.patterns import parse_patterns

_APPLIED = "Workers apply it to the series now."


def rules(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """All rules; with a new one in the address (``?try=1&problem=gemm*&decides=thresholds``) its
    dry run."""
    return _render_rules(request, as_json=as_json)


def rule(request: HttpRequest, pk: int, *, as_json: bool = False) -> HttpResponse:
    """One rule; with an edited version in the address its dry run."""
    return _render_rule(request, pk, as_json=as_json)


@require_permission(permissions.TRIAGE)
@require_POST
def save_rule(request: HttpRequest) -> HttpResponse:
    """Add a rule, or replace the one of the field ``rule``."""
    form, pk = RuleForm(request.POST), request.POST.get("rule", "")
    edited = _get_rule(int(pk)) if pk.isdecimal() and len(pk) < 19 else None
    if not form.is_valid():
        return (
            _render_rules(request, form=form)
            if edited is None
            else _render_rule(request, edited.pk, form=form)
        )
    reason, by = request.POST.get("why", ""), actor(request)
    _attempt(request, lambda: book.save(form.draft(edited), reason, by), f"Saved. {_APPLIED}")
    return redirect("rules")


@require_permission(permissions.TRIAGE)
@require_POST
def move_rule(request: HttpRequest, pk: int) -> HttpResponse:
    """Move a rule to the place ``to`` of the list."""
    row, to, by = _get_rule(pk), request.POST.get("to", ""), actor(request)
    if to.isdecimal() and len(to) < 7:
        _attempt(request, lambda: book.move(row, int(to), by), f"Moved. {_APPLIED}")
    else:
        messages.error(request, "Position in the list: enter a number from 1 on.")
    return redirect("rules")


@require_permission(permissions.TRIAGE)
@require_POST
def remove_rule(request: HttpRequest, pk: int) -> HttpResponse:
    """Remove a rule with a reason."""
    row, reason, by = _get_rule(pk), request.POST.get("why", ""), actor(request)
    _attempt(request, lambda: book.remove(row, reason, by), f"Removed. {_APPLIED}")
    return redirect("rules")


@require_permission(permissions.TRIAGE)
@require_POST
def import_owners(request: HttpRequest) -> HttpResponse:
    """Show a CODEOWNERS file by line, or import it (``confirm=1``)."""
    form = OwnersForm(request.POST, request.FILES)
    if not form.is_valid():
        return _render_rules(request, owners_form=form)
    values = form.cleaned_data
    repository = parse_patterns(values).repository
    try:
        file = codeowners.read_owners(values["name"], repository, values["text"])
        if "confirm" not in request.POST:
            return _render_rules(request, owners_form=form, file=file)
        count = codeowners.import_owners(file, request.POST.get("why", ""), actor(request))
    except UserError as error:
        messages.error(request, sentence(str(error)))
        return _render_rules(request, owners_form=form)
    messages.success(request, f"{count} rules imported. Workers apply them to the series now.")
    return redirect("rules")


def _render_rules(
    request: HttpRequest,
    *,
    as_json: bool = False,
    form: RuleForm | None = None,
    owners_form: OwnersForm | None = None,
    file: codeowners.OwnersFile | None = None,
) -> HttpResponse:
    request.path = reverse("rules")  # also after an error
    page, trial_error = rule_list(), ""
    is_error = form is not None or (owners_form is not None and file is None)
    if form is None and "try" in request.GET:
        form = RuleForm(request.GET)
        rule_trial, trial_error = _trial(form, None)
        page = replace(page, trial=rule_trial)
    context: dict[str, Any] = {
        "form": form or RuleForm(),
        "trial_error": trial_error,
        "proposal_fields": hidden_params(request.GET, RuleForm.base_fields),
        "owners_form": owners_form or OwnersForm(),
        "owners_text": owners_form.cleaned_data["text"] if owners_form and file else "",
    }
    return render_page(
        request,
        "tracking/rules.html",
        replace(page, file=file),
        as_json=as_json,
        title="Rules",
        status=422 if is_error else 200,
        **({} if as_json else context),
    )


def _render_rule(
    request: HttpRequest, pk: int, *, as_json: bool = False, form: RuleForm | None = None
) -> HttpResponse:
    request.path = reverse("rule", args=[pk])  # also after an error
    page, trial_error = get_or_404(f"rule {pk}", rule_page, pk), ""
    row, is_error = _get_rule(pk), form is not None
    if form is None and "try" in request.GET:
        form = RuleForm(request.GET)
        rule_trial, trial_error = _trial(form, row)
        page = replace(page, trial=rule_trial)
    context: dict[str, Any] = {
        "form": form or RuleForm.from_rule(row),
        "trial_error": trial_error,
        "proposal_fields": hidden_params(request.GET, RuleForm.base_fields),
    }
    return render_page(
        request,
        "tracking/rule.html",
        page,
        as_json=as_json,
        title=f"Rule {page.rule.position}",
        stages=[Crumb(f"Rule {page.rule.position}")],
        status=422 if is_error else 200,
        **({} if as_json else context),
    )


def _trial(form: RuleForm, replaces: PatternRule | None) -> tuple[trial.RuleTrial | None, str]:
    """Return the dry run of a form, or why there is none; the form shows its own errors."""
    if not form.is_valid():
        return None, ""
    try:
        return trial.try_rule(form.draft(replaces)), ""
    except UserError as error:
        return None, sentence(str(error))


def _get_rule(pk: int) -> PatternRule:
    rows = PatternRule.objects.filter(removed_at=None).select_related("owner")
    return get_or_404(f"rule {pk}", rows.get, pk=pk)


def _attempt(request: HttpRequest, act: Callable[[], object], line: str) -> None:
    try:
        if act() is False:
            messages.warning(request, "Nothing changed.")
        else:
            messages.success(request, line)
    except UserError as error:
        messages.error(request, sentence(str(error)))
