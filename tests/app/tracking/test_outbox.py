"""What happened to an alert is due to whoever is told of it: once, with its event."""

from __future__ import annotations

import pytest
from django.db import transaction

from codegen_app.tracking.alerting.events import record_event
from codegen_app.tracking.models import Alert, AlertEvent, AlertKind, Channel, Delivery, EventKind
from codegen_app.tracking.notifying import outbox
from tests.app.track_factories import channel, missing, regression
from tests.support.queries import assert_steady, queries_of

pytestmark = pytest.mark.django_db


def event(alert: Alert, kind: EventKind = EventKind.RAISED) -> AlertEvent:
    made = AlertEvent.objects.create(alert=alert, kind=kind)
    outbox.enqueue(made)
    return made


def told(of: AlertEvent) -> list[str]:
    return sorted(of.deliveries.values_list("channel__name", flat=True))


def test_who_wants_such_alerts_is_told_once() -> None:
    channel("regressions")
    channel("off", active=False)
    channel("improvements", alerts=["improvement"])
    channel("all", alerts=list(AlertKind.values))
    of = event(regression("gemm"))
    assert told(of) == ["all", "regressions"]
    assert outbox.enqueue(of) == 0, "once, however often it is said"
    assert Delivery.objects.count() == 2


def test_a_channel_may_want_certain_series_alone() -> None:
    for search in ("attention", "ATTENTION h200", "softmax", "attention mi300"):
        channel(search, search=search, alerts=list(AlertKind.values))
    assert told(event(regression("gemm", "flash attention"))) == ["ATTENTION h200", "attention"]
    assert told(event(missing(problem="softmax of rows", device_name="AMD MI300X"))) == ["softmax"]


def test_what_repeats_an_alert_is_told_to_those_whom_that_did_not_concern() -> None:
    channel("all")
    for search in ("gemm", "attention", "attention softmax", "softmax"):
        channel(search, search=search)
    first, second, third = (
        regression("gemm"),
        regression("gemm", "attention"),
        regression("softmax"),
    )
    fourth = regression("attention", "softmax")
    Alert.objects.exclude(pk__in=(first.pk, fourth.pk)).update(downstream_of=first)
    Alert.objects.filter(pk=fourth.pk).update(duplicate_of=third)
    events = [
        record_event(Alert.objects.get(pk=one.pk), EventKind.RAISED) for one in (second, first)
    ]
    assert [told(one) for one in events] == [["attention"], ["all", "gemm"]]
    assert told(record_event(Alert.objects.get(pk=third.pk), EventKind.RAISED)) == ["softmax"]
    assert told(record_event(Alert.objects.get(pk=fourth.pk), EventKind.RAISED)) == []
    Delivery.objects.update(attempts=1)
    assert told(record_event(Alert.objects.get(pk=second.pk), EventKind.RECOVERED)) == ["attention"]


def test_words_of_one_series_count_together() -> None:
    """A word of one series and another of the next name no series of the alert."""
    channel("two words", search="attention gemm")
    assert told(event(regression("gemm", "attention"))) == []


def test_what_people_do_is_not_sent() -> None:
    channel()
    for kind in (EventKind.NOTE, EventKind.STATE, EventKind.ASSIGNEE, EventKind.UNDO):
        assert told(event(regression("gemm"), kind)) == []


def test_more_series_join_what_nobody_tried_to_send_yet() -> None:
    channel()
    alert = regression("gemm")
    assert told(event(alert)) == ["team"]
    assert told(event(alert, EventKind.GREW)) == []
    Delivery.objects.update(attempts=1)
    assert told(event(alert, EventKind.GREW)) == ["team"]


def test_a_delivery_is_of_the_transaction_of_its_event() -> None:
    channel()
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        event(regression("gemm"))
        raise ZeroDivisionError
    assert not Delivery.objects.exists()


def test_deliveries_cost_as_many_queries_however_many_there_are() -> None:
    counts = []
    for more in (1, 5):
        for _ in range(more):
            channel(f"channel {Channel.objects.count()}", search="gemm")
        of = AlertEvent.objects.create(alert=regression(*["gemm"] * 4), kind=EventKind.RAISED)
        counts.append([queries_of(outbox.enqueue, of)])
        assert Delivery.objects.filter(event=of).count() == Channel.objects.count()
    assert_steady(*counts, usual=[1])
