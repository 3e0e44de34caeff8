"""Going on where one was: after a login, from an address with a slash, from one that is none."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.support.pages_world import World

pytestmark = pytest.mark.django_db
PASSWORD = "a quiet kiln at night"


def next_of(location: str) -> str:
    parts = urlsplit(location)
    assert parts.path == "/login/"
    (found,) = parse_qs(parts.query)["next"]
    return found


def test_a_login_leads_back_with_the_whole_query(client: Client, world: World) -> None:
    User.objects.create_user("ada", password=PASSWORD)
    address = f"{world.kernels[0].get_absolute_url()}?build=3&view=ptx"
    sent = client.get(address)
    where = next_of(sent.headers["Location"])
    assert where == address
    form = client.get(sent.headers["Location"]).content.decode()
    assert f'name="next" value="{address.replace("&", "&amp;")}"' in form
    answer = client.post(
        "/login/", {"username": "ada", "password": PASSWORD, "next": f"{where}#L7"}
    )
    assert answer.headers["Location"] == f"{address}#L7"


@pytest.mark.parametrize(
    ("sender", "back"),
    [
        ("http://testserver/runs/3?show=all", "/runs/3?show=all"),
        ("http://elsewhere.example/runs/3", "/"),
        ("http://testserver//elsewhere.example/", "/elsewhere.example/"),
        ("javascript:alert(1)", "/"),
        ("", "/"),
    ],
)
def test_what_was_sent_without_a_login_leads_back_to_its_page(
    client: Client, world: World, sender: str, back: str
) -> None:
    answer = client.post(f"/runs/{world.run.pk}/cancel", HTTP_REFERER=sender)
    assert next_of(answer.headers["Location"]) == back


def test_a_part_that_looks_for_news_is_told_that_nobody_is_logged_in(
    client: Client, world: World
) -> None:
    answer = client.get(world.run.get_absolute_url(), HTTP_HX_REQUEST="true")
    assert answer.status_code == 401
    assert "<form" not in answer.content.decode()


@pytest.mark.parametrize(
    ("address", "accept"),
    [
        ("/kernels.json", "*/*"),
        ("/alerts.json?state=all", ""),
        ("/palette.json?q=a", "*/*"),
        ("/tokens.json", "*/*"),  # which needs a permission, too
        ("/kernels", "application/json"),
    ],
)
def test_a_program_is_told_in_json_that_nobody_is_logged_in(
    client: Client, db: None, address: str, accept: str
) -> None:
    answer = client.get(address, headers={"Accept": accept} if accept else {})
    assert answer.status_code == 401
    told = answer.json()
    assert told["error"] == "Not logged in"
    assert "/login/" in told["text"]
    assert "/api/v1" in told["text"]
    assert "\n" not in told["text"]


def test_a_browser_that_was_led_to_a_twin_logs_in_and_comes_back(client: Client) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    answer = client.get("/kernels.json?sort=-time", headers=browser)
    assert next_of(answer.headers["Location"]) == "/kernels.json?sort=-time"


def test_a_program_without_a_permission_is_told_which(client: Client) -> None:
    client.force_login(User.objects.create_user("ada"))
    answer = client.get("/tokens.json")
    assert answer.status_code == 403
    assert "Can make and revoke API tokens" in answer.json()["text"]


def test_a_login_leads_to_no_other_host(client: Client) -> None:
    User.objects.create_user("ada", password=PASSWORD)
    for where in ("https://elsewhere.example/", "//elsewhere.example", "/\\elsewhere.example"):
        answer = client.post("/login/", {"username": "ada", "password": PASSWORD, "next": where})
        assert answer.headers["Location"] == "/"


@pytest.mark.parametrize(
    ("given", "leads_to"),
    [
        ("/kernels/", "/kernels"),
        ("/kernels//", "/kernels"),
        ("/kernels/?sort=-time&filter=a%20b", "/kernels?sort=-time&filter=a%20b"),
        ("/graphs/7/", "/graphs/7"),
        ("/graphs/7.json/", "/graphs/7.json"),
    ],
)
def test_a_slash_at_the_end_leads_to_the_address_without(
    reader: Client, given: str, leads_to: str
) -> None:
    for method in (reader.get, reader.head):
        answer = method(given)
        assert (answer.status_code, answer.headers["Location"]) == (301, leads_to)


def test_a_slash_leads_nowhere_else(reader: Client) -> None:
    assert reader.post("/retune/").status_code == 404, "what is sent is not sent again"
    for address in ("//elsewhere.example/", "//elsewhere.example/kernels/", "/nothing/"):
        answer = reader.get("/", PATH_INFO=address)
        assert answer.status_code == 404, address
    for address in ("/", "/login/"):
        assert reader.get(address).status_code == 200, address


def test_a_page_that_is_not_there_says_what_was_asked_and_what_next(reader: Client) -> None:
    page = reader.get("/kernel/rocm_softmax_12")
    text = page.content.decode()
    assert page.status_code == 404
    assert "No page at this address." in text
    assert "/kernel/rocm_softmax_12" in text
    assert 'href="/kernels"' in text
    assert 'href="/search?q=rocm_softmax_12"' in text
    text = reader.get("/runs/77").content.decode()
    assert "There is no tuning run 77." in text or "There is no run 77." in text
    assert 'href="/runs"' in text
    evil = reader.get('/<script>alert("x")</script>').content.decode()
    assert "<script>alert" not in evil


def test_a_program_is_told_in_json(reader: Client) -> None:
    answer = reader.get("/graphs/77.json")
    assert (answer.status_code, answer.json()["error"]) == (404, "Not found")
    answer = reader.get("/tokens.json")
    assert (answer.status_code, answer.json()["error"]) == (403, "Not allowed")
    assert "API tokens" in answer.json()["text"]


def test_what_is_not_allowed_says_who_one_is_and_who_can_help(reader: Client) -> None:
    page = reader.get("/retune?node=1")
    text = page.content.decode()
    assert page.status_code == 403
    for part in ("Can start and cancel tuning runs", "reader", "Admin → Users", "/retune?node=1"):
        assert part in text, part
