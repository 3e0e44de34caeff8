"""The newest alerts for feed readers, each with its latest event: an Atom feed with conditional
responses, by login or token."""

from __future__ import annotations

import base64
import hashlib
import re
import uuid
from binascii import Error as BinasciiError
from dataclasses import dataclass
from datetime import UTC, datetime

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db.models import Exists, Max, OuterRef, Q
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.cache import get_conditional_response, patch_vary_headers
from django.utils.feedgenerator import Atom1Feed
from django.utils.html import escape

from codegen_app.accounts import token_text as texts
from codegen_app.accounts import tokens
from codegen_app.accounts.models import Scope
from codegen_app.tracking.models import (
    OPEN_ALERT_STATES,
    QUIET_KINDS,
    Alert,
    AlertKind,
    AlertState,
    Series,
    SeriesFinding,
)
from codegen_app.tracking.pages.alerts.form import FeedForm
from codegen_app.tracking.pages.alerts.query import OPEN
from codegen_app.tracking.queries.alert_rows import WorstChange, worst_changes
from codegen_app.web.addresses import absolute_url
from scheduler.track.effect import format_change
from scheduler.track.evidence import cause_text

MAX_ENTRIES = 100
_UUID_NAMESPACE = uuid.UUID("5f0c2c52-6d1c-4d5e-9d0b-6d2e5a5d9a11")

_BASIC = re.compile(r"basic +(\S+) *", re.IGNORECASE)
_CHALLENGE = 'Basic realm="Kiln: an API token with the scope read as the password", charset="UTF-8"'
# Characters that XML 1.0 cannot represent, even escaped.
_INVALID_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)  # the date of a feed without entries


@dataclass(frozen=True)
class FeedEntry:
    """An alert. ``uid`` does not depend on the site's name and is unique to this installation."""

    id: int
    uid: str
    title: str
    lines: tuple[str, ...]
    kind: str
    state: str
    published: datetime
    updated: datetime


def feed_entries(state: str = "", kind: str = "", search: str = "") -> list[FeedEntry]:
    """Return the last ``MAX_ENTRIES`` alerts of a state ("" for any but history, ``OPEN`` for
    all that are not closed) and a kind ("" for any but the quiet ones), with all words of
    ``search`` in the problem or device of a series (2 queries)."""
    rows = Alert.objects.select_related("revision", "series", "series_finding")
    if state:
        rows = rows.filter(state__in=OPEN_ALERT_STATES if state == OPEN else [state])
    else:
        rows = rows.exclude(state=AlertState.HISTORY)
    rows = rows.filter(kind=kind) if kind else rows.exclude(kind__in=QUIET_KINDS)
    if words := search.split():
        condition = Q(changes__alert=OuterRef("pk")) & (
            Q(changes__withdrawn_at=None) | Q(changes__alert__kind=AlertKind.MACHINE)
        )
        condition |= Q(alerts=OuterRef("pk"))
        for word in words:
            condition &= Q(problem__icontains=word) | Q(device_name__icontains=word)
        rows = rows.filter(Exists(Series.objects.filter(condition)))
    rows = rows.annotate(updated=Coalesce(Max("events__at"), "created_at"))
    found = list(rows.order_by("-created_at", "-pk")[:MAX_ENTRIES])
    worst = worst_changes([row.pk for row in found])
    return [
        FeedEntry(
            id=row.pk,
            uid=uuid.uuid5(_UUID_NAMESPACE, f"alert {row.pk} {row.created_at.isoformat()}").urn,
            title=_title(row, worst.get(row.pk)),
            lines=tuple(_lines(row)),
            kind=row.get_kind_display(),
            state=row.get_state_display(),
            published=row.created_at,
            updated=row.updated,
        )
        for row in found
    ]


_RECOVERED = {
    AlertKind.MISSING: "New points",
    **dict.fromkeys(QUIET_KINDS, "No longer found"),
}


def _title(row: Alert, worst: WorstChange | None) -> str:
    kind = row.get_kind_display().capitalize() + (" (generated)" if row.is_generated else "")
    if row.kind in (AlertKind.MISSING, *QUIET_KINDS):
        return f"{kind}: {row.series}"
    size = f" up to {format_change(worst)}" if worst is not None else ""
    if row.kind == AlertKind.MACHINE:
        return (
            f"{kind} {row.machine}: {row.n_series} series{size} since {row.at:%Y-%m-%d %H:%M} UTC"
        )
    return f"{kind} in {row.n_series} series{size} since {row.revision}"


