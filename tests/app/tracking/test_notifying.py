"""People are told of alerts: once, signed as the docs say, and again where it failed for now."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from ipaddress import ip_network
from queue import Empty
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import F
from django.utils import timezone

from codegen_app import tasks
from codegen_app.site import queued_work
from codegen_app.tracking.models import (
    AlertEvent,
    AlertKind,
    Channel,
    ChannelKind,
    Delivery,
    DeliveryState,
    EventKind,
)
from codegen_app.tracking.notifying import channels, outbox, sender, signing, webhook
from codegen_app.tracking.notifying.attempt import Attempt
from codegen_app.workers import queue
from scheduler.errors import UserError
from tests.app.track_factories import channel, missing, regression
from tests.support.patience import PATIENCE_S
from tests.support.ports import free_port
from tests.support.queries import queries_of
from tests.support.receivers import (
    Answer,
    HttpReceiver,
    Request,
    SmtpReceiver,
    http_receiver,
    smtp_receiver,
)

pytestmark = pytest.mark.django_db
DAY, HOUR = timedelta(days=1), timedelta(hours=1)


@pytest.fixture
def receiver(settings: Any) -> Iterator[HttpReceiver]:
    settings.SECRET_KEY_GIVEN = True
    settings.SITE_URL = "https://kiln.example"
    settings.WEBHOOK_NETWORKS = [ip_network("127.0.0.0/8")]
    with http_receiver() as made:
        yield made


@pytest.fixture
def mailbox(settings: Any) -> Iterator[SmtpReceiver]:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.SITE_URL = "https://kiln.example"
    with smtp_receiver() as made:
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", made.port
        settings.EMAIL_TIMEOUT = PATIENCE_S
        settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
        settings.DEFAULT_FROM_EMAIL = "Kiln <kiln@kiln.example>"
        yield made


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A receiver of this process answers, however late."""
    monkeypatch.setattr(webhook, "post", partial(webhook.post, within_s=PATIENCE_S))
    monkeypatch.setattr(webhook, "_CONNECT_S", PATIENCE_S)


@pytest.fixture
def person() -> User:
    return User.objects.create_user("ann")


def raised(*problems: str, kind: EventKind = EventKind.RAISED, **fields: Any) -> AlertEvent:
    alert = regression(*(problems or ("gemm",)), **fields)
    event = AlertEvent.objects.create(alert=alert, kind=kind)
    outbox.enqueue(event)
    return event


def delivery() -> Delivery:
    return Delivery.objects.get()


def due_again() -> None:
    """What waits for its time is due."""
    Delivery.objects.filter(state="pending").update(next_at=timezone.now())


# What the documentation tells receivers to do, and nothing of ours.
def is_genuine(key: str, request: Request, now: float) -> bool:
    timestamp = request.headers["kiln-timestamp"]
    signed = timestamp.encode() + b"." + request.body
    expected = "v1=" + hmac.new(key.encode(), signed, hashlib.sha256).hexdigest()
    fresh = abs(now - int(timestamp)) < 300
    return fresh and hmac.compare_digest(expected, request.headers["kiln-signature"])


def test_a_webhook_says_what_changed_and_is_signed(receiver: HttpReceiver) -> None:
    to = channel(address=receiver.url)
    event = raised("gemm", "attention")
    tasks.notify()
    request = receiver.next(0)
    assert is_genuine(signing.key(to.key_salt), request, timezone.now().timestamp())
    assert request.headers["content-type"] == "application/json"
    assert request.headers["kiln-event"] == "raised"
    body = json.loads(request.body)
    sent = delivery()
    assert (sent.state, sent.attempts, sent.status, sent.error) == ("delivered", 1, 204, "")
    assert sent.ended_at is not None
    assert body["delivery"] == request.headers["kiln-delivery"] == str(sent.key)
    alert = event.alert
    assert body["alert"]["url"] == f"https://kiln.example/alerts/{alert.pk}"
    assert (body["alert"]["kind"], body["alert"]["state"]) == ("regression", "new")
    assert (body["alert"]["cause"], body["alert"]["n_series"]) == ("code", 2)
    assert body["revision"]["name"] == alert.revision.name  # type: ignore[union-attr]
    first, second = body["series"]
    assert (first["problem"], first["device"], first["unit"]) == ("gemm", "NVIDIA H200", "ns")
    moved = first["change"]
    assert (moved["before"], moved["after"], moved["ratio"]) == (100, 125, 1.25)
    assert (moved["ratio_low"], moved["ratio_high"]) == (1.23, 1.27)
    assert (moved["n_before"], moved["n_after"], moved["cause"]) == (12, 5, "code")
    assert moved["source"] == "api"
    assert (second["problem"], second["change"]["ratio"]) == ("attention", 1.24)


