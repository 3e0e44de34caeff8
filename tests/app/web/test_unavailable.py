"""A database that is away, and a full disk, are said on a page of their own, and asked again."""

from __future__ import annotations

import errno
import logging
import logging.config
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.signals import request_started
from django.db import OperationalError, connection
from django.test import Client

from codegen_app.graphs.services import imports as graphs
from scheduler import samples

pytestmark = pytest.mark.django_db
WORDS = "The database is not available"


@pytest.fixture
def visitor(client: Client, settings: pytest.FixtureRequest) -> Client:
    """Somebody with a session, whose exceptions the server handles as it does for everybody."""
    client.raise_request_exception = False
    client.cookies[settings.SESSION_COOKIE_NAME] = "somebody"
    return client


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every new statement meets a server that shuts down."""

    def no_cursor(*_: object, **__: object) -> None:
        raise OperationalError("the connection is lost\n\tdetail") from psycopg.OperationalError()

    with monkeypatch.context() as patch:
        patch.setattr(connection, "cursor", no_cursor)
        yield


@pytest.mark.parametrize("address", ["/", "/graphs", "/no-such-page", "/admin/"])
def test_every_page_says_so_and_asks_again(visitor: Client, away: None, address: str) -> None:
    answer = visitor.get(address)
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "5"
    assert WORDS in answer.text
    assert 'http-equiv="refresh"' in answer.text
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


def test_json_says_so_as_json(visitor: Client, away: None) -> None:
    for answer in (
        visitor.get("/graphs.json"),
        visitor.get("/graphs", headers={"Accept": "application/json"}),
    ):
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
        assert answer.json()["error"] == WORDS
        assert answer.json()["retry_after_s"] == 5


def test_the_log_has_one_line_for_it(
    visitor: Client, away: None, caplog: pytest.LogCaptureFixture, settings: pytest.FixtureRequest
) -> None:
    configured = logging.config.DictConfigurator(settings.LOGGING)
    shorten = configured.configure_filter(settings.LOGGING["filters"]["one line"])
    visitor.get("/graphs")
    records = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert records
    for record in records:
        shorten.filter(record)
        text = logging.Formatter().format(record)
        assert text.endswith(": the connection is lost")
        assert "\n" not in text


def test_an_upload_without_room_is_not_taken_and_says_so(
    visitor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor.force_login(User.objects.create_superuser("somebody"))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(graphs, "import_graph", full)
    file = SimpleUploadedFile("m.pt2", samples.path("llama_2layer").read_bytes())
    answer = visitor.post("/import", {"file": file})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "60")
    assert "disk is full" in answer.text
    assert "http-equiv" not in answer.text, "what was sent is not sent again by itself"


def test_a_bug_is_a_plain_page(visitor: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    visitor.force_login(User.objects.create_superuser("somebody"))
    monkeypatch.setattr("codegen_app.site.pages.imports.view.ImportForm", lambda: 1 / 0)
    answer = visitor.get("/import")
    assert answer.status_code == 500
    assert "Traceback" not in answer.text
    assert "bug in Kiln" in answer.text
    assert "Retry-After" not in answer.headers


def test_a_connection_that_died_is_replaced_at_the_next_request(
    transactional_db: None, visitor: Client
) -> None:
    visitor.force_login(User.objects.create_user("somebody"))
    assert visitor.get("/graphs").status_code == 200
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (backend,) = cursor.fetchone()
        address = connection.get_connection_params()
    keys = ("host", "port", "user", "password", "dbname")
    with psycopg.connect(**{key: address[key] for key in keys if key in address}) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [backend])
    request_started.send(sender=Path)  # the test client keeps connections as they are
    assert visitor.get("/graphs").status_code == 200
