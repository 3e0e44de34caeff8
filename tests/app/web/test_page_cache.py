"""Kept pages: true, and each reader's own."""

from __future__ import annotations

import gzip
import re
import threading
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from django.conf import settings as project
from django.contrib.auth.models import AnonymousUser, Permission, User
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.http import Http404, HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from codegen_app.graphs.models import Graph
from codegen_app.kernels.models import Build, GeneratedKernel
from codegen_app.tuning.models import TuningRun
from codegen_app.web.pagecache import cache, triggers, version
from codegen_app.web.pagecache import reader as reader_
from codegen_app.web.pagecache.compressed import Part
from codegen_app.web.pagecache.request import CachedRequest, Reader, page_key
from codegen_app.web.pagecache.store import Entry, Store
from codegen_app.web.pagecache.version import Version
from codegen_app.workers.models import State
from tests.app import factories
from tests.app.web.test_pages import addresses, change_of
from tests.support.pages_world import World, make_graph
from tests.support.patience import PATIENCE_S
from tests.support.queries import most, statements_of

pytestmark = pytest.mark.django_db
ROLES = {"plain": (), "tuner": ("retune", "build", "select"), "staff": (), "chief": ()}


class Clock:
    """Seconds that only tests move."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def clock(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Clock:
    settings.PAGES_KEPT_BYTES = 1 << 26
    time = Clock()
    monkeypatch.setattr(cache, "time", time)
    monkeypatch.setattr(version, "KNOWN_FOR_S", 0.0)
    monkeypatch.setattr(cache, "_store", Store(1 << 26))
    monkeypatch.setattr(cache, "_rights", reader_.Rights())
    monkeypatch.setattr(cache, "_versions", version.Versions())
    return time


def account(role: str, name: str = "") -> Client:
    user = User.objects.create_user(
        name or role, is_staff=role in ("staff", "chief"), is_superuser=role == "chief"
    )
    user.user_permissions.set(Permission.objects.filter(codename__in=ROLES[role]))
    client = Client()
    client.force_login(user)
    return client


CHANGING = r"\b[A-Za-z0-9]{64}\b|\d+ \w+ ago|ticket=[\w%-]+"


def without_tokens(page: bytes) -> str:
    """The page without what differs each time: tokens, tickets and ages."""
    return re.sub(CHANGING, "…", page.decode())


@pytest.mark.long(but=["tuner"])
@pytest.mark.full
@pytest.mark.parametrize("role", ROLES)
def test_a_kept_page_is_the_page(role: str, world: World, settings: Any) -> None:
    """Rendered for another account of the same rights, then read by this one."""
    before, reader = account(role, "somebody_else"), account(role)
    for address in addresses(world):
        for suffix in ("", ".json"):
            path, _, query = address.partition("?")
            path = f"{'/overview' if suffix and path == '/' else path}{suffix}"
            asked = f"{path}?{query}" if query else path
            before.get(asked)
            kept = reader.get(asked)
            settings.PAGES_KEPT_BYTES = 0
            fresh = reader.get(asked)
            settings.PAGES_KEPT_BYTES = 1 << 26
            assert kept.status_code == fresh.status_code == 200, asked
            assert without_tokens(kept.content) == without_tokens(fresh.content), asked
            bar = kept.content.partition(b"<main")[0]  # below it people may be chosen from
            assert b"somebody_else" not in bar, asked
            assert kept.headers["Content-Type"] == fresh.headers["Content-Type"]
            by_browsers = asked.startswith("/instructions/") and suffix  # the same for everybody
            due = "private, max-age=3600" if by_browsers else "no-store"
            assert kept.headers["Cache-Control"] == due, asked
            assert b"kiln-" not in kept.content.replace(b"kiln-tests", b""), "a mark was left"


def test_what_a_page_offers_is_what_the_reader_may_do(world: World) -> None:
    tuner, plain = account("tuner"), account("plain")
    address = world.kernels[0].get_absolute_url()
    builds = f"{address}?tab=builds"
    assert f'action="{address}/build?' in tuner.get(builds).content.decode()
    assert f'action="{address}/build?' not in plain.get(builds).content.decode()
    User.objects.get(username="tuner").user_permissions.clear()
    assert f'action="{address}/build?' not in tuner.get(builds).content.decode()


def test_each_reader_has_a_token_of_their_own(world: World) -> None:
    pages = []
    for name in ("ada", "bob"):
        client = account("plain", name)
        client.handler.enforce_csrf_checks = True
        page = client.get("/kernels").content.decode()
        (token,) = set(re.findall(r'name="csrfmiddlewaretoken" value="(\w{64})"', page))
        pages.append(token)
        assert client.post("/logout/", {"csrfmiddlewaretoken": token}).status_code == 302
    assert pages[0] != pages[1]


def test_a_page_is_rendered_once_for_all_who_may_see_the_same(world: World) -> None:
    first, second = account("plain", "ada"), account("plain", "bob")
    rendered = statements_of(first.get, "/kernels")
    second.get("/graphs")  # its rights are known then
    kept = statements_of(second.get, "/kernels")
    assert len(kept) <= most(4), "session, account, and the version"
    rows = f'FROM "{GeneratedKernel._meta.db_table}"'
    assert any(rows in one for one in rendered)
    assert not any(rows in one for one in kept)


def test_a_change_is_shown_at_once_to_who_made_it_and_soon_to_others(
    world: World, clock: Clock
) -> None:
    writer, other = account("tuner"), account("plain")
    for client in (writer, other):
        assert b"brand new" not in client.get("/graphs").content
    make_graph("brand new", layers=1)
    writer.cookies[cache.FRESH_COOKIE] = "1"
    assert b"brand new" in writer.get("/graphs").content
    assert b"brand new" not in other.get("/graphs").content
    clock.now += cache._MAX_AGE_S
    assert b"brand new" in other.get("/graphs").content


def test_who_changes_something_is_marked_for_a_while(world: World) -> None:
    client = account("tuner")
    client.get("/kernels")
    assert cache.FRESH_COOKIE not in client.cookies
    assert client.post(f"/runs/{world.run.pk}/cancel", {"why": "wrong"}).status_code == 302
    cookie = client.cookies[cache.FRESH_COOKIE]
    assert cookie["max-age"] == cache.FRESH_S
    assert cookie["httponly"]
    assert b"cancelled" in client.get(f"/runs/{world.run.pk}").content


def test_what_is_said_to_one_reader_is_said_to_no_other(world: World) -> None:
    ada, bob = account("tuner", "ada"), account("tuner", "bob")
    for client in (ada, bob):
        client.get("/selections")
    user = User.objects.get(username="ada")
    user.set_password("a quiet kiln")
    user.save()
    ada.force_login(user)
    new = "another kiln"
    data = {"old_password": "a quiet kiln", "new_password1": new, "new_password2": new}
    assert ada.post("/password", data).status_code == 302
    assert b"Password changed" in ada.get("/").content
    assert b"Password changed" not in bob.get("/").content
    assert b"Password changed" not in ada.get("/").content


def test_a_kernel_page_stays_while_workers_write_of_others(
    world: World, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    client = account("plain")
    kernel, other = world.kernels[0], factories.kernel()
    rendered: list[str] = []
    from codegen_app.kernels.pages.kernel import view

    page = view.kernel_page
    monkeypatch.setattr(view, "kernel_page", lambda *a: (rendered.append(a[0]), page(*a))[1])
    client.get(kernel.get_absolute_url())
    factories.build(kernel=other)
    clock.now += cache._MAX_AGE_S
    client.get(kernel.get_absolute_url())
    assert rendered == [kernel.name]
    build = Build.objects.filter(kernel=kernel, target="gfx942").get()
    Build.objects.filter(pk=build.pk).update(
        state=State.REJECTED, stage="compile", reason="it was slow"
    )
    clock.now += cache._MAX_AGE_S
    assert client.get(kernel.get_absolute_url()).status_code == 200
    assert rendered == [kernel.name] * 2


def test_pages_that_show_the_time_are_kept_for_a_second(world: World, clock: Clock) -> None:
    client = account("plain")
    client.get("/devices")
    first = client.get("/devices")
    assert client.get("/devices").headers["ETag"] == first.headers["ETag"]
    factories_worker_seen()
    clock.now += 1.0
    assert b"a-new-name" in client.get("/devices").content


def test_a_finished_run_stays_until_something_changes(world: World, clock: Clock) -> None:
    client, address = account("plain"), world.run.get_absolute_url()
    ages: list[float] = []
    for is_over in (False, True):
        now = timezone.now() if is_over else None
        state = State.DONE if is_over else State.RUNNING
        TuningRun.objects.filter(pk=world.run.pk).update(state=state, finished_at=now)
        client.get(address)
        clock.now += 2 * cache._MAX_AGE_S
        client.get(address)
        ages += [clock.now - entry.rendered_at for entry in cache._store._entries.values()]
        cache._store.clear()
    assert ages == [0.0, 2 * cache._MAX_AGE_S], "an open run is rendered again, a finished one not"


def factories_worker_seen() -> None:
    from codegen_app.workers.models import Worker

    Worker.objects.update(name="a-new-name")


def test_nothing_but_pages_is_kept(world: World) -> None:
    client = account("plain")
    for _ in range(2):
        assert client.get("/kernels/not_there").status_code == 404
        assert client.post("/kernels").status_code in (200, 405)
    assert client.get("/kernels").status_code == 200


@pytest.fixture
def anonymous(settings: Any) -> Client:
    settings.MIDDLEWARE = [one for one in settings.MIDDLEWARE if "LoginMiddleware" not in one]
    return Client()


def test_who_has_the_page_is_told_so(anonymous: Client, world: World, clock: Clock) -> None:
    address = "/kernels?graph=0"  # the kernel below is of no graph
    anonymous.get(address)
    first = anonymous.get(address)
    assert first.headers["Cache-Control"] == "private, no-cache"
    asked = {"If-None-Match": first.headers["ETag"]}
    same = anonymous.get(address, headers=asked)
    assert (same.status_code, same.content) == (304, b"")
    other = Client()
    other.get("/")
    assert other.get(address, headers=asked).status_code == 200, "another token"
    factories.kernel()
    clock.now += cache._MAX_AGE_S
    assert anonymous.get(address, headers=asked).status_code == 200


@pytest.mark.parametrize(
    ("accepted", "is_gzip"),
    [("gzip, br", True), ("", False), ("br", False), ("gzip;q=0", False), ("gzip;q=0.5", True)],
)
def test_pages_are_compressed_for_who_takes_it(
    accepted: str, is_gzip: bool, anonymous: Client, world: World
) -> None:
    answer = anonymous.get("/kernels", headers={"Accept-Encoding": accepted})
    assert (answer.headers.get("Content-Encoding") == "gzip") is is_gzip
    assert "Accept-Encoding" in answer.headers["Vary"]
    page = gzip.decompress(answer.content) if is_gzip else answer.content
    assert page.decode().rstrip().endswith("</html>")


def test_every_change_of_what_pages_show_is_counted() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT event_object_table, event_object_column"
            " FROM information_schema.triggered_update_columns"
            " WHERE trigger_name = 'kiln_page_changed'"
        )
        counted = set(cursor.fetchall())  # tables that are not here: whatever column it is
        cursor.execute(
            "SELECT event_object_table, event_manipulation FROM information_schema.triggers"
            " WHERE trigger_name LIKE 'kiln_page_%'"
        )
        events = set(cursor.fetchall())
    for model in triggers.watched_models():
        table = model._meta.db_table
        assert {event for of, event in events if of == table} == {"INSERT", "UPDATE", "DELETE"}
        for field in model._meta.concrete_fields:
            counts = table not in {of for of, _ in counted} or (table, field.column) in counted
            assert counts is (field.column not in triggers._SIGNS_OF_LIFE), (table, field.column)


def test_signs_of_life_and_looks_that_find_nothing_are_no_changes(world: World) -> None:
    before = version.read_version()
    Graph.objects.update(heartbeat_at=None)
    Graph.objects.filter(name="not there").update(name="x")
    Graph.objects.filter(name="not there").delete()
    assert before.holds(version.read_version())
    Graph.objects.filter(pk=world.graph.pk).update(name="x")
    assert not before.holds(version.read_version())


@pytest.mark.django_db(transaction=True)
def test_what_was_under_way_is_seen_once_it_is_committed() -> None:
    """A change is counted before it is committed: a page rendered in between must not stay."""
    graph = factories.graph()
    database = connection.settings_dict
    connection.ensure_connection()
    with psycopg.connect(
        dbname=database["NAME"],
        host=database["HOST"],
        user=database["USER"],
        port=database["PORT"] or None,
        password=database["PASSWORD"] or None,
    ) as writer:
        before = version.read_version()
        writer.execute("UPDATE codegen_app_graph SET name = 'new' WHERE id = %s", [graph.pk])
        between = version.read_version()
        assert not before.holds(between)
        assert Graph.objects.get(pk=graph.pk).name != "new", "what a page would show"
        assert between.holds(version.read_version())
        writer.commit()
        after = version.read_version()
        assert (after.work, after.rest) == (between.work, between.rest)
        assert not between.holds(after)
        assert Graph.objects.get(pk=graph.pk).name == "new"
        assert after.holds(version.read_version())


def entry(size: int, at: float = 0.0) -> Entry:
    part = Part(b"x" * size, 0, size)
    return Entry((part,), (), (), "", Version(0, 0, frozenset(), frozenset()), "", False, at, 0.0)


def test_memory_is_bounded_and_what_was_read_last_stays() -> None:
    store = Store(100_000)
    for n in range(50):
        store.put(n, entry(8_000))
        assert store.get(0) is not None
        assert store.bytes <= 100_000
    assert store.get(1) is None
    store.put("huge", entry(90_000))
    assert store.get("huge") is None


def test_many_readers_make_one_rendering(monkeypatch: pytest.MonkeyPatch) -> None:
    now = Version(1, 1, frozenset(), frozenset())
    monkeypatch.setattr(cache, "_versions", SimpleNamespace(now=lambda exact=False: now))
    monkeypatch.setattr(cache.reader, "has_messages", lambda _: False)
    begun, go_on, rendered = threading.Event(), threading.Event(), []

    def view(_: HttpRequest) -> HttpResponse:
        rendered.append(1)
        begun.set()
        assert go_on.wait(PATIENCE_S)
        return HttpResponse(b"page")

    page = cache.cached(view, cache.CachePolicy())
    answers: list[bytes] = []

    def read() -> None:
        request = RequestFactory().get("/once")
        request.user = AnonymousUser()
        answers.append(page(request).content)

    readers = [threading.Thread(target=read) for _ in range(20)]
    readers[0].start()
    assert begun.wait(PATIENCE_S)
    for one in readers[1:]:
        one.start()
    go_on.set()
    for one in readers:
        one.join(PATIENCE_S)
    assert answers == [b"page"] * 20
    assert rendered == [1]


def test_an_error_reaches_everybody_and_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    now = Version(1, 1, frozenset(), frozenset())
    monkeypatch.setattr(cache, "_versions", SimpleNamespace(now=lambda exact=False: now))
    monkeypatch.setattr(cache.reader, "has_messages", lambda _: False)

    def view(_: HttpRequest) -> HttpResponse:
        raise Http404

    page = cache.cached(view, cache.CachePolicy())
    for _ in range(2):
        request = RequestFactory().get("/never")
        request.user = AnonymousUser()
        with pytest.raises(Http404):
            page(request)
    assert not cache._store.is_rendering("/never")


def test_pages_are_kept_where_they_are_served() -> None:
    from codegen_app.platform.config import settings as as_served

    assert as_served.PAGES_KEPT_BYTES > 0
    assert project.DATABASES["default"]["CONN_HEALTH_CHECKS"]


@pytest.mark.parametrize(
    "address",
    ["/graphs/999", "/nodes/9999", "/kernels/none", "/runs/999", "/series/99999", "/changes/9999"],
)
def test_no_mark_is_shown_where_a_page_is_missing(address: str, world: World) -> None:
    """Who knows the marks could have others' tokens written where text is shown."""
    answer = account("tuner", "ada").get(address)
    page = answer.content.decode()
    assert answer.status_code == 404
    assert reader_._SECRET not in page
    assert ">ada<" in "".join(page.split()), "the bar is this reader's"