def test_a_forged_or_changed_message_is_seen(receiver: HttpReceiver) -> None:
    to = channel(address=receiver.url)
    raised()
    sender.send_due()
    request, key = receiver.next(0), signing.key(to.key_salt)
    now = timezone.now().timestamp()
    other = Request("POST", "/", request.headers, request.body.replace(b"gemm", b"gemv"))
    assert not is_genuine(key, other, now)
    later = {**request.headers, "kiln-timestamp": str(int(now) + 5)}
    assert not is_genuine(key, Request("POST", "/", later, request.body), now)
    assert not is_genuine(signing.key(signing.new_salt()), request, now)
    assert not is_genuine(key, request, now + 3600), "an old one that is sent once more"


def test_missing_data_says_since_when(receiver: HttpReceiver, mailbox: SmtpReceiver) -> None:
    kinds = [AlertKind.MISSING]
    channel(address=receiver.url, alerts=kinds)
    channel("mail", kind=ChannelKind.EMAIL, address="ann@example.org", alerts=kinds)
    alert = missing(problem="softmax", last_at="2026-01-02T03:04Z")
    outbox.enqueue(AlertEvent.objects.create(alert=alert, kind=EventKind.RAISED))
    sender.send_due()
    body = json.loads(receiver.next(0).body)
    assert body["revision"] is None
    [series] = body["series"]
    assert (series["problem"], series["change"]) == ("softmax", None)
    assert series["last_point_at"] == "2026-01-02T03:04:00+00:00"
    mail = mailbox.next(0).message
    assert mail["Subject"] == "[Kiln] missing data of softmax on NVIDIA H200"
    assert "no new point since 2026-01-02 03:04 UTC" in mail.get_content()


def test_an_email_says_the_same_in_plain_text(mailbox: SmtpReceiver) -> None:
    to = "ann@example.org\nbob@example.org"
    channel("mail", kind=ChannelKind.EMAIL, address=to)
    event = raised("gemm", "attention")
    sender.send_due()
    mail = mailbox.next(0)
    assert (mail.sender, mail.recipients) == (
        "kiln@kiln.example",
        ("ann@example.org", "bob@example.org"),
    )
    name = event.alert.revision.name[:12]  # type: ignore[union-attr]
    assert mail.message["Subject"] == (
        "[Kiln] regression in 2 series up to x1.250 (95%: 1.230 - 1.270; n 12, 5)"
        f" since {name} (code)"
    )
    assert mail.message["Message-ID"] == f"<{delivery().key}@kiln.example>"
    assert mail.message.get_content_type() == "text/plain"
    text = mail.message.get_content()
    for line in (
        f"https://kiln.example/alerts/{event.alert_id}",
        "time of gemm on NVIDIA H200",
        "100 -> 125 ns, x1.250 (95%: 1.230 - 1.270; n 12, 5)",
        "sent with a token",
    ):
        assert line in text
    assert delivery().state == DeliveryState.DELIVERED


def test_too_few_values_for_an_interval_are_said_so(mailbox: SmtpReceiver) -> None:
    channel("mail", kind=ChannelKind.EMAIL, address="ann@example.org")
    event = raised("gemm")
    event.alert.changes.update(low=None, high=None)
    sender.send_due()
    assert "x1.250 (insufficient data; n 12, 5)" in mailbox.next(0).message.get_content()


def test_text_of_others_ends_no_header_and_no_line(mailbox: SmtpReceiver) -> None:
    channel("mail", kind=ChannelKind.EMAIL, address="ann@example.org", alerts=[AlertKind.MISSING])
    alert = missing(problem="a\r\nBcc: eve@example.org\r\n\r\nx", device_name="b\nState: fixed")
    outbox.enqueue(AlertEvent.objects.create(alert=alert, kind=EventKind.RAISED))
    sender.send_due()
    mail = mailbox.next(0)
    assert mail.recipients == ("ann@example.org",)
    assert "Bcc" not in mail.message
    assert "State: fixed" not in mail.message.get_content().splitlines()


