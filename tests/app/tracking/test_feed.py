"""The feed of alerts: valid Atom, by a login or a token, and only when something changed."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Any
from xml.etree import ElementTree

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from codegen_app.accounts import tokens
from codegen_app.tracking.models import Alert, AlertEvent, EventKind
from codegen_app.tracking.pages.alerts.feed import MAX_ENTRIES, feed_entries
from tests.app.track_factories import missing, regression
from tests.support.queries import assert_steady, queries_of

pytestmark = pytest.mark.django_db
ATOM = "{http://www.w3.org/2005/Atom}"


def feed(client: Client, query: str = "") -> ElementTree.Element:
    answer = client.get(f"/alerts.atom{query}")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/atom+xml; charset=utf-8"
    return ElementTree.fromstring(answer.content)


@pytest.fixture(autouse=True)
def site_url(settings: Any) -> None:
    settings.SITE_URL = "https://kiln.example"


def test_without_an_address_of_the_site_there_is_no_feed(reader: Client, settings: Any) -> None:
    """An entry needs a whole address, and a request's host is whatever its client writes."""
    settings.SITE_URL = ""
    answer = reader.get("/alerts.atom")
    assert answer.status_code == 503
    assert "KILN_SITE_URL" in answer.content.decode()


def titles(client: Client, query: str = "") -> list[str]:
    return [one.findtext(f"{ATOM}title", "") for one in feed(client, query).iter(f"{ATOM}entry")]


@pytest.fixture
def owner() -> User:
    user = User.objects.create_user("owner")
    user.user_permissions.add(Permission.objects.get(codename="make_tokens"))
    return user


def test_the_feed_has_what_rfc_4287_asks_for(reader: Client) -> None:
    alert = regression("gemm", "attention")
    missing(problem="a < b & c\x07")
    root = feed(reader)
    assert root.tag == f"{ATOM}feed"
    for name in ("id", "title", "updated"):
        assert len(root.findall(ATOM + name)) == 1, name
    [itself] = [one.get("href") for one in root.findall(f"{ATOM}link") if one.get("rel") == "self"]
    assert itself == root.findtext(f"{ATOM}id") == "https://kiln.example/alerts.atom"
    found = root.findall(f"{ATOM}entry")
    assert len({entry.findtext(f"{ATOM}id") for entry in found}) == len(found) == 2
    for entry in found:
        for name in ("id", "title", "updated", "published", "author", "summary"):
            assert len(entry.findall(ATOM + name)) == 1, name
        assert entry.findtext(f"{ATOM}id", "").startswith("urn:uuid:")
        assert entry.findtext(f"{ATOM}author/{ATOM}name")
        for name in ("updated", "published"):
            assert datetime.fromisoformat(entry.findtext(ATOM + name, "")).tzinfo is not None
    of_missing, of_regression = found
    assert of_missing.findtext(f"{ATOM}title") == (
        "Missing data: time of a < b & c\N{REPLACEMENT CHARACTER} on NVIDIA H200"
    )
    moved = "\N{MULTIPLICATION SIGN}1.250 (95%: 1.230 \N{EN DASH} 1.270; n 12, 5)"
    title = f"Regression in 2 series up to {moved} since {alert.revision}"
    assert of_regression.findtext(f"{ATOM}title") == title
    link = of_regression.find(f"{ATOM}link")
    assert link is not None
    assert link.get("href") == f"https://kiln.example/alerts/{alert.pk}"
    terms = {one.get("term") for one in of_regression.findall(f"{ATOM}category")}
    assert terms == {"regression", "new"}


def test_ids_stay_whatever_happens_and_whatever_the_site_is_called(
    reader: Client, settings: Any
) -> None:
    alert = regression("gemm")
    first = feed(reader).find(f"{ATOM}entry")
    settings.SITE_URL = "https://other.example"
    Alert.objects.update(state="fixed", n_series=9)
    AlertEvent.objects.create(alert=alert, kind=EventKind.STATE)
    second = feed(reader).find(f"{ATOM}entry")
    assert first is not None
    assert second is not None
    assert first.findtext(f"{ATOM}id") == second.findtext(f"{ATOM}id")
    assert first.findtext(f"{ATOM}published") == second.findtext(f"{ATOM}published")
    assert first.findtext(f"{ATOM}updated", "") <= second.findtext(f"{ATOM}updated", "")


