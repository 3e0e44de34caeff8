"""The weekly digest: once a week whatever happens to the processes, with what a lead asks for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone

from codegen_app.tracking.alerting.events import change_alert, record_event
from codegen_app.tracking.models import (
    Alert,
    AlertKind,
    AlertState,
    Channel,
    ChannelKind,
    Delivery,
    DeliveryState,
    EventKind,
    SeriesFinding,
)
from codegen_app.tracking.notifying import channels, digest, sender, weekly
from tests.app.track_factories import (
    budget,
    channel,
    datum,
    missing,
    regression,
    revision,
    series,
)
from tests.support.patience import PATIENCE_S
from tests.support.queries import assert_steady, queries_of
from tests.support.receivers import SmtpReceiver, smtp_receiver

pytestmark = pytest.mark.django_db
MONDAY = datetime(2026, 11, 23, 8, 0, tzinfo=UTC)
DAY, WEEK = timedelta(days=1), timedelta(days=7)


@pytest.fixture
def mailbox(settings: Any) -> Iterator[SmtpReceiver]:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    with smtp_receiver() as made:
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", made.port
        settings.EMAIL_TIMEOUT = PATIENCE_S
        settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
        settings.DEFAULT_FROM_EMAIL = "Kiln <kiln@kiln.example>"
        yield made


@pytest.fixture(autouse=True)
def _address(settings: Any) -> None:
    settings.SITE_URL = "https://kiln.example"


def lead(**fields: Any) -> Channel:
    """A channel with a digest on Mondays at eight, of all kinds of alerts."""
    wanted = {
        "kind": ChannelKind.EMAIL,
        "address": "lead@kiln.example",
        "alerts": AlertKind.values,
        "key_salt": "",
        "weekday": 0,
        "hour": 8,
    }
    return channel(**wanted | {"name": "lead"} | fields)


def digest_of(row: Channel, since: datetime | None = None) -> digest.Digest:
    until = timezone.now() + DAY
    return digest.build_digest(row, since or until - WEEK, until, is_test=False)


def titles(found: digest.Digest) -> dict[str, int]:
    return {section.title: section.total for section in found.sections}


def age(alert: Alert, days: int) -> Alert:
    """The alert was raised that long ago."""
    Alert.objects.filter(pk=alert.pk).update(created_at=timezone.now() - timedelta(days=days))
    return alert


def test_a_digest_is_due_once_a_week() -> None:
    row = lead(digest_until=MONDAY - WEEK)
    assert weekly.enqueue_due(MONDAY - timedelta(minutes=1)) == 0
    assert weekly.enqueue_due(MONDAY) == 1
    assert weekly.enqueue_due(MONDAY) == weekly.enqueue_due(MONDAY + 6 * DAY) == 0
    delivery = Delivery.objects.get()
    assert (delivery.digest_since, delivery.digest_until) == (MONDAY - WEEK, MONDAY)
    assert weekly.enqueue_due(MONDAY + WEEK) == 1
    row.refresh_from_db()
    assert row.digest_until == MONDAY + WEEK


def test_after_weeks_of_standstill_one_digest_covers_them() -> None:
    lead(digest_until=MONDAY - 3 * WEEK)
    assert weekly.enqueue_due(MONDAY + 2 * DAY) == 1
    delivery = Delivery.objects.get()
    assert (delivery.digest_since, delivery.digest_until) == (MONDAY - 3 * WEEK, MONDAY)


def test_two_processes_write_one_delivery() -> None:
    row = lead(digest_until=MONDAY - WEEK)
    stale = Channel.objects.get(pk=row.pk)
    assert weekly._enqueue(row, MONDAY, MONDAY)
    assert not weekly._enqueue(stale, MONDAY, MONDAY)
    given = {"channel": row, "digest_until": MONDAY, "next_at": MONDAY}
    with pytest.raises(IntegrityError), transaction.atomic():
        Delivery.objects.create(key="0" * 32, **given)


def test_the_hour_is_that_of_the_sites_time_zone(settings: Any) -> None:
    settings.TIME_ZONE = "America/New_York"
    row = lead()
    moment = weekly.last_scheduled(row, datetime(2026, 11, 23, 12, 59, tzinfo=UTC))
    assert moment == datetime(2026, 11, 16, 13, tzinfo=UTC)
    assert weekly.last_scheduled(row, datetime(2026, 11, 23, 13, tzinfo=UTC)) == datetime(
        2026, 11, 23, 13, tzinfo=UTC
    )


def test_only_weekly_channels_that_are_on_have_digests() -> None:
    lead(active=False, digest_until=MONDAY - WEEK)
    channel()
    assert weekly.enqueue_due(MONDAY) == 0


def test_a_weekly_channel_gets_no_message_of_an_event() -> None:
    lead()
    always = channel()
    record_event(regression("gemm"), EventKind.RAISED)
    assert [delivery.channel for delivery in Delivery.objects.all()] == [always]


def test_it_names_new_regressions_by_owner_the_worst_first() -> None:
    ada = User.objects.create_user("ada")
    small, large = regression("gemm", assignee=ada), regression("softmax", assignee=ada)
    large.changes.update(after=200.0, low=1.9, high=2.1)
    nobodys = regression("rope")
    age(regression("old"), 9)
    found = digest_of(lead())
    assert titles(found) == {"New regressions: ada": 2, "New regressions: without assignee": 1}
    assert (found.n_new, found.n_open) == (3, 4)
    text = found.text
    assert text.index("softmax") < text.index("gemm") < text.index("rope")
    assert f"#{large.pk} new: x2.000 (95%: 1.900 - 2.100; n 12, 5) time of softmax" in text
    assert f"https://kiln.example/alerts/{small.pk}" in text
    assert f"https://kiln.example/alerts/{nobodys.pk}" in text
    assert text.isascii()
    assert "[Kiln] week to" in found.subject and "3 new regressions, 4 open" in found.subject


def test_it_names_what_recovered_was_closed_is_old_or_missing() -> None:
    ada = User.objects.create_user("ada")
    back, closed, old, fixed_before = (age(regression(f"p{n}"), 20) for n in range(4))
    record_event(back, EventKind.RECOVERED)
    change_alert(closed, EventKind.STATE, {"state": AlertState.FIXED.value}, ada)
    Alert.objects.filter(pk=fixed_before.pk).update(state=AlertState.FIXED)
    gone = missing(problem="silent")
    found = digest_of(lead())
    assert titles(found) == {
        "Data missing now": 1,
        "Recovered": 1,
        "Closed": 1,
        "Open for more than 14 days": 2,
    }
    rows = {section.title: " ".join(sum(section.rows, ())) for section in found.sections}
    assert f"#{back.pk} " in rows["Recovered"]
    assert f"#{closed.pk} fixed" in rows["Closed"]
    assert f"#{old.pk} " in rows["Open for more than 14 days"]
    assert f"#{gone.pk} " in rows["Data missing now"] and "silent" in rows["Data missing now"]


def test_history_and_linked_alerts_are_left_out() -> None:
    first = regression("gemm")
    regression("gemm", duplicate_of=first)
    regression("old", state=AlertState.HISTORY)
    assert titles(digest_of(lead())) == {"New regressions: without assignee": 1}


def test_only_series_with_the_channels_words_are_named() -> None:
    regression("attention"), regression("gemm")
    missing(problem="attention", device_name="AMD MI300X")
    found = digest_of(lead(search="attention h200"))
    assert titles(found) == {"New regressions: without assignee": 1}
    assert "attention" in found.text and "gemm" not in found.text


def test_what_was_not_measured_is_marked() -> None:
    alert = regression("gemm")
    alert.changes.update(series=series(device_name="generated device"))
    assert "generated, not measured" in digest_of(lead()).text


def test_budgets_that_are_not_met_are_named() -> None:
    point = datum(value=120.0)
    point.series.points, point.series.last_at = 1, point.at
    point.series.save()
    for name, limit in (("met", 130.0), ("missed", 60.0)):
        budget(name=name, limit=limit, unit="ns")
    found = digest_of(lead())
    assert titles(found) == {"Budgets that are not met": 1}
    assert "missed: p50 120 ns, limit 60 ns, 1 series" in found.text


def test_a_drift_is_named_though_no_message_was_sent() -> None:
    of = series(problem="rope")
    alert = Alert.objects.create(kind=AlertKind.DRIFT, series=of, at=timezone.now(), n_series=1)
    figures = {"before": 100.0, "after": 112.0, "ratio": 1.12, "low": 1.1, "high": 1.14}
    SeriesFinding.objects.create(
        alert=alert,
        series=of,
        kind=AlertKind.DRIFT,
        revision=revision(),
        n_before=60,
        n_after=60,
        examined_at=timezone.now(),
        **figures,
    )
    found = digest_of(lead(alerts=[AlertKind.REGRESSION]))
    assert titles(found) == {"Drifts, changes of spread, second modes": 1}
    assert "creeping, +12.0%" in found.text and "95%: +10.0% to +14.0%" in found.text


def test_a_long_section_says_how_many_more() -> None:
    for _ in range(digest._MAX_ROWS + 3):
        regression("gemm")
    text = digest_of(lead()).text
    assert f"New regressions: without assignee ({digest._MAX_ROWS + 3})" in text
    assert "and 3 more: https://kiln.example/alerts" in text


def test_the_number_of_queries_does_not_grow() -> None:
    row = lead()
    regression("gemm")
    few = queries_of(digest_of, row)
    for _ in range(5):
        regression("gemm", "softmax")
    assert_steady([few], [queries_of(digest_of, row)], [18])


def test_a_digest_is_sent_and_a_quiet_week_is_said(mailbox: SmtpReceiver) -> None:
    lead(digest_until=MONDAY - WEEK)
    weekly.enqueue_due(MONDAY)
    sender.send_due()
    letter = mailbox.next()
    assert letter.message["Subject"].startswith("[Kiln] week to 2026-11-23: 0 new regressions")
    body = letter.message.get_content()
    assert "From 2026-11-16 08:00 to 2026-11-23 08:00 UTC" in body
    assert "Nothing to report." in body
    assert "Sent to the channel lead: https://kiln.example/channels" in body
    assert Delivery.objects.get().state == DeliveryState.DELIVERED


def test_a_test_is_of_the_last_week_and_says_so(mailbox: SmtpReceiver) -> None:
    row = lead(digest_until=MONDAY)
    regression("gemm")
    channels.send_test(User.objects.create_user("ada"), row)
    sender.send_due()
    letter = mailbox.next()
    assert letter.message["Subject"].startswith("[Kiln] test: week to")
    assert "This is a test" in letter.message.get_content()
    row.refresh_from_db()
    assert row.digest_until == MONDAY, "a test moves nothing"


FORM = {"name": "lead", "kind": "email", "address": "a@b.example", "alerts": ["regression"]}


def test_the_page_adds_and_shows_a_weekly_channel(client: Client) -> None:
    client.force_login(User.objects.create_superuser("root"))
    assert client.post("/channels", FORM | {"weekday": "4", "hour": "17"}).status_code == 302
    row = Channel.objects.get()
    assert (row.weekday, row.hour) == (4, 17)
    assert row.digest_until is not None and row.digest_until <= timezone.now()
    assert weekly.enqueue_due() == 0, "the first digest is the next scheduled one"
    for page in ("/channels", f"/channels/{row.pk}"):
        assert "Fridays at 17:00" in client.get(page).content.decode()
    client.post(f"/channels/{row.pk}", FORM | {"weekday": "", "hour": "17"})
    row.refresh_from_db()
    assert row.weekday is None


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ({"kind": "slack", "address": "https://hooks.slack.com/x"}, "Only e-mail channels"),
        ({"hour": "24"}, "from 0 to 23"),
        ({"weekday": "7"}, "valid choice"),
    ],
)
def test_a_time_that_cannot_be_is_refused(client: Client, wrong: dict[str, str], line: str) -> None:
    client.force_login(User.objects.create_superuser("root"))
    answer = client.post("/channels", FORM | {"weekday": "0", "hour": "8"} | wrong)
    assert answer.status_code == 422
    assert line in answer.content.decode()
    assert not Channel.objects.exists()


def test_a_channel_that_was_off_sends_nothing_late() -> None:
    admin = User.objects.create_superuser("root")
    row = lead(active=False, digest_until=timezone.now() - 5 * WEEK)
    channels.set_active(admin, row, on=True)
    assert weekly.enqueue_due() == 0


def test_what_waits_when_a_channel_becomes_weekly_is_sent_as_it_is(mailbox: SmtpReceiver) -> None:
    admin = User.objects.create_superuser("root")
    row = lead(weekday=None)
    record_event(regression("gemm"), EventKind.RAISED)
    channels.change_channel(admin, row, {"weekday": 0})
    sender.send_due()
    assert "regression in 1 series" in mailbox.next().message["Subject"]


def test_a_digest_that_waits_when_a_channel_is_no_longer_weekly_is_sent(
    mailbox: SmtpReceiver,
) -> None:
    admin = User.objects.create_superuser("root")
    row = lead(digest_until=MONDAY - WEEK)
    weekly.enqueue_due(MONDAY)
    row.refresh_from_db()
    channels.change_channel(admin, row, {"weekday": None})
    sender.send_due()
    assert mailbox.next().message["Subject"].startswith("[Kiln] week to 2026-11-23")


def test_the_rest_of_the_week_is_sent_when_a_channel_is_no_longer_weekly() -> None:
    admin = User.objects.create_superuser("root")
    begin = timezone.now() - 3 * DAY
    row = lead(digest_until=begin)
    channels.change_channel(admin, row, {"search": "gemm"})
    assert not row.deliveries.exists()
    stale = Channel.objects.get()
    for _ in range(2):  # pressed twice
        channels.change_channel(admin, stale, {"weekday": None})
        stale.weekday = 0
    delivery = row.deliveries.get()
    assert delivery.digest_since == begin and delivery.digest_until is not None
    assert delivery.digest_until > begin


def test_a_channel_that_is_weekly_again_begins_anew() -> None:
    admin = User.objects.create_superuser("root")
    row = lead(weekday=None, digest_until=timezone.now() - 20 * WEEK)
    channels.change_channel(admin, row, {"weekday": 0})
    row.refresh_from_db()
    assert row.digest_until is not None and row.digest_until > timezone.now() - WEEK
    assert weekly.enqueue_due() == 0


def test_saving_a_channel_sends_no_digest_twice() -> None:
    """A page that was opened before a digest was due knows the time of the one before."""
    admin = User.objects.create_superuser("root")
    row = lead(digest_until=MONDAY - WEEK)
    stale = Channel.objects.get(pk=row.pk)
    assert weekly.enqueue_due(MONDAY) == 1
    channels.change_channel(admin, stale, {"search": "gemm"})
    assert weekly.enqueue_due(MONDAY + DAY) == 0
    row.refresh_from_db()
    assert (row.search, row.digest_until) == ("gemm", MONDAY)


def test_a_channel_whose_day_moves_back_and_forth_sends_no_digest_twice() -> None:
    admin = User.objects.create_superuser("root")
    now = timezone.now()
    row = lead(weekday=now.weekday(), hour=0, digest_until=now - 2 * WEEK)
    assert weekly.enqueue_due() == 1
    channels.change_channel(admin, Channel.objects.get(), {"weekday": (now.weekday() - 1) % 7})
    for on in (False, True):
        channels.set_active(admin, Channel.objects.get(), on=on)
    channels.change_channel(admin, Channel.objects.get(), {"weekday": now.weekday()})
    assert weekly.enqueue_due() == 0
    assert row.deliveries.count() == 1


def test_a_finding_after_the_period_is_left_to_the_next_digest() -> None:
    of = series(problem="rope")
    alert = Alert.objects.create(kind=AlertKind.DRIFT, series=of, at=timezone.now(), n_series=1)
    figures = {"before": 100.0, "after": 112.0, "ratio": 1.12, "low": 1.1, "high": 1.14}
    SeriesFinding.objects.create(
        alert=alert,
        series=of,
        kind=AlertKind.DRIFT,
        revision=revision(),
        n_before=60,
        n_after=60,
        examined_at=timezone.now(),
        **figures,
    )
    row, moment = lead(), timezone.now()
    earlier = digest.build_digest(row, moment - 2 * WEEK, moment - WEEK, is_test=False)
    later = digest.build_digest(row, moment - WEEK, moment + DAY, is_test=False)
    title = "Drifts, changes of spread, second modes"
    assert (titles(earlier).get(title), titles(later).get(title)) == (None, 1)