def test_a_temporary_failure_is_tried_again_later_with_the_same_key(
    receiver: HttpReceiver,
) -> None:
    channel(address=receiver.url)
    raised()
    receiver.answers = [Answer(503)]
    before = timezone.now()
    assert sender.send_due() == 1
    waiting = delivery()
    assert (waiting.state, waiting.attempts, waiting.status) == ("pending", 1, 503)
    assert waiting.error == "HTTP 503"
    assert before + timedelta(seconds=7) < waiting.next_at < timezone.now() + timedelta(seconds=11)
    Delivery.objects.update(next_at=F("next_at") + HOUR)
    assert sender.send_due() == 0, "not before its time"
    due_again()
    assert sender.send_due() == 1
    assert (delivery().state, delivery().attempts, delivery().error) == ("delivered", 2, "")
    assert receiver.next(0).headers["kiln-delivery"] == receiver.next(0).headers["kiln-delivery"]


def test_waits_grow_up_to_a_bound_and_differ() -> None:
    assert 7.5 <= sender.backoff_s(1) <= 10
    assert 22.5 <= sender.backoff_s(2) <= 30
    assert 2700 <= sender.backoff_s(7) <= 3600
    assert sender.backoff_s(10_000) <= 3600
    assert len({sender.backoff_s(5) for _ in range(10)}) > 1
    assert sender.backoff_s(1, asked_s=900) == 900
    assert sender.backoff_s(1, asked_s=1e12) == 6 * 3600, "nobody keeps us from trying for ever"


def test_after_a_day_it_is_given_up(receiver: HttpReceiver) -> None:
    channel(address=receiver.url)
    raised()
    Delivery.objects.update(created_at=F("created_at") - DAY, attempts=29)
    receiver.answers = [Answer(503)]
    sender.send_due()
    assert delivery().state == DeliveryState.FAILED
    assert delivery().error == "given up after 30 attempts: HTTP 503"


def test_a_permanent_failure_is_failed_at_once_in_one_line(receiver: HttpReceiver) -> None:
    channel(address=receiver.url)
    raised()
    receiver.answers = [Answer(410)]
    sender.send_due()
    gone = delivery()
    assert (gone.state, gone.attempts, gone.status, gone.error) == ("failed", 1, 410, "HTTP 410")


def test_nothing_is_sent_into_the_own_network(receiver: HttpReceiver, settings: Any) -> None:
    settings.WEBHOOK_NETWORKS = []
    channel(address=receiver.url)
    raised()
    sender.send_due()
    assert delivery().state == DeliveryState.FAILED
    assert "the operator can allow its network" in delivery().error
    with pytest.raises(Empty):
        receiver.next(0)


@pytest.mark.parametrize(
    ("command", "reply", "state", "error"),
    [
        (
            "RCPT",
            "450 greylisted",
            "pending",
            "rejected for ann@example.org (SMTP 450: greylisted)",
        ),
        ("RCPT", "550 nobody", "failed", "rejected for ann@example.org (SMTP 550: nobody)"),
        ("MAIL", "421 too many", "pending", "SMTP 421: too many"),
        ("MAIL", "553 no", "failed", "SMTP 553: no"),
        ("DATA", "451 later", "pending", "SMTP 451: later"),
        ("DATA", "554 spam", "failed", "SMTP 554: spam"),
    ],
)
def test_replies_of_4xx_are_tried_again_and_of_5xx_are_not(
    mailbox: SmtpReceiver, command: str, reply: str, state: str, error: str
) -> None:
    channel("mail", kind=ChannelKind.EMAIL, address="ann@example.org")
    raised()
    mailbox.replies = {command: reply}
    sender.send_due()
    assert (delivery().state, delivery().error) == (state, error)