def _lines(row: Alert) -> list[str]:
    lines = [f"State: {row.get_state_display()}"]
    if row.cause:
        lines.append(f"Cause: {cause_text(row.cause)} (series with the largest change)")
    if row.recovered_at is not None:
        what = _RECOVERED.get(AlertKind(row.kind), "Back at the previous level")
        lines.append(f"{what} since {row.recovered_at:%Y-%m-%d %H:%M} UTC")
    finding: SeriesFinding | None = getattr(row, "series_finding", None)
    if finding is not None:
        n = f"n = {finding.n_before} / {finding.n_after}"
        lines.append(f"{finding.summary}, 95% interval {finding.interval}, {n}")
    elif row.series is not None and row.series.last_at is not None:
        lines.append(f"No new point since {row.series.last_at:%Y-%m-%d %H:%M} UTC")
    return lines


@login_not_required
def alerts_feed(request: HttpRequest) -> HttpResponse:
    """The feed, for anyone who may read pages; a reader without a login sends a token with the
    scope read, as the password of HTTP basic authentication or as a bearer token."""
    if (rejected := _access_error(request)) is not None:
        return rejected
    if not settings.SITE_URL:
        return _plain(
            "The feed is disabled: the operator must set KILN_SITE_URL to the site's address.", 503
        )
    form = FeedForm(request.GET)
    if form.lines:
        return _plain("\n".join(form.lines), 400)
    found = feed_entries(form.text("state"), form.text("kind"), form.text("q"))
    content = _atom(request, found)
    response = HttpResponse(content, content_type="application/atom+xml; charset=utf-8")
    etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    response.headers["ETag"] = etag
    response.headers["Cache-Control"] = "private, no-cache"
    patch_vary_headers(response, ("Cookie", "Authorization"))
    # Only by content: entries that left a filtered feed do not change its latest date.
    return get_conditional_response(request, etag=etag, response=response) or response


def _access_error(request: HttpRequest) -> HttpResponse | None:
    """Return an error response for a client that may not read the feed, else None."""
    if request.user.is_authenticated or not settings.READ_NEEDS_LOGIN:
        return None
    header = request.headers.get("Authorization", "")
    if (basic := _BASIC.fullmatch(header)) is None:
        text = texts.bearer_token(header)
    else:
        try:
            text = base64.b64decode(basic[1], validate=True).decode().partition(":")[2]
        except (BinasciiError, UnicodeDecodeError):
            text = ""
    token = tokens.find_token(text)
    if token is None:
        response = _plain("The feed requires a login or an API token with the scope read.", 401)
        response.headers["WWW-Authenticate"] = _CHALLENGE
        return response
    if Scope.READ not in token.scopes:
        return _plain("This token lacks the scope “read”.", 403)
    try:
        tokens.charge_rate(token, requests=1)
    except tokens.RateError as error:
        response = _plain(str(error), 429)
        response.headers["Retry-After"] = str(error.seconds)
        return response
    return None


class _Feed(Atom1Feed):
    """A feed without entries has never changed; Django would use the current time."""

    def latest_post_date(self) -> datetime:
        """When the last entry changed."""
        return super().latest_post_date() if self.items else _NEVER


def _atom(request: HttpRequest, found: list[FeedEntry]) -> bytes:
    here = absolute_url(request.get_full_path())
    feed = _Feed(
        title="Kiln: alerts",
        link=absolute_url(reverse("alerts")),
        description="",
        feed_url=here,
        feed_guid=here,
    )
    for entry in found:
        address = absolute_url(reverse("alert", args=[entry.id]))
        feed.add_item(
            title=_xml(entry.title),
            link=address,
            description="<br>".join(escape(_xml(line)) for line in entry.lines),
            unique_id=entry.uid,
            pubdate=entry.published,
            updateddate=entry.updated,
            categories=(entry.kind, entry.state),
            author_name="Kiln",
        )
    return feed.writeString("utf-8").encode()


def _xml(text: str) -> str:
    return _INVALID_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _plain(text: str, status: int) -> HttpResponse:
    return HttpResponse(f"{text}\n", status=status, content_type="text/plain; charset=utf-8")
