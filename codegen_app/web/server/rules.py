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
# By URL name; Django's own (the admin's, login) check for themselves.
RULES = {
    "import": Rule(FORM_METHODS, permissions.IMPORT),
    "import_json": Rule(READ_METHODS, permissions.IMPORT),
    "import_selections": Rule(WRITE_METHODS, permissions.SELECT),
    "put_back": Rule(WRITE_METHODS, permissions.SELECT),
    "cancel_run": Rule(WRITE_METHODS, permissions.RETUNE),
    "retune": Rule(FORM_METHODS, permissions.RETUNE),
    "retune_json": Rule(READ_METHODS, permissions.RETUNE),
    "retune_alert": Rule(WRITE_METHODS, permissions.RETUNE),
    "remeasure_alert": Rule(WRITE_METHODS, permissions.RETUNE),
    "withdraw_requests": Rule(WRITE_METHODS, permissions.RETUNE),
    "cancel_remeasurement": Rule(WRITE_METHODS, permissions.RETUNE),
    "pack": Rule(FORM_METHODS),  # the view requires an account
    "cancel_packing": Rule(WRITE_METHODS),  # and checks its owner
    "look": Rule(FORM_METHODS, permissions.IMPORT),
    "look_json": Rule(READ_METHODS, permissions.IMPORT),
    "cancel_foreign_kernel": Rule(WRITE_METHODS),  # the view checks its owner
    "build_kernel": Rule(WRITE_METHODS, permissions.BUILD),
    "model_kernel": Rule(WRITE_METHODS, permissions.BUILD),
    "cancel_modelling": Rule(WRITE_METHODS, permissions.BUILD),
    "password": Rule(FORM_METHODS),
    "csp_reports": Rule(WRITE_METHODS, is_form=False),
    "tokens": Rule(FORM_METHODS, permissions.TOKENS),
    "tokens_json": Rule(READ_METHODS, permissions.TOKENS),
    "triage": Rule(WRITE_METHODS, permissions.TRIAGE),
    "undo_triage": Rule(WRITE_METHODS, permissions.TRIAGE),
    "save_thresholds": Rule(WRITE_METHODS, permissions.TRIAGE),
    "add_baseline": Rule(WRITE_METHODS, permissions.TRIAGE),
    "remove_baseline": Rule(WRITE_METHODS, permissions.TRIAGE),
    "withdraw_point": Rule(WRITE_METHODS, permissions.TRIAGE),
    "restore_point": Rule(WRITE_METHODS, permissions.TRIAGE),
    "revoke_token": Rule(WRITE_METHODS, permissions.TOKENS),
    **dict.fromkeys(("channels", "channel"), Rule(FORM_METHODS, permissions.NOTIFY)),
    **dict.fromkeys(("channels_json", "channel_json"), Rule(READ_METHODS, permissions.NOTIFY)),
    **dict.fromkeys(
        ("switch_channel", "test_channel", "renew_channel_key", "send_again"),
        Rule(WRITE_METHODS, permissions.NOTIFY),
    ),
    # For programs: the views check a token.
    "api_results": Rule(WRITE_METHODS, is_form=False),
    "api_series": Rule(("GET",)),
    "api_one_series": Rule(("GET",)),
    "api_withdraw": Rule(WRITE_METHODS, is_form=False),
    "api_restore": Rule(WRITE_METHODS, is_form=False),
    "api_requests": Rule(("GET",)),
    "api_data": Rule(("GET",)),
    "api_compare": Rule(("GET",)),
    **dict.fromkeys(
        (
            *("api_worker_hello", "api_worker_lease", "api_worker_builds"),
            *("api_worker_progress", "api_worker_finish"),
            *("api_worker_give_up", "api_worker_leave"),
        ),
        Rule(WRITE_METHODS, is_form=False),
    ),
    "api_worker_file": Rule(("GET",)),
    "steer_worker": Rule(WRITE_METHODS, permissions.WORKERS),
    "login": Rule(FORM_METHODS),
    "logout": Rule(WRITE_METHODS),
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
