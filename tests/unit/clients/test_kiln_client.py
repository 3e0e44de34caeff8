"""The client for CI: one copied file, against a real server that does what networks do."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from scheduler.clients import kiln_client as client
from tests.support.git_repositories import Repository

STORED = {"batch": 1, "points": 1, "series": 1, "new_series": 1, "left_out": []}


class Server:
    """Answers in turn as it was told to, the last answer again and again; keeps what it got."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, Any, dict[str, str]]] = [(200, STORED, {})]
        self.got: list[SimpleNamespace] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.got.append(
                    SimpleNamespace(path=self.path, headers=dict(self.headers), body=body)
                )
                place = min(len(outer.got), len(outer.answers)) - 1
                status, content, headers = outer.answers[place]
                if not status:  # the connection ends without an answer
                    self.close_connection = True
                    return
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(data)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        serve = self._server.serve_forever
        threading.Thread(target=serve, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long it waited before each further try; nothing waits here."""
    found: list[float] = []
    monkeypatch.setattr(client, "time", SimpleNamespace(sleep=found.append, time=time.time))
    return found


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "results.json").write_text('{"kind": "kiln points"}')
    (tmp_path / "token").write_text("kiln_secret\n")
    return tmp_path


def push(server: Server, *more: str) -> int:
    given = ["push", "results.json", "--url", server.url, "--token-file", "token", *more]
    return client.main(given)


def test_what_is_sent(server: Server, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert push(server, "--device", "NVIDIA H200", "--measured-at", "2026-11-20T10:00Z") == 0
    (got,) = server.got
    assert got.body == (files / "results.json").read_bytes()
    assert got.path == ("/api/v1/results?device=NVIDIA+H200&measured_at=2026-11-20T10%3A00Z")
    assert got.headers["Authorization"] == "Bearer kiln_secret"
    assert json.loads(capsys.readouterr().out) == STORED


def test_the_key_is_that_of_the_batch(server: Server, files: Path) -> None:
    push(server)
    push(server)
    push(server, "--device", "other")
    (files / "results.json").write_text("{}")
    push(server)
    push(server, "--key", "mine")
    keys = [one.headers["Idempotency-Key"] for one in server.got]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 4
    assert keys[-1] == "mine"


@pytest.mark.parametrize(
    "failure",
    [
        (0, b"", {}),
        (500, b"<h1>", {}),
        (502, b"", {}),
        (503, {"error": "busy"}, {}),
        (200, b"<html>a proxy's page</html>", {}),
    ],
)
def test_temporary_failures_are_tried_again_with_the_same_key(
    failure: Any, server: Server, files: Path, waited: list[float]
) -> None:
    server.answers = [failure, failure, (200, STORED, {})]
    assert push(server) == client.STORED
    assert len({one.headers["Idempotency-Key"] for one in server.got}) == 1
    assert len(server.got) == 3
    assert 0.5 <= waited[0] <= 1.0 <= waited[1] <= 2.0


def test_it_waits_as_long_as_it_is_asked_to(
    server: Server, files: Path, waited: list[float]
) -> None:
    asked = ("7", "100000", "soon", "nan", "Fri, 01 Jan 2021 00:00:00 GMT")
    server.answers = [
        *((429, {"error": "rate"}, {"Retry-After": one}) for one in asked),
        (200, STORED, {}),
    ]
    assert push(server) == client.STORED
    assert waited[:2] == [7.0, client.MAX_WAIT_S]
    assert waited[4] == 0.0
    assert 2 <= waited[2] <= 4 <= waited[3] <= 8


@pytest.mark.parametrize(
    ("status", "due"),
    [
        (400, client.REFUSED),
        (401, client.NO_TOKEN),
        (403, client.NO_TOKEN),
        (404, client.REFUSED),
        (409, client.REFUSED),
        (413, client.REFUSED),
        (422, client.REFUSED),
        (302, client.REFUSED),
    ],
)
def test_what_another_try_cannot_mend_is_tried_once(
    status: int, due: int, server: Server, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "points[3].value: a number is due"
    server.answers = [(status, {"error": line}, {"Location": f"{server.url}/other"})]
    assert push(server) == due
    assert len(server.got) == 1, "a token follows no redirection"
    assert f"{status}: {line}" in capsys.readouterr().err


def test_a_server_that_is_away_is_said_after_all_tries(
    server: Server, files: Path, waited: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    server.close()
    assert push(server, "--tries", "3") == client.NOT_REACHED
    assert len(waited) == 2
    assert "not reached in 3 tries" in capsys.readouterr().err


def test_wrong_usage_sends_nothing(
    server: Server, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["push", "results.json", "--url", server.url]
    assert client.main(given) == client.USAGE
    assert client.main([*given, "--token-file", "none"]) == client.USAGE
    (files / "empty").write_text(" \n")
    assert client.main([*given, "--token-file", "empty"]) == client.USAGE
    missing = ["push", "none.json", "--url", server.url, "--token-file", "token"]
    assert client.main(missing) == client.USAGE
    assert client.main([*given[:3], "file:///x", "--token-file", "token"]) == client.USAGE
    with pytest.raises(SystemExit) as ended:
        client.main(["push"])
    assert ended.value.code == client.USAGE
    assert server.got == []
    assert "kiln_secret" not in capsys.readouterr().err


def test_what_was_left_out_is_said(
    server: Server, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left_out = [{"where": "benchmarks[7]", "reason": "BM_x: it failed"}]
    server.answers = [(200, STORED | {"left_out": left_out}, {})]
    assert push(server) == 0
    assert "left out: benchmarks[7]: BM_x: it failed" in capsys.readouterr().err


def test_notes_of_the_answer_are_printed(
    server: Server, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    note = "2 series have no points of the trunk: the points are of “develop”"
    server.answers = [(200, STORED | {"notes": [note]}, {})]
    assert push(server) == 0
    assert note in capsys.readouterr().err


def sent(server: Server) -> dict[str, str]:
    """The parameters of the last request."""
    return dict(parse_qsl(urlsplit(server.got[-1].path).query))


def test_in_a_checkout_the_revision_is_its_own(server: Server, files: Path) -> None:
    repository = Repository(files)
    repository.git("add", "results.json")
    commit = repository.commit("a subject")
    push(server)
    assert sent(server) == {
        "revision": commit,
        "revision_at": "2026-11-02T10:00:00+00:00",
        "branch": "main",
        "subject": "a subject",
        "author": "Ada Lovelace",
    }
    push(server, "--no-author", "--branch", "", "--subject", "another")
    assert sent(server).keys() == {"revision", "revision_at", "subject"}
    (files / "results.json").write_text("{ }")
    push(server)
    assert sent(server)["revision"] == f"{commit}-dirty"
    (files / "results.json").write_text('{"commit_info": {"id": "of the file"}}')
    push(server)
    assert sent(server) == {}
    push(server, "--revision", "v1")
    assert sent(server) == {"revision": "v1"}


def test_a_file_of_other_revisions_is_sent_without_those_of_the_checkout(
    server: Server, files: Path
) -> None:
    """An option without a revision is for all points of the file."""
    commit = Repository(files).commit("a")

    def send(*revisions: Any) -> dict[str, str]:
        points = [{"revision": revision} if revision else {} for revision in revisions]
        content = {"kind": "kiln points", "schema": 1, "points": points}
        (files / "results.json").write_text(json.dumps(content))
        push(server, "--branch", "release")
        return sent(server)

    assert send("old", {"name": "older"}) == {"branch": "release"}
    for revisions in (["old", commit], ["old", None], [commit[:7]], [f"{commit}-dirty"]):
        assert send(*revisions)["revision"] == commit
    assert send(commit[:6]) == {"branch": "release"}


def test_the_commit_of_the_ci_system_is_better_than_that_of_the_file(
    server: Server, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pytest-benchmark records the merge commit of a pull request."""
    (files / "results.json").write_text('{"commit_info": {"id": "of the file"}}')
    monkeypatch.setenv("GITLAB_CI", "true")
    monkeypatch.setenv("CI_COMMIT_SHA", "a" * 40)
    push(server)
    assert sent(server) == {"revision": "a" * 40}


def test_what_an_older_server_does_not_store_is_said(
    server: Server, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repository = Repository(files)
    repository.commit("a")
    unknown = [
        (422, {"error": f"query.{name}: unknown field"}, {}) for name in ("author", "subject")
    ]
    server.answers = [*unknown, (200, STORED, {})]
    assert push(server) == client.STORED
    assert sent(server).keys() == {"revision", "revision_at", "branch"}
    assert len({one.headers["Idempotency-Key"] for one in server.got}) == 3
    printed = capsys.readouterr().err
    for name in ("author", "subject"):
        assert f"this version of Kiln does not store {name}: sent without it" in printed
    # A value that an option states is not omitted.
    server.answers = unknown
    server.got.clear()
    assert push(server, "--author", "Ada") == client.REFUSED
    assert "query.author: unknown field" in capsys.readouterr().err


def test_a_requested_revision_is_skipped_with_a_reason(
    server: Server, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = {"bisection": 3, "state": "running", "next_request": 8}
    server.answers = [(200, answer, {})]
    connection = ["--url", server.url, "--token-file", "token"]
    assert client.main(["skip", "7", "--reason", "does not build", *connection]) == 0
    assert json.loads(capsys.readouterr().out) == answer
    (request,) = server.got
    assert request.path == "/api/v1/requests/7/skip"
    assert json.loads(request.body) == {"reason": "does not build"}
    assert request.headers["Content-Type"] == "application/json"


def test_the_file_is_python_3_9() -> None:
    """Machines with GPUs are not always up to date."""
    source = Path(client.__file__).read_text()
    modules = set()
    for node in ast.walk(ast.parse(source, feature_version=(3, 9))):
        match node:
            case ast.Import(names=names):
                modules.update(alias.name for alias in names)
            case ast.ImportFrom(module=str(module)):
                modules.add(module)
    assert {module.split(".")[0] for module in modules} <= sys.stdlib_module_names


def test_a_copy_of_the_file_runs_by_itself(server: Server, files: Path) -> None:
    shutil.copy(client.__file__, files / "kiln_client.py")
    command = ["-I", "-S", "-c", "import runpy, sys; sys.path.insert(0, '.')"]
    command[-1] += "; sys.argv = sys.argv[0:1] + sys.argv[1:]"
    command[-1] += "; runpy.run_module('kiln_client', run_name='__main__')"
    given = ["push", "-", "--url", server.url, "--token-file", "token"]
    done = subprocess.run(
        [sys.executable, *command, *given],
        input=b"AUTOTUNE mm(1x1)\n",
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, json.loads(done.stdout)) == (0, STORED), done.stderr
    assert server.got[0].headers["Content-Type"] == "text/plain"
