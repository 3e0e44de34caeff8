"""The remote worker's own parts: where it asks, what it keeps, what a person is told."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from scheduler.agent.client import (
    LeaseOverError,
    ServerClient,
    StoppedError,
    TokenError,
    checked_url,
)
from scheduler.agent.folder import Folder
from scheduler.agent.lease import Lease
from scheduler.agent.protocol import Directive, Result, Samples
from scheduler.benchmark.measurement import Check
from scheduler.commands import kiln
from scheduler.errors import UserError
from scheduler.sandbox.process import Cancellation, Cancelled

ROOT = Path(__file__).resolve().parents[3]
TOKEN = "kiln_" + "a" * 43 + "0" * 16
RESULT = Result("k", Samples((1.5,), 1, Check(True, 0.0, 1.0, 0.0, True)))


class Answers(BaseHTTPRequestHandler):
    """Answers in turn what the test says; keeps what was asked."""

    turns: list[tuple[int, dict[str, str], Any]]
    asked: list[tuple[str, dict[str, str], Any]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        type(self).asked.append((self.path, dict(self.headers), json.loads(body)))
        self._answer()

    def do_GET(self) -> None:
        type(self).asked.append((self.path, dict(self.headers), None))
        self._answer()

    def _answer(self) -> None:
        status, headers, body = type(self).turns.pop(0)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(data))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """The test says what went wrong."""


@contextmanager
def answering(*turns: tuple[int, dict[str, str], Any]) -> Iterator[tuple[str, list[Any]]]:
    asked: list[Any] = []
    handler = type("Handler", (Answers,), {"turns": list(turns), "asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", asked
        finally:
            server.shutdown()
            thread.join()


NOW = {"Retry-After": "0"}


def test_it_asks_again_until_it_is_answered() -> None:
    turns = [(503, NOW, {"error": "busy"}), (429, NOW, {"error": "often"}), (200, {}, {"a": 1})]
    with answering(*turns) as (url, asked):
        server = ServerClient(url, TOKEN, threading.Event())
        server.session = "s"
        assert server.post("lease", {"b": 2}) == {"a": 1}
    assert [path for path, _, _ in asked] == ["/api/v1/worker/lease"] * 3
    assert {tuple(body.items()) for _, _, body in asked} == {(("b", 2),)}
    headers = asked[0][1]
    assert headers["Authorization"] == f"Bearer {TOKEN}"
    assert headers["Kiln-Worker-Session"] == "s"


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, TokenError), (403, TokenError), (409, LeaseOverError), (422, UserError)],
)
def test_an_answer_that_no_try_changes_is_final(status: int, kind: type[Exception]) -> None:
    with answering((status, {}, {"error": "one\nline"})) as (url, asked):
        with pytest.raises(kind, match="line"):
            ServerClient(url, TOKEN, threading.Event()).post("hello", {})
        assert len(asked) == 1


def test_a_token_is_led_nowhere_else() -> None:
    with answering((200, {}, {})) as (elsewhere, asked_there):
        away = {"Location": f"{elsewhere}/api/v1/worker/hello"}
        with (
            answering((307, away, {"error": "moved"})) as (url, asked),
            pytest.raises(UserError, match="307"),
        ):
            ServerClient(url, TOKEN, threading.Event()).post("hello", {})
        assert len(asked) == 1
        assert not asked_there


def test_stopped_while_the_server_is_away() -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(StoppedError):
        ServerClient("http://127.0.0.1:9", TOKEN, stop).post("lease", {})


def test_a_file_that_is_cut_off_is_fetched_again() -> None:
    with answering((200, {}, b"ab"), (200, {}, b"abc")) as (url, _):
        assert ServerClient(url, TOKEN, threading.Event()).fetch("f", 3) == b"abc"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("kiln.example", "must begin with https://"),
        ("ftp://kiln.example", "must begin with https://"),
        ("http://kiln.example", "unencrypted; use https://"),
        ("http://10.0.0.1:8000", "unencrypted; use https://"),
        ("http://localhost.example", "unencrypted; use https://"),
        ("https://me:secret@kiln.example", "the server address only"),
        ("https://kiln.example/?a=b", "the server address only"),
    ],
)
def test_addresses_that_are_none_or_bare_are_turned_down(url: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        checked_url(url)


@pytest.mark.parametrize(
    "url", ["https://kiln.example/", "http://127.0.0.1:8000", "http://localhost", "http://[::1]:1"]
)
def test_https_and_this_machine_are_fine(url: str) -> None:
    assert checked_url(url) == url.rstrip("/")


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_files_are_fetched_once_and_again_when_damaged(tmp_path: Path) -> None:
    folder, fetched = Folder(tmp_path, 100), []

    def fetch() -> bytes:
        fetched.append(1)
        return b"abc"

    place = folder.file(digest(b"abc"), "kernel.so", fetch)
    assert place.read_bytes() == b"abc"
    assert folder.file(digest(b"abc"), "kernel.so", fetch) == place
    assert len(fetched) == 1
    place.write_bytes(b"abd")
    assert folder.file(digest(b"abc"), "kernel.so", fetch).read_bytes() == b"abc"
    assert len(fetched) == 2
    with pytest.raises(UserError, match="a file with another hash"):
        folder.file(digest(b"other"), "kernel.so", fetch)
    assert not (tmp_path / "files" / digest(b"other")).exists()


def test_what_was_not_used_for_longest_is_dropped_and_never_what_is_in_use(tmp_path: Path) -> None:
    folder = Folder(tmp_path, 10)
    contents = [bytes([n]) * 5 for n in range(4)]
    for at, one in enumerate(contents):
        place = folder.file(digest(one), "f", lambda one=one: one)
        os.utime(place.parent, (at, at))
    folder.sweep({digest(contents[0])})
    kept = {path.name for path in (tmp_path / "files").iterdir()}
    assert kept == {digest(contents[0]), digest(contents[3])}


def test_a_folder_is_for_one_worker(tmp_path: Path) -> None:
    first = Folder(tmp_path, 10)
    with pytest.raises(UserError, match="in use by another worker"):
        Folder(tmp_path, 10)
    first.close()
    Folder(tmp_path, 10).close()


def test_what_is_not_delivered_outlives_the_process(tmp_path: Path) -> None:
    folder = Folder(tmp_path, 10)
    assert folder.journal() is None
    holding = Lease(
        ServerClient("https://kiln.example", TOKEN, threading.Event()), folder, "l", Cancellation()
    )
    holding.put(RESULT)  # nothing is sent: no thread is started
    folder.close()
    journal = Folder(tmp_path, 10).journal()
    assert journal is not None
    assert (journal.lease, journal.results) == ("l", (RESULT,))
    (tmp_path / "undelivered.json").write_bytes(b'{"lease"')
    folder = Folder(tmp_path / "other", 10)
    assert folder.journal() is None


def test_what_is_delivered_is_forgotten_and_a_stop_ends_the_work(tmp_path: Path) -> None:
    folder, cancellation = Folder(tmp_path, 10), Cancellation()
    turns = [(200, {}, {"say": "go on", "why": ""}), (409, {}, {"error": "it ran out"})]
    with answering(*turns) as (url, asked):
        holding = Lease(ServerClient(url, TOKEN, threading.Event()), folder, "l", cancellation)
        holding.put(RESULT)
        assert holding.deliver().say is Directive.GO
        journal = folder.journal()
        assert journal is not None and journal.results == ()
        assert holding.sent == {"k": RESULT}
        holding.put(RESULT)
        holding.deliver_all()
    assert holding.end is not None and holding.end.why == "it ran out"
    assert cancellation.cancelled
    assert asked[1][2]["results"][0]["kernel"] == "k"
    with pytest.raises(Cancelled):
        holding.put(RESULT)


def test_a_token_that_ended_ends_the_worker(tmp_path: Path) -> None:
    cancellation = Cancellation()
    with answering((401, {}, {"error": "a valid API token is due"})) as (url, _):
        server = ServerClient(url, TOKEN, threading.Event())
        holding = Lease(server, Folder(tmp_path, 10), "l", cancellation)
        with pytest.raises(TokenError, match="valid"), holding.keep_alive(1000.0):
            holding.put(RESULT)
    assert cancellation.cancelled


def run(*arguments: str, **environment: str) -> tuple[int, str]:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "scheduler.commands.kiln", *arguments]
    own = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)} | environment
    done = subprocess.run(
        command, env=own, capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.full(but=2)
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("https://kiln.example", "--token-file", "nowhere"), "nowhere cannot be read"),
        (("https://kiln.example",), "no valid token"),
        (("http://kiln.example", "--token-file", "token"), "use https://"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    given = [str(tmp_path / one) if one == "token" else one for one in arguments]
    status, said = run("worker", "join", *given, "--folder", str(tmp_path / "f"))
    assert status == kiln.USER_ERROR
    assert words in said and said.startswith("kiln: ") and said.count("\n") == 1


def test_neither_django_nor_a_database_is_loaded() -> None:
    program = (
        "import sys, scheduler.agent.worker, scheduler.commands.kiln;"
        "from codegen_app.platform.command_line import main;"
        "assert main(['worker', 'join', 'https://kiln.example']) == 2;"
        "print({'django', 'psycopg', 'celery', 'codegen_app.models'} & set(sys.modules))"
    )
    own = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=own, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
