"""Alerts in Slack and Microsoft Teams: in their formats, within their limits, without pings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from ipaddress import ip_network
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from django.utils import timezone

from codegen_app.tracking.alerting.events import record_event
from codegen_app.tracking.models import (
    Alert,
    AlertKind,
    Channel,
    ChannelKind,
    Delivery,
    DeliveryState,
    EventKind,
    MachineFinding,
)
from codegen_app.tracking.notifying import channels, email, sender, slack, teams, webhook
from codegen_app.tracking.notifying.message import Message, build_message
from codegen_app.tracking.notifying.wording import series_title
from scheduler.errors import UserError
from tests.app.track_factories import change, channel, missing, regression, series
from tests.support.patience import PATIENCE_S
from tests.support.receivers import Answer, HttpReceiver, http_receiver

pytestmark = pytest.mark.django_db
CHATS = [ChannelKind.SLACK, ChannelKind.TEAMS]
PING = "<!channel> @here <at>all</at> *a* & [x](https://evil.example)"


@pytest.fixture
def receiver(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpReceiver]:
    settings.SECRET_KEY_GIVEN = False  # chats need no signature
    settings.SITE_URL = "https://kiln.example"
    settings.WEBHOOK_NETWORKS = [ip_network("127.0.0.0/8")]
    monkeypatch.setattr(webhook, "post", partial(webhook.post, within_s=PATIENCE_S))
    with http_receiver() as made:
        yield made


@pytest.fixture(autouse=True)
def _address(settings: Any) -> None:
    settings.SITE_URL = "https://kiln.example"


def raised(problem: str = "gemm", n: int = 1, **fields: Any) -> Message:
    """The message of an alert of that many series."""
    to, alert = channel(search=""), regression()
    for number in range(n):
        change(f"{problem}{number or ''}", alert=alert, **fields)
    alert.n_series = n
    alert.save()
    record_event(alert, EventKind.RAISED)
    delivery = Delivery.objects.select_related("channel", "event__alert__revision").get(channel=to)
    return build_message(delivery)


def texts_of(content: bytes) -> list[str]:
    """All text of a message, as the service shows it."""
    found: list[str] = []

    def walk(part: Any) -> None:
        if isinstance(part, dict):
            found.extend(
                value
                for key, value in part.items()
                if key == "text" and value is not None and isinstance(value, str)
            )
            part = list(part.values())
        if isinstance(part, list):
            for one in part:
                walk(one)

    walk(json.loads(content))
    return found


@pytest.mark.parametrize("kind", CHATS)
def test_an_alert_is_posted_in_the_chats_format(kind: ChannelKind, receiver: HttpReceiver) -> None:
    to = channel(kind=kind, address=receiver.url, key_salt="")
    alert = regression("gemm")
    moved = alert.changes.get()
    record_event(alert, EventKind.RAISED)
    receiver.answers = [Answer(200, body=b"ok")]
    sender.send_due()
    request = receiver.next()
    assert request.headers["content-type"] == "application/json"
    assert "kiln-signature" not in request.headers
    text = " ".join(texts_of(request.body))
    assert "regression in 1 series up to \N{MULTIPLICATION SIGN}1.250" in text
    assert "100 → 125 ns" in text
    assert f"https://kiln.example/alerts/{alert.pk}" in request.body.decode()
    assert f"https://kiln.example/changes/{moved.pk}" in request.body.decode()
    assert Delivery.objects.get(channel=to).state == DeliveryState.DELIVERED


@pytest.mark.parametrize("kind", CHATS)
def test_a_test_message_says_that_it_is_one(kind: ChannelKind, receiver: HttpReceiver) -> None:
    to = channel(kind=kind, address=receiver.url, key_salt="", name="perf <team>")
    channels.send_test(User.objects.create_user("ada"), to)
    sender.send_due()
    text = " ".join(texts_of(receiver.next().body))
    assert "test message" in text


def test_slack_gets_blocks_and_a_text_for_notifications() -> None:
    sent = json.loads(slack.body(raised()))
    kinds = [block["type"] for block in sent["blocks"]]
    assert kinds == ["header", "section", "section", "context"]
    assert sent["text"] == sent["blocks"][0]["text"]["text"]
    for block in sent["blocks"][1:3]:
        assert (block["text"]["type"], block["text"]["verbatim"]) == ("mrkdwn", True)


def test_names_ping_nobody_in_slack() -> None:
    content = slack.body(raised(PING))
    for text in texts_of(content):
        bare = text.replace("<https://kiln.example/", "")
        assert "<" not in bare, text
    assert "&lt;!channel&gt; @here" in content.decode()
    assert "&amp; [x]" in content.decode()
    header = json.loads(content)["blocks"][0]["text"]
    assert header["type"] == "plain_text"


def test_names_are_plain_runs_of_text_in_teams() -> None:
    sent = json.loads(teams.body(raised(PING)))
    [attachment] = sent["attachments"]
    assert (sent["type"], attachment["contentType"]) == (
        "message",
        "application/vnd.microsoft.card.adaptive",
    )
    card = attachment["content"]
    assert card["type"] == "AdaptiveCard"
    assert {block["type"] for block in card["body"]} == {"RichTextBlock"}
    runs = [run for block in card["body"] for run in block["inlines"]]
    assert {run["type"] for run in runs} == {"TextRun"}
    assert any(PING in run["text"] for run in runs)
    assert "entities" not in card["msteams"], "without entities, no text is a mention"
    assert next(action["url"] for action in card["actions"]).startswith("https://kiln.example/")


@pytest.mark.parametrize("n", [1, 60])
def test_messages_stay_within_the_services_limits(n: int) -> None:
    message = raised("&" * 450, n, cause="code", explanation={"reasons": ["<" * 900]})
    blocks = json.loads(slack.body(message))["blocks"]
    assert len(blocks) <= slack.MAX_BLOCKS
    for block in blocks:
        if block["type"] == "section":
            assert 0 < len(block["text"]["text"]) <= slack.MAX_SECTION
    assert len(blocks[0]["text"]["text"]) <= slack.MAX_HEADER
    card = teams.body(message)
    assert len(card) <= teams.MAX_BYTES
    if n > 1:
        assert "series more." in card.decode()
        assert "series more." in slack.body(message).decode()


def test_wide_characters_count_as_bytes_in_teams() -> None:
    assert len(teams.body(raised("\N{FIRE}" * 400, 50))) <= teams.MAX_BYTES


def test_what_was_not_measured_is_marked_everywhere() -> None:
    generated = raised(series=series(device_name="generated device"))
    Channel.objects.all().delete()
    emulated = raised(series=series(target="cpu"))
    for message, mark in ((generated, "generated, not measured"), (emulated, "emulated")):
        assert mark in series_title(message.series[0])
        for content in (slack.body(message), teams.body(message)):
            assert mark in " ".join(texts_of(content))
        assert mark in email.text(message)


def test_a_machine_is_described_in_chats() -> None:
    to = channel(search="", alerts=[AlertKind.MACHINE])
    alert = Alert.objects.create(
        kind=AlertKind.MACHINE, machine="gpu-<3>", at=timezone.now(), n_series=12
    )
    figures = {"ratio": 1.3, "low": 1.28, "high": 1.32, "n_measured": 14}
    MachineFinding.objects.create(alert=alert, host="gpu-<3>", readings=[], **figures)
    record_event(alert, EventKind.RAISED)
    delivery = Delivery.objects.select_related("channel", "event__alert").get(channel=to)
    message = build_message(delivery)
    text = " ".join(texts_of(slack.body(message)))
    assert "Machine: gpu-&lt;3&gt;, 12 of 14 series measured there" in text
    text = " ".join(texts_of(teams.body(message)))
    assert "Machine: gpu-<3>, 12 of 14 series measured there" in text
    assert "set aside" in text


def test_missing_data_is_said_in_chats() -> None:
    to = channel(search="", alerts=[AlertKind.MISSING])
    record_event(missing(), EventKind.RAISED)
    delivery = Delivery.objects.select_related("channel", "event__alert__series").get(channel=to)
    message = build_message(delivery)
    for content in (slack.body(message), teams.body(message)):
        assert "missing data of gemm on NVIDIA H200" in " ".join(texts_of(content))


def test_without_the_sites_address_there_are_no_broken_links(settings: Any) -> None:
    settings.SITE_URL = ""
    message = raised()
    assert "</" not in slack.body(message).decode()
    assert "OpenUrl" not in teams.body(message).decode()


def test_a_chat_channel_is_added_on_the_page_and_has_no_key(client: Client) -> None:
    admin = User.objects.create_superuser("root")
    client.force_login(admin)
    form = {
        "name": "perf chat",
        "kind": "slack",
        "address": "https://hooks.slack.com/services/T0/B0/x",
        "alerts": ["regression"],
    }
    assert client.post("/channels", form).status_code == 302
    row = Channel.objects.get()
    assert (row.kind, row.key_salt) == ("slack", "")
    page = client.get(f"/channels/{row.pk}").content.decode()
    assert "Slack" in page
    assert "Signing key" not in page
    with pytest.raises(UserError, match="Slack have no signing key"), transaction.atomic():
        channels.renew_key(admin, row)
    bad = client.post("/channels", form | {"name": "b", "address": "a@b.example"})
    assert bad.status_code == 422
