"""The pages of channels: who is told of alerts, and what became of what was sent."""

from __future__ import annotations

import re
from ipaddress import ip_network
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from codegen_app.accounts.models import AuditEntry
from codegen_app.tracking.models import AlertEvent, Channel, Delivery, DeliveryState, EventKind
from codegen_app.tracking.notifying import channels, outbox, signing
from codegen_app.tracking.pages.channels.query import channel_list, channel_page
from tests.app.track_factories import channel, regression
from tests.app.web.test_pages import WHIMSICAL, Inline
from tests.support.queries import assert_steady, queries_of

pytestmark = pytest.mark.django_db
WEBHOOK = {
    "name": "kernel team",
    "kind": "webhook",
    "address": "https://hooks.example.org/kiln?secret=1",
    "alerts": ["regression", "missing"],
    "search": "  attention   H200 ",
}


def sent(to: Channel, **fields: Any) -> Delivery:
    event = AlertEvent.objects.create(alert=regression("gemm"), kind=EventKind.RAISED)
    outbox.enqueue(event)
    Delivery.objects.filter(event=event).update(**fields)
    return Delivery.objects.get(event=event, channel=to)


def test_a_channel_is_added_changed_and_noted(tuner: Client) -> None:
    answer = tuner.post("/channels", WEBHOOK)
    made = Channel.objects.get()
    assert (answer.status_code, answer.headers["Location"]) == (302, f"/channels/{made.pk}")
    assert (made.name, made.kind, made.search) == ("kernel team", "webhook", "attention H200")
    assert (made.alerts, made.active) == (["regression", "missing"], True)
    assert made.created_by == User.objects.get(username="tuner")
    changed = {**WEBHOOK, "address": "https://other.example.org/", "kind": "email"}
    assert tuner.post(f"/channels/{made.pk}", changed).status_code == 302
    made.refresh_from_db()
    assert (made.kind, made.address) == ("webhook", "https://other.example.org/")
    entries = AuditEntry.objects.filter(action__contains="channel").values_list("action", "why")
    assert sorted(entries) == [("add channel", ""), ("change channel", "address")]
    assert "secret" not in str(list(AuditEntry.objects.values())), "an address may hold one"


def test_emails_are_addresses_one_a_line(tuner: Client) -> None:
    given = {
        **WEBHOOK,
        "kind": "email",
        "address": "ann@example.org, bob@example.org\nann@example.org",
    }
    tuner.post("/channels", given)
    made = Channel.objects.get()
    assert (made.address, made.key_salt) == ("ann@example.org\nbob@example.org", "")
    page = tuner.get(f"/channels/{made.pk}").content.decode()
    assert "Signing key" not in page


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"name": ""}, "Enter a name."),
        ({"address": ""}, "Enter a URL or e-mail addresses."),
        ({"alerts": []}, "Select at least one kind of alert."),
        ({"address": "ftp://a.example/"}, "A URL must begin with https:// or http://."),
        ({"address": "http://127.0.0.1/"}, "127.0.0.1 is not a public address"),
        ({"address": "http://[::ffff:10.0.0.1]/"}, "is not a public address"),
        ({"kind": "email", "address": "ann"}, "is not an e-mail address."),
        ({"kind": "email", "address": "a@b.example\n" * 2 + "c"}, "is not an e-mail address."),
        ({"kind": "pigeon"}, "is not one of the available choices"),
    ],
)
def test_what_cannot_be_sent_to_is_one_line(
    tuner: Client, changed: dict[str, Any], line: str
) -> None:
    answer = tuner.post("/channels", {**WEBHOOK, **changed})
    assert answer.status_code == 422
    assert line in answer.content.decode()
    assert not Channel.objects.exists()


def test_a_network_that_the_operator_allows_can_be_named(tuner: Client, settings: Any) -> None:
    settings.WEBHOOK_NETWORKS = [ip_network("10.1.0.0/16")]
    tuner.post("/channels", {**WEBHOOK, "address": "http://10.1.2.3:8080/"})
    assert Channel.objects.get().address == "http://10.1.2.3:8080/"
    assert "10.1.0.0/16" in tuner.get("/channels").content.decode()


def test_two_channels_of_one_name_are_one_too_many(tuner: Client) -> None:
    channel("kernel team")
    for address in ("/channels", f"/channels/{channel('other').pk}"):
        answer = tuner.post(address, WEBHOOK)
        assert answer.status_code == 422
        assert "already" in answer.content.decode()


def test_the_key_is_shown_to_who_may_change_it_and_in_no_json(tuner: Client) -> None:
    made = channel()
    key = signing.key(made.key_salt)
    page = tuner.get(f"/channels/{made.pk}")
    assert key in page.content.decode()
    assert page.headers["Cache-Control"] == "no-store"
    assert key not in tuner.get("/channels").content.decode()
    for address in ("/channels.json", f"/channels/{made.pk}.json"):
        text = tuner.get(address).content.decode()
        assert key not in text
        assert made.key_salt not in text
    tuner.post(f"/channels/{made.pk}/key")
    made.refresh_from_db()
    assert signing.key(made.key_salt) != key
    assert AuditEntry.objects.filter(action="renew channel key").exists()


def test_a_key_of_another_secret_is_said_so(tuner: Client, settings: Any) -> None:
    made = channel()
    Channel.objects.update(key_salt="x" * 30)
    page = tuner.get(f"/channels/{made.pk}").content.decode()
    assert "created with another KILN_SECRET_KEY: renew it" in page


