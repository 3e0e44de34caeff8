"""``/api/v1/rules`` and ``/api/v1/budgets``: rules by patterns, read and changed; budgets, read."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest
from ninja import Router

from codegen_app.site.api.checks import (
    OPTIONAL_KEY,
    READ,
    REFUSALS,
    ROW_REFUSALS,
    TRIAGE,
    NotFoundError,
    check_parameters,
    find_account,
    run_once,
    triager,
)
from codegen_app.tracking.api_rule_schemas import (
    BudgetsList,
    Patterns,
    RuleItem,
    RulePosition,
    RuleProposal,
    RulesList,
    RuleTrialAnswer,
)
from codegen_app.tracking.api_schemas import Problem, Reason
from codegen_app.tracking.models import Budget, PatternRule
from codegen_app.tracking.queries.budget_values import budget_rows
from codegen_app.tracking.rules import book
from codegen_app.tracking.rules.resolution import has_unapplied_rules
from codegen_app.tracking.rules.trial import try_rule
from codegen_app.web.addresses import absolute_url
from codegen_app.web.row import username
from scheduler.results.points import fields
from scheduler.track.patterns import FACT_NAMES, MAX_CHARACTERS, SeriesPatterns, parse_patterns

router = Router(tags=["rules"])


@router.get(
    "/rules",
    url_name="api_rules",
    auth=READ,
    response={200: RulesList, **REFUSALS},
    summary="List the rules",
)
def list_rules(request: HttpRequest) -> dict[str, Any]:
    """List the rules by patterns in their order: the first that matches a series counts."""
    check_parameters(request, ())
    rows = PatternRule.objects.filter(removed_at=None).select_related("owner", "changed_by")
    return {
        "rules": [_rule(row) for row in rows.order_by("position", "pk")],
        "unfinished": has_unapplied_rules(),
    }


@router.post(
    "/rules",
    auth=TRIAGE,
    response={200: RuleItem, **REFUSALS, 400: Problem, 409: Problem},
    summary="Add a rule",
    openapi_extra=OPTIONAL_KEY,
)
def add_rule(request: HttpRequest, body: RuleProposal) -> dict[str, Any]:
    """Add a rule; workers then apply it to the series. The owner of the token needs the permission
    to triage alerts, as for all changes of rules."""
    check_parameters(request, ())
    by = triager(request)
    reason = fields.as_text(body.reason, "reason", 500)
    return run_once(request, lambda: _rule(book.save(_draft(body), reason, by)))


@router.post(
    "/rules/try",
    url_name="api_try_rule",
    auth=TRIAGE,
    response={200: RuleTrialAnswer, **REFUSALS},
    summary="Try a rule",
)
def try_proposal(request: HttpRequest, body: RuleProposal) -> dict[str, Any]:
    """Return what a rule would do if it was added: a dry run, nothing is stored."""
    check_parameters(request, ())
    triager(request)
    trial = try_rule(_draft(body))
    names = ("matching", "decided", "owned", "affected", "muted", "unmuted", "gone", "new")
    return {
        **{name: getattr(trial, name) for name in (*names, "compared")},
        "tried": [
            {
                "series": row.head.id,
                "name": row.head.name,
                "gone": row.gone,
                "new": row.new,
                "kept": row.kept,
            }
            for row in trial.tried
        ],
    }


@router.post(
    "/rules/{int:pk}",
    url_name="api_edit_rule",
    auth=TRIAGE,
    response={200: RuleItem, **ROW_REFUSALS},
    summary="Replace a rule",
)
def edit_rule(request: HttpRequest, pk: int, body: RuleProposal) -> dict[str, Any]:
    """Replace a rule by an edited one, which has another number. Without “position”, it keeps its
    place. A rule that was replaced already does not exist (404)."""
    check_parameters(request, ())
    by, replaced = triager(request), _get_rule(pk)
    draft = _draft(body, replaced)
    return _rule(book.save(draft, fields.as_text(body.reason, "reason", 500), by))


@router.post(
    "/rules/{int:pk}/move",
    url_name="api_move_rule",
    auth=TRIAGE,
    response={200: RuleItem, **ROW_REFUSALS},
    summary="Move a rule",
)
def move_rule(request: HttpRequest, pk: int, body: RulePosition) -> dict[str, Any]:
    """Move a rule to another position in the list. Moving it there again has no effect."""
    check_parameters(request, ())
    by = triager(request)
    book.move(_get_rule(pk), body.position, by)
    return _rule(_get_rule(pk))


@router.post(
    "/rules/{int:pk}/remove",
    url_name="api_remove_rule",
    auth=TRIAGE,
    response={200: RuleItem, **ROW_REFUSALS},
    summary="Remove a rule",
)
def remove_rule(request: HttpRequest, pk: int, body: Reason) -> dict[str, Any]:
    """Remove a rule, and return it. The next rule that matches then counts for its series."""
    check_parameters(request, ())
    by, row = triager(request), _get_rule(pk)
    book.remove(row, fields.as_text(body.reason, "reason", 500), by)
    return _rule(row)


@router.get(
    "/budgets",
    url_name="api_budgets",
    auth=READ,
    response={200: BudgetsList, **REFUSALS},
    summary="List the budgets",
)
def list_budgets(request: HttpRequest) -> dict[str, Any]:
    """List the budgets with their current values, computed from the levels of their series."""
    check_parameters(request, ())
    rows = list(Budget.objects.select_related("changed_by"))
    names = (
        *("id", "name", "statistic", "limit", "unit", "due", "value", "reason", "met"),
        *("n_series", "generated", "emulated"),
    )
    return {
        "budgets": [
            {
                **{name: getattr(value, name) for name in names},
                **{name: getattr(row, name) for name in FACT_NAMES},
                "url": absolute_url(value.url),
            }
            for row, value in zip(rows, budget_rows(rows), strict=True)
        ]
    }


def _get_rule(pk: int) -> PatternRule:
    rows = PatternRule.objects.filter(removed_at=None).select_related("owner", "changed_by")
    row = rows.filter(pk=pk).first() if pk < 2**63 else None
    if row is None:
        raise NotFoundError(f"rule {pk} does not exist")
    return row


def _draft(body: RuleProposal, replaces: PatternRule | None = None) -> book.RuleDraft:
    """Return the proposal as the rule book needs it. Raises ``UserError``."""
    position = body.position
    if position is None and replaces is not None:
        position = replaces.position
    chosen = body.thresholds
    return book.RuleDraft(
        patterns=_patterns(body),
        sets_thresholds=chosen is not None,
        least_effect=chosen.least_effect if chosen else None,
        muted=chosen.muted if chosen else False,
        stale_after=chosen.stale_after if chosen else None,
        sets_owner=body.owner is not None,
        owner=_owner(body.owner or ""),
        position=position,
        replaces=replaces,
    )


def _patterns(body: Patterns) -> SeriesPatterns:
    texts = {
        name: [fields.as_text(text, name, MAX_CHARACTERS) for text in getattr(body, name)]
        for name in FACT_NAMES
    }
    return parse_patterns({name: "\n".join(lines) for name, lines in texts.items()})


def _owner(name: str) -> User | None:
    return find_account(name, "owner") if name else None


def _rule(row: PatternRule) -> dict[str, Any]:
    thresholds = {name: getattr(row, name) for name in ("least_effect", "muted", "stale_after")}
    names = ("id", "position", "import_name", "reason", "changed_at")
    return {
        **{name: getattr(row, name) for name in (*names, *FACT_NAMES)},
        "url": absolute_url(row.get_absolute_url()),
        "thresholds": thresholds if row.sets_thresholds else None,
        "owner": username(row.owner) if row.sets_owner else None,
        "changed_by": row.changed_by.get_username() if row.changed_by else None,
    }