def test_an_address_that_is_turned_down_keeps_the_others_from_nothing(
    mailbox: SmtpReceiver,
) -> None:
    channel("mail", kind=ChannelKind.EMAIL, address="ann@example.org\nbob@example.org")
    raised()
    mailbox.replies = {"RCPT TO:<bob": "550 nobody"}
    sender.send_due()
    assert mailbox.next(0).recipients == ("ann@example.org",)
    sent = delivery()
    assert (sent.state, sent.error) == (
        "delivered",
        "rejected for bob@example.org (SMTP 550: nobody)",
    )


def test_a_mail_server_that_is_away_is_tried_again(mailbox: SmtpReceiver, settings: Any) -> None:
    settings.EMAIL_PORT = free_port()
    channel("mail", kind=ChannelKind.EMAIL, address="ann@example.org")
    raised()
    sender.send_due()
    assert delivery().state == DeliveryState.PENDING
    assert "sending through 127.0.0.1" in delivery().error


def test_without_a_mail_server_it_is_said_what_to_set(settings: Any) -> None:
    settings.EMAIL_HOST = ""
    channel("mail", kind=ChannelKind.EMAIL, address="ann@example.org")
    raised()
    sender.send_due()
    assert (delivery().state, delivery().error) == (
        "failed",
        "no mail server is configured (KILN_EMAIL_HOST)",
    )


def test_a_process_without_the_sites_secret_leaves_webhooks_to_others(
    receiver: HttpReceiver, settings: Any
) -> None:
    settings.SECRET_KEY_GIVEN = False
    channel(address=receiver.url)
    raised()
    assert sender.send_due() == 0
    settings.SECRET_KEY_GIVEN = True
    settings.SECRET_KEY = "another secret than the site's, as long as it"
    sender.send_due()
    assert delivery().state == DeliveryState.PENDING
    assert "another KILN_SECRET_KEY" in delivery().error
    with pytest.raises(Empty):
        receiver.next(0)


def test_a_key_stays_while_its_secret_is_a_fallback(settings: Any) -> None:
    salt = signing.new_salt()
    before = signing.key(salt)
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "the next secret, which is as long as the one before"
    assert signing.key(salt) == before
    settings.SECRET_KEY_FALLBACKS = []
    with pytest.raises(signing.OtherSecretError):
        signing.key(salt)


@pytest.mark.django_db(transaction=True)
def test_of_many_workers_one_sends(receiver: HttpReceiver) -> None:
    channel(address=receiver.url)
    events = [raised() for _ in range(6)]

    def work() -> None:
        sender.send_due()
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    keys = {receiver.next(0).headers["kiln-delivery"] for _ in events}
    assert len(keys) == len(events)
    with pytest.raises(Empty):
        receiver.next(0)
    assert set(Delivery.objects.values_list("state", "attempts")) == {("delivered", 1)}


