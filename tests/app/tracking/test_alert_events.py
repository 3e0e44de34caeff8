"""What happens to an alert is written once, with a delivery for each channel that wants it."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from codegen_app.tracking.alerting import events
from codegen_app.tracking.models import (
    Alert,
    AlertKind,
    Channel,
    ChannelKind,
    Delivery,
    EventKind,
    Revision,
)
from codegen_app.tracking.notifying import outbox

pytestmark = pytest.mark.django_db


def alert(kind: AlertKind = AlertKind.REGRESSION) -> Alert:
    revision = Revision.objects.create(name="r1")
    return Alert.objects.create(kind=kind, revision=revision, at="2026-01-01T00:00Z")


def channel(name: str, **fields: object) -> Channel:
    wanted = {"kind": ChannelKind.WEBHOOK, "address": "http://localhost", "alerts": ["regression"]}
    return Channel.objects.create(name=name, **{**wanted, **fields})


def test_an_event_has_a_delivery_for_each_channel_that_wants_such_alerts() -> None:
    channel("regressions")
    channel("off", active=False)
    channel("improvements", alerts=["improvement"])
    channel("of another problem", search="attention")
    event = events.record_event(alert(), EventKind.RAISED)
    assert event.by is None
    assert [one.channel.name for one in event.deliveries.all()] == ["regressions"]
    outbox.enqueue(event)
    assert Delivery.objects.count() == 1, "once, however often it is said"


def test_an_event_of_a_person_says_who_and_what_it_changed() -> None:
    person = User.objects.create_user("ann")
    event = events.record_event(
        alert(), EventKind.STATE, person, "known", {"state": "new"}, {"state": "expected"}
    )
    event.refresh_from_db()
    assert (event.by, event.note) == (person, "known")
    assert (event.before, event.after) == ({"state": "new"}, {"state": "expected"})
