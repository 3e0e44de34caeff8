"""The page of channels: who receives alerts, and what was sent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import OuterRef, QuerySet, Subquery

from codegen_app.tracking.models import (
    AlertKind,
    Channel,
    Delivery,
    DeliveryState,
    EventKind,
)
from codegen_app.web.row import build_row

MAX_DELIVERIES = 50
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_LABELS = dict(AlertKind.choices)
_EVENTS = dict(EventKind.choices)


@dataclass(frozen=True)
class Installation:
    """The operator's settings: the site's address in messages, the mail server, and non-public
    networks that webhooks may reach."""

    site_url: str
    mail_host: str
    networks: tuple[str, ...]


@dataclass(frozen=True)
class ChannelRow:
    """A channel with its newest deliveries. ``schedule`` is when its weekly digest is sent, "" if
    it is notified of each event."""

    id: int
    name: str
    kind: str
    schedule: str
    address: str
    alerts: tuple[str, ...]
    alert_labels: tuple[str, ...]
    search: str
    active: bool
    last_state: str
    last_at: datetime | None


@dataclass(frozen=True)
class DeliveryRow:
    """A delivery; ``alert`` is None for a test and for a digest. ``next_at`` is when a pending
    delivery is retried, or until when a worker holds it."""

    id: int
    key: str
    channel: int
    channel_name: str
    event: str
    alert: int | None
    alert_name: str
    alert_url: str
    state: str
    attempts: int
    status: int | None
    error: str
    created_at: datetime
    next_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True)
class ChannelList:
    """All channels, and the latest deliveries to any of them."""

    installation: Installation
    channels: tuple[ChannelRow, ...]
    state: str
    deliveries: tuple[DeliveryRow, ...]


@dataclass(frozen=True)
class ChannelPage:
    """A channel and its latest deliveries."""

    installation: Installation
    channel: ChannelRow
    state: str
    deliveries: tuple[DeliveryRow, ...]


def channel_list(state: str = "") -> ChannelList:
    """Return all channels, with deliveries in a state or in any (2 queries)."""
    rows = tuple(map(_channel, _channels()))
    return ChannelList(_installation(), rows, state, _deliveries(Delivery.objects.all(), state))


def channel_page(pk: int, state: str = "") -> ChannelPage:
    """Return a channel (2 queries). Raises ``Channel.DoesNotExist``."""
    row = _channel(_channels().get(pk=pk))
    sent = _deliveries(Delivery.objects.filter(channel=pk), state)
    return ChannelPage(_installation(), row, state, sent)


def _installation() -> Installation:
    return Installation(
        settings.SITE_URL, settings.EMAIL_HOST, tuple(map(str, settings.WEBHOOK_NETWORKS))
    )


def _channels() -> QuerySet[Channel]:
    newest = Delivery.objects.filter(channel=OuterRef("pk")).order_by("-pk")
    return Channel.objects.annotate(
        last_state=Subquery(newest.values("state")[:1]),
        last_at=Subquery(newest.values("created_at")[:1]),
    )


def _channel(row: Channel) -> ChannelRow:
    return build_row(
        ChannelRow,
        row,
        kind=row.get_kind_display(),
        schedule=f"{WEEKDAYS[row.weekday]}s at {row.hour:02}:00" if row.weekday is not None else "",
        address=", ".join(row.address.split()),
        alerts=tuple(row.alerts),
        alert_labels=tuple(_LABELS.get(kind, kind) for kind in row.alerts),
        last_state=getattr(row, "last_state", None) or "",
        last_at=getattr(row, "last_at", None),
    )


def _deliveries(rows: QuerySet[Delivery], state: str) -> tuple[DeliveryRow, ...]:
    if state:
        rows = rows.filter(state=state)
    rows = rows.select_related("channel", "event__alert__revision", "event__alert__series")
    found = []
    for row in rows.order_by("-pk")[:MAX_DELIVERIES]:
        event = row.event
        found.append(
            build_row(
                DeliveryRow,
                row,
                key=str(row.key),
                channel=row.channel_id,
                channel_name=row.channel.name,
                event=_event_name(row),
                alert=event.alert_id if event else None,
                alert_name=str(event.alert) if event else "",
                alert_url=f"/alerts/{event.alert_id}" if event else "",
                next_at=row.next_at if row.state == DeliveryState.PENDING else None,
            )
        )
    return tuple(found)


def _event_name(row: Delivery) -> str:
    if row.event is not None:
        return str(_EVENTS[row.event.kind])
    return f"digest to {row.digest_until:%Y-%m-%d}" if row.digest_until else "test"