def test_an_unchanged_feed_is_not_sent_again(reader: Client) -> None:
    alert = regression("gemm")
    etag = reader.get("/alerts.atom").headers["ETag"]
    same = reader.get("/alerts.atom", headers={"If-None-Match": etag})
    assert (same.status_code, same.content) == (304, b"")
    Alert.objects.filter(pk=alert.pk).update(state="fixed")
    changed = reader.get("/alerts.atom", headers={"If-None-Match": etag})
    assert changed.status_code == 200
    left = reader.get("/alerts.atom?state=open")
    assert left.headers["ETag"] != etag


def test_an_empty_feed_is_valid_and_the_same_each_time(reader: Client) -> None:
    assert feed(reader).findtext(f"{ATOM}updated") == "1970-01-01T00:00:00+00:00"
    etag = reader.get("/alerts.atom").headers["ETag"]
    assert reader.get("/alerts.atom", headers={"If-None-Match": etag}).status_code == 304


def test_a_feed_is_narrowed_by_its_address(reader: Client) -> None:
    regression("gemm")
    regression("flash attention", state="fixed")
    missing(problem="attention", device_name="AMD MI300X")
    assert len(titles(reader)) == len(titles(reader, "?state=all")) == 3
    assert len(titles(reader, "?state=open")) == 2
    assert len(titles(reader, "?state=fixed")) == 1
    assert len(titles(reader, "?kind=missing")) == 1
    assert len(titles(reader, "?q=attention")) == 2
    assert len(titles(reader, "?q=attention+mi300x&kind=missing")) == 1
    wrong = reader.get("/alerts.atom?state=late&kind=x")
    assert wrong.status_code == 400
    assert b"state: unknown value late. Choices: all, open, new" in wrong.content


def basic(token: str, user: str = "kiln") -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(f'{user}:{token}'.encode()).decode()}"}


def test_a_token_with_the_scope_read_is_a_reader(client: Client, owner: User) -> None:
    regression("gemm")
    _, token = tokens.create_token(owner, "feed reader", ["read"], None)
    refused = client.get("/alerts.atom")
    assert refused.status_code == 401
    assert refused.headers["WWW-Authenticate"].startswith("Basic ")
    for headers in (basic(token), basic(token, ""), {"Authorization": f"Bearer {token}"}):
        assert client.get("/alerts.atom", headers=headers).status_code == 200
    etag = client.get("/alerts.atom", headers=basic(token)).headers["ETag"]
    again = client.get("/alerts.atom", headers={**basic(token), "If-None-Match": etag})
    assert again.status_code == 304


def test_no_other_token_is_one(client: Client, owner: User) -> None:
    _, writing = tokens.create_token(owner, "CI", ["ingest"], None)
    row, ended = tokens.create_token(owner, "feed reader", ["read"], None)
    tokens.revoke(row, owner)
    assert client.get("/alerts.atom", headers=basic(writing)).status_code == 403
    for header in (
        *(basic(ended)["Authorization"], "Basic", "Basic !", "Basic /w==", "Bearer x", "Digest a"),
        basic("secret-secret", "owner")["Authorization"],
    ):
        answer = client.get("/alerts.atom", headers={"Authorization": header})
        assert answer.status_code == 401, header
    assert client.get(f"/alerts.atom?token={writing}").status_code == 401, "addresses are logged"


def test_a_token_keeps_to_its_rate(client: Client, owner: User, settings: Any) -> None:
    settings.API_REQUESTS_A_MINUTE = 1
    _, token = tokens.create_token(owner, "feed reader", ["read"], None)
    assert client.get("/alerts.atom", headers=basic(token)).status_code == 200
    late = client.get("/alerts.atom", headers=basic(token))
    assert late.status_code == 429
    assert int(late.headers["Retry-After"]) > 0


def test_where_everybody_reads_the_feed_needs_no_token(client: Client, settings: Any) -> None:
    settings.READ_NEEDS_LOGIN = False
    assert titles(client) == []


def test_a_feed_costs_as_many_queries_whatever_there_is_and_has_an_end() -> None:
    counts = []
    for more in (1, MAX_ENTRIES):
        for _ in range(more):
            regression("gemm")
        counts.append([queries_of(lambda: feed_entries(search="gemm"))])
        assert len(feed_entries(search="gemm")) == min(MAX_ENTRIES, more)
    assert_steady(*counts, usual=[2])
