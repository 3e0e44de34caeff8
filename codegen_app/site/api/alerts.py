"""``/api/v1/alerts``: read and triage alerts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest
from ninja import Router

from codegen_app.accounts import audit
from codegen_app.accounts.api_authentication import token_of
from codegen_app.site.api.checks import (
    OPTIONAL_KEY,
    READ,
    REFUSALS,
    ROW_REFUSALS,
    TRIAGE,
    check_parameters,
    find_account,
    get_alert,
    parse_cursor,
    run_once,
    triager,
)
from codegen_app.tracking.alerting import triage as services
from codegen_app.tracking.api_alert_schemas import (
    AlertChangesPage,
    AlertEventsPage,
    AlertItem,
    AlertsPage,
    Triage,
    TriageAnswer,
)
from codegen_app.tracking.api_schemas import Limit, Problem
from codegen_app.tracking.models import AlertKind, Relation
from codegen_app.tracking.pages.alerts.query import OPEN, STATES, AlertFilter, alert_condition
from codegen_app.tracking.queries import api_alerts
from scheduler.errors import UserError
from scheduler.results.points import fields

router = Router(tags=["alerts"])
_FILTERS = ("state", "kind", "assignee", "q", "changed_since", "after", "limit")


@router.get(
    "/alerts",
    url_name="api_alerts",
    auth=READ,
    response={200: AlertsPage, **REFUSALS},
    summary="List alerts",
)
def list_alerts(
    request: HttpRequest,
    state: str = OPEN,
    kind: AlertKind | None = None,
    assignee: str = "",
    q: str = "",
    changed_since: str = "",
    after: int = 0,
    limit: Limit = 100,
) -> dict[str, Any]:
    """List alerts, the newest first. “state” is a state, “open” or “all”; “assignee” is a user
    name, or “nobody”; “q” are words of a revision, a problem or a device, or “#” and a number.
    With “changed_since” (ISO 8601), a program can ask for what is new. Linked alerts are listed,
    too."""
    check_parameters(request, _FILTERS)
    if state not in STATES:
        raise UserError(f"state: one of {', '.join(STATES)} is expected, not {state!r}")
    filters = AlertFilter(
        state, kind or "", assignee.strip(), fields.as_text(q.strip(), "q", 200), linked=True
    )
    since = fields.as_timestamp(changed_since, "changed_since") if changed_since else None
    rows, following = api_alerts.alerts_page(
        alert_condition(filters, token_of(request).owner), since, parse_cursor(after), limit
    )
    return {"alerts": rows, "next": following}


@router.get(
    "/alerts/{int:pk}",
    url_name="api_alert",
    auth=READ,
    response={200: AlertItem, **ROW_REFUSALS},
    summary="Get an alert",
)
def one_alert(request: HttpRequest, pk: int) -> dict[str, Any]:
    """Return an alert with its largest change."""
    check_parameters(request, ())
    return api_alerts.one_alert(get_alert(pk).pk)


@router.get(
    "/alerts/{int:pk}/changes",
    url_name="api_alert_changes",
    auth=READ,
    response={200: AlertChangesPage, **ROW_REFUSALS},
    summary="List the changes of an alert",
)
def alert_changes(
    request: HttpRequest, pk: int, after: int = 0, limit: Limit = 1_000
) -> dict[str, Any]:
    """List the changes of an alert, one per series, with cause and reasons."""
    check_parameters(request, ("after", "limit"))
    rows, following = api_alerts.changes_page(get_alert(pk).pk, parse_cursor(after), limit)
    return {"changes": rows, "next": following}


@router.get(
    "/alerts/{int:pk}/events",
    url_name="api_alert_events",
    auth=READ,
    response={200: AlertEventsPage, **ROW_REFUSALS},
    summary="List the events of an alert",
)
def alert_events(
    request: HttpRequest, pk: int, after: int = 0, limit: Limit = 1_000
) -> dict[str, Any]:
    """List what Kiln and people did with an alert: states, assignees, notes and links."""
    check_parameters(request, ("after", "limit"))
    rows, following = api_alerts.events_page(get_alert(pk).pk, parse_cursor(after), limit)
    return {"events": rows, "next": following}


@router.post(
    "/alerts/triage",
    url_name="api_triage",
    auth=TRIAGE,
    response={200: TriageAnswer, **REFUSALS, 400: Problem, 409: Problem},
    summary="Triage alerts",
    openapi_extra=OPTIONAL_KEY,
)
def triage(request: HttpRequest, body: Triage) -> dict[str, Any]:
    """Set the state or the assignee of alerts, add a note, link them to another alert, or remove
    their links: all of it or nothing. The owner of the token needs the permission to triage alerts,
    and is recorded as the author."""
    check_parameters(request, ())
    owner = triager(request)

    def act() -> dict[str, Any]:
        linked = [pk for pk in (body.duplicate_of, body.downstream_of) if pk is not None]
        if linked or body.unlink:
            services.lock_for_actions([*body.alerts, *linked])
        actions = tuple(_actions(body, owner))
        lines = [action.line for action in actions]
        if not actions:
            raise UserError("expected state, assignee, note, duplicate_of, downstream_of or unlink")
        audit.record(owner, "triage with a token", token_of(request), " ".join(lines))
        changed = sorted({key for action in actions for key in action.alerts})
        return {"changed": changed, "lines": lines}

    return run_once(request, act)


def _actions(body: Triage, by: User) -> Iterator[services.TriageAction]:
    """Yield what was done, in the order of the fields. A note comes with the state where that
    changes."""
    noted: tuple[int, ...] = ()
    if body.state is not None:
        action = services.set_state(body.alerts, body.state, by, _note(body))
        noted = action.alerts
        yield action
    if body.assignee is not None:
        yield services.assign(body.alerts, _assignee(body.assignee), by)
    if body.note is not None and (others := set(body.alerts) - set(noted)):
        yield services.add_note(others, _note(body), by)
    for relation in Relation:
        if (to := getattr(body, relation.value)) is not None:
            yield services.link(body.alerts, to, relation, by)
    if body.unlink:
        if body.duplicate_of is not None or body.downstream_of is not None:
            raise UserError("unlink: links are set by the same request: send two")
        yield services.unlink(body.alerts, by)


def _note(body: Triage) -> str:
    return fields.as_text((body.note or "").strip(), "note", services.MAX_NOTE_LENGTH)


def _assignee(name: str) -> User | None:
    return find_account(name, "assignee") if name else None