@pytest.mark.parametrize("raised", [Http404, PermissionDenied, RuntimeError])
def test_no_page_has_marks_once_a_view_has_raised(
    raised: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache.reader, "has_messages", lambda _: False)
    marked: list[bool] = []

    def view(request: HttpRequest) -> HttpResponse:
        marked.append(reader_.is_cached_request(request))
        raise raised

    request = RequestFactory().get("/")
    request.user = AnonymousUser()
    with pytest.raises(raised):
        cache.cached(view, cache.CachePolicy())(request)
    assert marked == [True]
    assert not reader_.is_cached_request(request)


HOSTILE = {
    "HTTP_HOST": "evil.example:6666",
    "SERVER_NAME": "evil.example",
    "SERVER_PORT": "6666",
    "wsgi.url_scheme": "https",
    "HTTP_X_FORWARDED_HOST": "evil.example",
    "HTTP_X_FORWARDED_PROTO": "https",
    "HTTP_ACCEPT": "application/json",
    "HTTP_ACCEPT_LANGUAGE": "evil",
    "HTTP_REFERER": "http://evil.example/",
    "HTTP_USER_AGENT": "evil",
    "HTTP_COOKIE": "theme=evil; evil=1",
    "CONTENT_TYPE": "text/html; charset=utf-16",
    "REMOTE_ADDR": "192.0.2.66",
    "REMOTE_USER": "evil",
}