def test_a_test_waits_to_be_sent_and_is_listed(tuner: Client) -> None:
    made = channel()
    page = tuner.post(f"/channels/{made.pk}/test", {"page": "channel"}, follow=True)
    assert page.redirect_chain == [(f"/channels/{made.pk}", 302)]
    assert "A test to team is queued" in page.content.decode()
    assert Delivery.objects.get().event is None
    [row] = tuner.get("/channels.json").json()["deliveries"]
    assert (row["event"], row["state"], row["channel_name"]) == ("test", "pending", "team")


def test_switched_off_nothing_is_sent_and_the_page_says_so(tuner: Client) -> None:
    made = channel()
    sent(made)
    page = tuner.post(f"/channels/{made.pk}/switch", {"on": "0"}, follow=True).content.decode()
    assert "team is switched off." in page
    assert Delivery.objects.get().error == "the channel was switched off"
    assert tuner.get("/channels.json").json()["channels"][0]["active"] is False
    refused = tuner.post(f"/channels/{made.pk}/test", follow=True).content.decode()
    assert "switch it on to test it" in refused
    tuner.post(f"/channels/{made.pk}/switch", {"on": "1"})
    made.refresh_from_db()
    assert made.active


def test_what_failed_is_listed_with_its_error_and_tried_again(tuner: Client) -> None:
    made = channel()
    failed = sent(made, state="failed", attempts=3, status=410, error="HTTP 410")
    page = tuner.get("/channels?state=failed").content.decode()
    assert "HTTP 410" in page
    assert f'href="/alerts/{failed.event.alert_id}"' in page  # type: ignore[union-attr]
    tuner.post(f"/deliveries/{failed.pk}/again")
    failed.refresh_from_db()
    assert failed.state == DeliveryState.PENDING
    assert failed.next_at <= timezone.now()
    assert AuditEntry.objects.filter(action="send again").count() == 1
    Delivery.objects.update(state="delivered")
    again = tuner.post(f"/deliveries/{failed.pk}/again", follow=True).content.decode()
    assert "It has already been delivered." in again


def test_deliveries_are_narrowed_to_a_state(tuner: Client) -> None:
    made = channel()
    sent(made, state="failed")
    sent(made, state="delivered")
    assert len(tuner.get("/channels.json").json()["deliveries"]) == 2
    [row] = tuner.get(f"/channels/{made.pk}.json?state=failed").json()["deliveries"]
    assert row["state"] == "failed"
    page = tuner.get("/channels?state=late").content.decode()
    assert "state: unknown value late. Choices: pending, delivered, failed." in page


def test_what_is_not_there_is_not_found(tuner: Client) -> None:
    assert tuner.get("/channels/7").status_code == 404
    for address in ("/channels/7/test", "/channels/7/switch", "/deliveries/7/again"):
        assert tuner.post(address).status_code == 404, address


def test_nobody_reads_or_changes_channels_without_the_permission(reader: Client) -> None:
    made = channel()
    for address in ("/channels", "/channels.json", f"/channels/{made.pk}"):
        answer = reader.get(address)
        assert answer.status_code == 403
        assert "hooks" not in answer.content.decode()
    assert reader.post(f"/channels/{made.pk}/key").status_code == 403


def test_pages_are_what_the_policy_allows_and_text_stays_text(tuner: Client) -> None:
    evil = "</td><script>alert(1)</script>"
    made = channel(evil, address="https://a.example/" + evil, search=evil)
    sent_of = Delivery.objects.create(
        channel=made, key="5f0c2c52-6d1c-4d5e-9d0b-6d2e5a5d9a11", next_at=timezone.now(), error=evil
    )
    assert sent_of.error == evil
    for address in ("/channels", f"/channels/{made.pk}"):
        page = tuner.get(address).content.decode()
        inline = Inline()
        inline.feed(page)
        assert inline.found == [], address
        assert evil not in page
        assert re.findall(WHIMSICAL, re.sub(r"<[^>]*>", " ", page.lower())) == [], address


def test_an_empty_page_says_what_to_do(tuner: Client) -> None:
    page = tuner.get("/channels").content.decode()
    assert "No channels yet: add one below to be notified of alerts." in page
    assert "No deliveries yet" in page


def test_pages_cost_as_many_queries_however_many_rows_there_are() -> None:
    counts = []
    for more in (1, 5):
        for _ in range(more):
            made = channel(f"channel {Channel.objects.count()}")
            sent(made)
        counts.append([queries_of(channel_list), queries_of(channel_page, made.pk)])
    assert_steady(*counts, usual=[2, 2])
    assert len(channel_list().channels) == 6
    assert channel_page(made.pk).deliveries


def test_services_are_in_one_transaction_with_their_audit_entry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    person = User.objects.create_user("ann")

    def fails(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    made = channel()
    monkeypatch.setattr(channels.audit, "record", fails)
    for act in (
        lambda: channels.add_channel(person, {"name": "x", "kind": "email", "alerts": ["missing"]}),
        lambda: channels.set_active(person, made, on=False),
        lambda: channels.send_test(person, made),
    ):
        with pytest.raises(ZeroDivisionError):
            act()
    assert list(Channel.objects.values_list("name", "active")) == [("team", True)]
    assert not Delivery.objects.exists()
