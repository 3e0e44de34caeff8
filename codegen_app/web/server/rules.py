"""What each URL accepts: methods, from whom, and how much; checked before a body is read.

A URL that is not in the table is a page to read. The views also check their permissions themselves
(``web/require_permission.py``): by then Django has parsed the body.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseNotAllowed,
    QueryDict,
)

from codegen_app.accounts import permissions
from codegen_app.accounts.login_redirect import login_response
from codegen_app.web import errors
from codegen_app.web.server import bodies

READ_METHODS = ("GET", "HEAD")
WRITE_METHODS = ("POST",)
FORM_METHODS = (*READ_METHODS, *WRITE_METHODS)


@dataclass(frozen=True)
class Rule:
    """Allowed methods, and the required permission ("" for none)."""

    methods: tuple[str, ...] = READ_METHODS
    permission: str = ""
    is_form: bool = True  # the body is parsed once its length is known to be small enough


PAGE = Rule()
# URL names by required permission, "" for none or for views that check the account or a token.
_FORMS = {
    permissions.IMPORT: ("import", "look"),
    permissions.RETUNE: ("retune",),
    permissions.TOKENS: ("tokens",),
    permissions.NOTIFY: ("channels", "channel"),
    "": ("pack", "password", "login"),
}
_ACTIONS = {
    permissions.IMPORT: ("recognize_file", "cancel_preparation"),
    permissions.SELECT: ("import_selections", "put_back", "put_back_run"),
    permissions.RETUNE: (
        *("cancel_run", "retune_alert", "remeasure_alert"),
        *("withdraw_requests", "cancel_remeasurement"),
        *("bisect_alert", "cancel_bisection", "skip_revision"),
    ),
    permissions.BUILD: ("build_kernel", "model_kernel", "cancel_modelling"),
    permissions.TOKENS: ("revoke_token",),
    permissions.TRIAGE: (
        *("triage", "undo_triage", "save_thresholds", "add_baseline", "remove_baseline"),
        *("save_rule", "move_rule", "remove_rule", "import_owners"),
        *("add_budget", "save_budget", "remove_budget"),
        *("withdraw_point", "restore_point", "annotate_point", "remove_annotation"),
    ),
    permissions.NOTIFY: ("switch_channel", "test_channel", "renew_channel_key", "send_again"),
    permissions.WORKERS: ("steer_worker",),
    "": ("cancel_packing", "cancel_foreign_kernel", "logout"),
}
_API_READS = (
    *("api_series", "api_one_series", "api_requests", "api_data", "api_compare"),
    *("api_alerts", "api_alert", "api_alert_changes", "api_alert_events"),
    *("api_annotations", "api_budgets"),
    "api_worker_file",
)
_RAW_BODIES = (
    *("csp_reports", "api_results", "api_withdraw", "api_restore"),
    *("api_annotate", "api_remove_annotation", "api_reset_thresholds", "api_triage"),
    *("api_try_rule", "api_edit_rule", "api_move_rule", "api_remove_rule"),
    "api_skip_request",
    *("api_worker_hello", "api_worker_lease", "api_worker_builds", "api_worker_progress"),
    *("api_worker_finish", "api_worker_give_up", "api_worker_leave"),
)
# By URL name; Django's own (the admin's) check for themselves.
RULES = {
    **{name: Rule(FORM_METHODS, needed) for needed, names in _FORMS.items() for name in names},
    **{
        f"{name}_json": Rule(READ_METHODS, needed)
        for needed, names in _FORMS.items()
        for name in names
        if needed
    },
    **{name: Rule(WRITE_METHODS, needed) for needed, names in _ACTIONS.items() for name in names},
    **dict.fromkeys(_API_READS, Rule(("GET",))),
    **dict.fromkeys(("api_thresholds", "api_rules"), Rule(("GET", *WRITE_METHODS), is_form=False)),
    **dict.fromkeys(_RAW_BODIES, Rule(WRITE_METHODS, is_form=False)),
}
_DEFAULT_RULE = Rule(FORM_METHODS)
_NUL_ERROR = errors.Unavailable(
    "Request rejected", "The text contains NUL characters: remove them.", 0
)


class RulesMiddleware:
    """Refuses what a URL does not accept. Stands before what reads bodies (CSRF)."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, _view: Any, _args: Any, view_kwargs: dict[str, Any]
    ) -> HttpResponseBase | None:
        """Return the refusal, or None to call the view."""
        name, rule = rule_of(request)
        if request.method not in rule.methods:
            return HttpResponseNotAllowed(rule.methods)
        if any("\0" in value for value in view_kwargs.values() if isinstance(value, str)):
            raise Http404("there is no such page")
        if rule.permission:
            if not request.user.is_authenticated:
                return login_response(request)
            if not request.user.has_perm(rule.permission):
                raise PermissionDenied(denial(rule.permission))
        limit = bodies.upload_limits().get(name, bodies.DEFAULT_LIMIT)
        length = 0  # Django also treats an invalid length as an empty body
        with suppress(ValueError):
            length = int(request.META.get("CONTENT_LENGTH") or 0)
        if length > limit:
            return errors.error_response(request, 413, errors.request_too_large(limit))
        if _has_nul(request.GET) or (rule.is_form and _has_nul(request.POST)):
            return errors.error_response(request, 400, _NUL_ERROR)
        return None


def rule_of(request: HttpRequest) -> tuple[str, Rule]:
    """Return the name of the request's URL, and its rule."""
    match = request.resolver_match
    assert match is not None, "middleware asks once the view is known"
    name = match.url_name or ""
    if match.namespaces or not name:
        return "", _DEFAULT_RULE
    return name, RULES.get(name, PAGE)


def denial(permission: str) -> str:
    """Return the message for a user without the permission."""
    title = permissions.TITLES[permission]
    return f"Your account lacks the permission “{title}”."


def _has_nul(query: QueryDict) -> bool:
    """Return whether a name or a value holds NUL, which the database cannot store in text."""
    return any("\0" in text for name, values in query.lists() for text in (name, *values))