def test_who_dies_between_sending_and_noting_is_followed_with_the_same_key(
    receiver: HttpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel(address=receiver.url)
    raised()

    def killed(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as dying:
        dying.setattr(sender, "record_attempt", killed)
        with pytest.raises(SystemExit):
            sender.send_due()
    assert delivery().state == DeliveryState.PENDING
    assert sender.send_due() == 0, "it may be on its way: nobody else begins before the lease ends"
    due_again()
    sender.send_due()
    assert delivery().state == DeliveryState.DELIVERED
    assert receiver.next(0).headers["kiln-delivery"] == receiver.next(0).headers["kiln-delivery"]


def test_who_comes_back_after_the_lease_notes_nothing(receiver: HttpReceiver) -> None:
    channel(address=receiver.url)
    raised()
    late = sender.claim([])
    assert late is not None
    due_again()
    sender.send_due()
    sender.record_attempt(late, Attempt.permanent("late"))
    assert (delivery().state, delivery().error) == ("delivered", "")


def test_a_receiver_that_is_away_is_asked_once_for_all_and_holds_up_nobody(
    receiver: HttpReceiver,
) -> None:
    with http_receiver() as away:
        away.answers = [Answer(503)] * 9
        channel("away", address=away.url)
        channel("here", address=receiver.url)
        for _ in range(3):
            raised()
        sender.send_due()
        away.next(0)
        with pytest.raises(Empty):
            away.next(0)
    states = Delivery.objects.order_by("channel__name", "pk").values_list("state", "attempts")
    assert list(states) == [("pending", 1)] + [("pending", 0)] * 2 + [("delivered", 1)] * 3
    waiting = Delivery.objects.filter(state="pending")
    assert len(set(waiting.values_list("next_at", flat=True))) == 1


def test_a_clock_that_was_set_back_does_not_hold_a_message(receiver: HttpReceiver) -> None:
    channel(address=receiver.url)
    raised()
    Delivery.objects.update(next_at=timezone.now() + 30 * DAY)
    assert sender.send_due() == 1


def test_a_message_that_cannot_be_made_is_seen_and_not_tried_for_ever(
    receiver: HttpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel(address=receiver.url)
    raised()
    monkeypatch.setattr(sender.message, "build_message", lambda _: 1 / 0)
    sender.send_due()
    assert delivery().state == DeliveryState.FAILED
    assert delivery().error == "internal error: ZeroDivisionError: division by zero"


def test_an_attempt_that_fails_by_a_fault_of_its_own_is_seen(
    receiver: HttpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel(address=receiver.url)
    raised()

    def fails(*_: object) -> Attempt:
        raise ZeroDivisionError("of ours")

    monkeypatch.setattr(webhook, "post", fails)
    sender.send_due()
    assert delivery().error == "internal error: ZeroDivisionError: of ours"


def test_an_alert_of_many_series_costs_no_more_queries(receiver: HttpReceiver) -> None:
    channel(address=receiver.url)
    counts = []
    for problems in (["gemm"], ["gemm"] * 60):
        raised(*problems)
        counts.append(queries_of(sender.send_due))
    assert counts[0] == counts[1]
    receiver.next(0)
    body = json.loads(receiver.next(0).body)
    assert (len(body["series"]), body["alert"]["n_series"]) == (50, 60)


def test_a_test_is_sent_as_all_others_are(receiver: HttpReceiver, person: User) -> None:
    to = channel(address=receiver.url)
    channels.send_test(person, to)
    sender.send_due()
    request = receiver.next(0)
    assert is_genuine(signing.key(to.key_salt), request, timezone.now().timestamp())
    body = json.loads(request.body)
    assert (body["event"], body["alert"], body["series"]) == ("test", None, [])


def test_tests_do_not_pile_up(person: User) -> None:
    to = channel()
    for _ in range(3):
        channels.send_test(person, to)
    with pytest.raises(UserError, match="pending tests"):
        channels.send_test(person, to)


def test_what_waits_for_a_channel_that_is_switched_off_is_not_sent(
    receiver: HttpReceiver, person: User
) -> None:
    to = channel(address=receiver.url)
    raised()
    assert channels.set_active(person, to, on=False)
    assert not channels.set_active(person, to, on=False)
    assert sender.send_due() == 0
    assert (delivery().state, delivery().error) == ("failed", "the channel was switched off")
    to.refresh_from_db()
    with pytest.raises(UserError, match="switch it on"):
        channels.send_test(person, to)


def test_what_failed_is_tried_once_more_when_somebody_asks(
    receiver: HttpReceiver, person: User
) -> None:
    channel(address=receiver.url)
    raised()
    receiver.answers = [Answer(404)]
    sender.send_due()
    assert channels.retry(person, delivery())
    sender.send_due()
    assert (delivery().state, delivery().attempts) == ("delivered", 2)
    assert not channels.retry(person, delivery()), "once is enough"


def test_another_key_signs_from_now_on(receiver: HttpReceiver, person: User) -> None:
    to = channel(address=receiver.url)
    before = signing.key(to.key_salt)
    channels.renew_key(person, to)
    raised()
    sender.send_due()
    request, now = receiver.next(0), timezone.now().timestamp()
    assert is_genuine(signing.key(Channel.objects.get().key_salt), request, now)
    assert not is_genuine(before, request, now)


def test_workers_are_woken_when_the_event_is_committed_and_by_the_round(
    monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    woken: list[tuple[str, int]] = []
    monkeypatch.setattr(queue, "_send", lambda kind, _q, _a, count: woken.append((kind, count)))
    channel()
    with django_capture_on_commit_callbacks(execute=True):
        raised()
        assert woken == []
    assert woken == [("notify", 1)]
    with django_capture_on_commit_callbacks(execute=True):
        queued_work.notify_workers()
    assert woken == [("notify", 1)] * 2
