"""KILN_LOG_FORMAT=json: an object a line, with what it is about, from every process."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client, RequestFactory

from codegen_app.platform.config import context
from codegen_app.platform.config.logs import FIELDS, JsonFormatter
from codegen_app.web.server.request_ids import HEADER, RequestIdMiddleware
from codegen_app.workers import work
from codegen_app.workers.models import Worker
from tests.app import factories
from tests.app.processes import ROOT, SECRET_KEY
from tests.app.workers.test_real_workers import Workers
from tests.support.web_server import answer, iter_until

HOSTILE = (
    'model\n{"level": "ERROR", "message": "forged"}\r\u2028\x85\x1b[2J\N{RIGHT-TO-LEFT OVERRIDE}'
    '\0"\\ud800\ud800'
)
log = logging.getLogger("codegen_app.tests")


class Kept(logging.Handler):
    """The lines, as a formatter of JSON makes them."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonFormatter())
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))

    @property
    def found(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]


@pytest.fixture
def kept() -> Iterator[Kept]:
    handler = Kept()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


@pytest.fixture
def informed() -> Iterator[None]:
    """Lines of ours are kept from "info" on."""
    log.setLevel(logging.INFO)
    yield
    log.setLevel(logging.NOTSET)


def test_a_line_is_an_object_whatever_it_names() -> None:
    """Formatted without being logged: what pytest keeps of a test goes to another process as
    UTF-8, which a lone surrogate has not."""
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        raised = sys.exc_info()
    named = {FIELDS: {"path": HOSTILE}}
    record = log.makeRecord(
        *(log.name, logging.ERROR, __file__, 1, "%s cannot be tuned", (HOSTILE,), raised),
        extra=named,
    )
    line = JsonFormatter().format(record)
    assert line.isascii()
    assert line.isprintable()
    found = json.loads(line)
    assert (found["level"], found["logger"]) == ("ERROR", "codegen_app.tests")
    assert found["message"] == f"{HOSTILE} cannot be tuned"
    assert found["path"] == HOSTILE
    assert "ValueError" in found["exception"]
    assert found["time"].endswith("Z")


def test_lines_are_bounded(kept: Kept) -> None:
    log.warning("%s", "x" * 10**6, extra={FIELDS: {"path": "y" * 10**6}})
    assert len(kept.lines[0]) < 10_000


@pytest.mark.parametrize("given", ["a1b2c3d4", "4bf92f35-77b3.4da6_A", "x" * 128])
def test_an_id_that_is_one_is_taken(given: str) -> None:
    assert Client().get("/healthz", headers={HEADER: given}).headers[HEADER] == given


@pytest.mark.parametrize(
    "given",
    ["", "short", "x" * 129, "two words here", "line\nend-of-it", "ünïcödé-1234", "-begins-so"],
)
def test_else_one_is_made_for_each_request(given: str) -> None:
    made = {Client().get("/healthz", headers={HEADER: given}).headers[HEADER] for _ in range(2)}
    assert len(made) == 2
    assert all(len(one) == 32 and one.isalnum() for one in made)


@pytest.mark.django_db
def test_lines_of_a_request_name_it_and_its_user(kept: Kept, reader: Client) -> None:
    """That a page is not there is logged when all middleware is done."""
    reader.get("/graphs/4711", headers={HEADER: "request-4711"})
    (line,) = (one for one in kept.found if one["logger"] == "django.request")
    assert line["request_id"] == "request-4711"
    assert line["user_id"] == User.objects.get().pk


def test_a_line_inside_a_view_names_the_request_and_asks_nothing(
    kept: Kept, informed: None
) -> None:
    def view(request: object) -> HttpResponse:
        log.info("inside")
        return HttpResponse()

    with_user = RequestFactory().get("/", headers={HEADER: "request-4711"})
    RequestIdMiddleware(view)(with_user)
    log.info("outside")
    inside, outside = kept.found
    assert inside["request_id"] == "request-4711"
    assert "user_id" not in inside
    assert "request_id" not in outside


@pytest.mark.django_db(transaction=True)
def test_lines_about_a_row_name_it_its_heartbeat_and_its_error(kept: Kept) -> None:
    build = factories.build(state="queued", code_digest="", library=None, duration_s=None)
    row = work.claim_next(type(build).objects.filter(pk=build.pk), "here")
    assert row is not None

    def service(claimed: object) -> None:
        log.warning("compiling")
        assert row is not None
        with work.heartbeat(row, fields=lambda: log.warning("beating") or {}) as lease_lost:
            row.__class__.objects.filter(pk=row.pk).update(claim="somebody's")
            assert lease_lost.wait(60)
        raise ZeroDivisionError

    work.attempt(row, service)
    log.warning("afterwards")
    found = {one["message"]: one for one in kept.found}
    assert found["compiling"]["build_id"] == build.pk
    assert found["beating"]["build_id"] == build.pk
    assert "build_id" not in found["afterwards"]
    assert any(
        one["build_id"] == build.pk for text, one in found.items() if "lease was lost" in text
    )


def test_an_exception_that_is_logged_later_names_its_row(kept: Kept) -> None:
    try:
        with context.row_context(run_id=3), context.row_context(tuning_task_id=5):
            raise ZeroDivisionError
    except ZeroDivisionError:
        log.exception("a task failed")
    (line,) = kept.found
    assert (line["run_id"], line["tuning_task_id"]) == (3, 5)


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.full
def test_a_real_web_server_writes_nothing_else(tmp_path: Path) -> None:
    """Its own lines, those of requests, and those of the pages, about one request each."""
    place, requests = tmp_path / "web.sock", tmp_path / "access.log"
    command = (
        *(sys.executable, "-m", "gunicorn", "--config", "python:codegen_app.platform.config.web"),
        *("--bind", f"unix:{place}", "--workers", "1", "--graceful-timeout", "60"),
        *("--access-logfile", str(requests)),
    )
    environment = {
        **os.environ,
        "KILN_LOG_FORMAT": "json",
        "KILN_SECRET_KEY": SECRET_KEY,
        "KILN_VAR": str(tmp_path),
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
    }
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stderr is not None
        try:
            said = b"".join(iter_until(b"Booting worker", process.stderr))
            one = b"GET /%0A%1Bforged?key=hunter2 HTTP/1.1\r\nHost: elsewhere\r\n"
            whole = one + b"X-Request-ID: request-4711\r\n\r\n"
            assert answer(place, whole).status == 400
        finally:
            process.terminate()
        said += process.stderr.read()
    of_server = objects(said.decode())
    assert {"gunicorn.error", "django.security.DisallowedHost"} <= {
        one["logger"] for one in of_server
    }
    assert "py.warnings" in {one["logger"] for one in of_server}, (
        "there is no folder of static files"
    )
    (about,) = (one for one in of_server if one["logger"] == "django.security.DisallowedHost")
    assert about["request_id"] == "request-4711"
    (line,) = objects(requests.read_text())
    assert line["request_id"] == "request-4711"
    assert (line["method"], line["path"], line["status"]) == ("GET", "/\n\x1bforged", 400)
    assert line["duration_ms"] >= 0
    assert "hunter2" not in requests.read_text()


@pytest.mark.full
def test_a_real_worker_writes_nothing_else(transactional_db: None, tmp_path: Path) -> None:
    workers = Workers(tmp_path, "database://localhost", KILN_LOG_FORMAT="json")
    workers.start_one("prepare", "--loglevel", "INFO")
    try:
        workers.wait(Worker.objects.exists, "worker")
    finally:
        workers.kill()
    found = objects((tmp_path / "worker.log").read_text())
    assert {one["level"] for one in found} >= {"INFO"}