@given(st.sets(st.sampled_from(sorted(HOSTILE))))
def test_a_view_sees_nothing_of_a_request_but_its_key(names: set[str]) -> None:
    """Whatever else a request says, the view of a kept page gets an equal one."""
    made: tuple[dict[str, Any], ...] = ({}, {name: HOSTILE[name] for name in names})
    plain, hostile = (
        RequestFactory(**environ).get("/graphs?q=%C3%A4&page=2", HTTP_HX_REQUEST="true")
        for environ in made
    )
    key = page_key(plain, Reader())
    assert page_key(hostile, Reader()) == key
    seen, other = (vars(CachedRequest(page_key(one, Reader()), None)) for one in (plain, hostile))
    assert seen == other
    assert seen["GET"].dict() == {"q": "ä", "page": "2"}


@pytest.mark.parametrize(
    "differs",
    [
        {"path": "/kernels"},
        {"QUERY_STRING": "page=3"},
        {"HTTP_HX_REQUEST": "true"},
        {"HTTP_COOKIE": "theme=dark"},
        {"SCRIPT_NAME": "/kiln"},
    ],
)
def test_what_a_view_may_read_is_in_the_key(differs: dict[str, str]) -> None:
    given: dict[str, Any] = {"path": "/graphs", **differs}
    request = RequestFactory().get(given.pop("path"), **given)
    assert page_key(request, Reader()) != page_key(RequestFactory().get("/graphs"), Reader())
    assert page_key(request, Reader(is_authenticated=True)) != page_key(request, Reader())


