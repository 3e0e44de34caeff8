"""API tokens: creating, revoking, finding, and limiting their rates."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import datetime

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, PermissionsMixin
from django.db import connection, transaction
from django.utils import timezone

from codegen_app.accounts import audit, permissions
from codegen_app.accounts import token_text as texts
from codegen_app.accounts.models import ApiToken, Scope
from scheduler.errors import UserError

# One statement, so that two requests at once cannot use the same allowance; with the database's
# clock, so that several web servers agree. The allowance grows with time up to one minute's worth.
_SPEND = """
WITH had AS (
    SELECT id,
        LEAST(1, COALESCE(requests_left / %(requests)s, 1) + grown) * %(requests)s AS requests,
        LEAST(1, COALESCE(points_left / %(points)s, 1) + grown) * %(points)s AS points
    FROM (
        SELECT *, GREATEST(0, EXTRACT(EPOCH FROM clock_timestamp()
            - COALESCE(allowed_at, clock_timestamp()))::float8) / 60 AS grown
        FROM codegen_app_apitoken WHERE id = %(id)s FOR UPDATE
    ) AS locked
)
UPDATE codegen_app_apitoken AS token SET
    requests_left = had.requests - CASE WHEN {enough} THEN %(request_cost)s ELSE 0 END,
    points_left = had.points - CASE WHEN {enough} THEN %(point_cost)s ELSE 0 END,
    allowed_at = clock_timestamp(),
    used_at = CASE WHEN used_at > clock_timestamp() - interval '1 minute' THEN used_at
        ELSE clock_timestamp() END
FROM had WHERE token.id = had.id
RETURNING {enough}, had.requests, had.points
""".format(  # noqa: S608 - one constant in another
    enough="(had.requests >= %(request_cost)s AND had.points >= %(point_cost)s)"
)


_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,39}")
_QUEUE = re.compile(r"measure\.[A-Za-z0-9_.-]{1,30}")


class RateError(Exception):
    """A token's rate is used up; it suffices again after ``seconds``."""

    def __init__(self, what: str, seconds: int) -> None:
        super().__init__(f"the rate limit of this token: {what}; try again in {seconds} s")
        self.seconds = seconds


@transaction.atomic
def create_token(
    owner: AbstractBaseUser,
    name: str,
    scopes: Sequence[str],
    expires_at: datetime | None,
    *,
    worker_name: str = "",
    worker_queue: str = "",
) -> tuple[ApiToken, str]:
    """Create a token for an account; its text is returned only here and not stored. A worker's
    token is for the worker of that name, and for one queue if it is named.

    Raises ``UserError`` for unknown scopes, scopes that the owner lacks the permission for, an
    expiry in the past, an invalid worker name or one that another valid token has, and for a
    worker's scope beside others.
    """
    if not scopes or not set(scopes) <= set(Scope.values):
        raise UserError(f"scopes: one or more of {', '.join(Scope.values)} are required")
    if expires_at is not None and expires_at <= timezone.now():
        raise UserError("expires: the date is in the past")
    if Scope.TRIAGE in scopes and not _may(owner, permissions.TRIAGE):
        raise UserError(f"scopes: “triage” needs “{permissions.TITLES[permissions.TRIAGE]}”")
    _check_worker(owner, scopes, worker_name, worker_queue)
    text = texts.make_token()
    row = ApiToken.objects.create(
        digest=texts.lookup_digests(text)[0],
        prefix=text[: texts.PREFIX_LENGTH],
        name=name,
        owner_id=owner.pk,
        scopes=sorted(set(scopes)),
        expires_at=expires_at,
        worker_name=worker_name,
        worker_queue=worker_queue,
    )
    audit.record(owner, "make token", row, f"to {', '.join(row.scopes)}")
    return row, text


def _check_worker(owner: AbstractBaseUser, scopes: Sequence[str], name: str, queue: str) -> None:
    if Scope.WORKER not in scopes:
        if name or queue:
            raise UserError("worker_name: only worker tokens have a name and a queue")
        return
    if set(scopes) != {Scope.WORKER}:
        raise UserError("scopes: a worker token has no other scopes")
    if not _may(owner, permissions.WORKERS):
        raise UserError(f"scopes: a worker token needs “{permissions.TITLES[permissions.WORKERS]}”")
    if _NAME.fullmatch(name) is None:
        raise UserError(
            "worker_name: a letter, then letters, digits and hyphens, at most 40: mi300x-lab"
        )
    if queue and _QUEUE.fullmatch(queue) is None:
        raise UserError("worker_queue: a queue such as measure.gfx942, or empty")
    others = ApiToken.objects.filter(worker_name=name, revoked_at=None)
    if any(token.state == "valid" for token in others):
        raise UserError(f"worker_name: another valid token is for {name}: revoke it or rename")


def _may(owner: AbstractBaseUser, permission: str) -> bool:
    return isinstance(owner, PermissionsMixin) and owner.has_perm(permission)


@transaction.atomic
def revoke(token: ApiToken, actor: AbstractBaseUser | None, why: str = "") -> bool:
    """Revoke a token at once; return False if it had ended already."""
    now = timezone.now()
    open_ones = ApiToken.objects.filter(pk=token.pk, revoked_at=None)
    if not open_ones.update(revoked_at=now):
        return False
    audit.record(actor, "revoke token", token, why)
    return True


def find_token(text: str) -> ApiToken | None:
    """Return the valid token of that text, whose owner may have tokens, or None."""
    if not texts.is_genuine(text):
        return None
    rows = ApiToken.objects.filter(digest__in=texts.lookup_digests(text), revoked_at=None)
    row = rows.select_related("owner").first()
    if row is None or row.state != "valid":
        return None
    due = [permissions.TOKENS, *([permissions.WORKERS] if Scope.WORKER in row.scopes else [])]
    return row if row.owner.is_active and row.owner.has_perms(due) else None


def charge_rate(token: ApiToken, *, requests: int = 0, points: int = 0) -> None:
    """Count a request, or points, against a token's rates. Raises ``RateError``, and counts
    nothing, if they are used up."""
    # A worker also sends heartbeats and fetches files.
    is_worker = Scope.WORKER in token.scopes
    rates = {
        "requests": settings.WORKER_REQUESTS_A_MINUTE
        if is_worker
        else settings.API_REQUESTS_A_MINUTE,
        "points": settings.API_POINTS_A_MINUTE,
    }
    costs = {"request_cost": requests, "point_cost": points}
    with connection.cursor() as cursor:
        cursor.execute(_SPEND, {**rates, **costs, "id": token.pk})
        remaining = cursor.fetchone()
    if remaining is None or remaining[0]:
        return
    missing = {"requests": requests - remaining[1], "points": points - remaining[2]}
    what = max(missing, key=lambda name: missing[name] / rates[name])
    seconds = max(1, math.ceil(60 * missing[what] / rates[what]))
    raise RateError(f"{rates[what]} {what} per minute", seconds)