@pytest.mark.parametrize(
    "asked",
    [
        HttpRequest.get_host,
        HttpRequest.build_absolute_uri,
        HttpRequest.is_secure,
        lambda request: request.scheme,
        lambda request: request.session,
        lambda request: request.user.get_username(),
        lambda request: request.META["REMOTE_ADDR"],
        lambda request: request.headers["Accept"],
    ],
)
def test_a_view_that_asks_for_more_fails(asked: Any) -> None:
    """At its first rendering, not for a reader who gets another's page."""
    request = CachedRequest(page_key(RequestFactory().get("/graphs"), Reader()), None)
    with pytest.raises((RuntimeError, AttributeError, KeyError)):
        asked(request)


@pytest.mark.full
def test_no_page_repeats_the_host_of_its_first_reader(world: World, settings: Any) -> None:
    """Nor, without the cache, of whoever asks: whole addresses come from ``KILN_SITE_URL``."""
    settings.ALLOWED_HOSTS = ["*"]
    settings.SITE_URL = "https://kiln.example"
    client = account("chief")
    for kept_bytes in (1 << 26, 0):
        settings.PAGES_KEPT_BYTES = kept_bytes
        for address in [*addresses(world), "/api/v1/docs", "/alerts.atom", "/not/there"]:
            answer = client.get(address, headers={"Host": "evil.example:6666"})
            assert b"evil.example" not in answer.content, address
            assert "evil.example" not in str(answer.headers), address
    address = change_of(world).series.get_absolute_url()
    assert f"https://kiln.example{address}.svg" in client.get(address).content.decode()
