"""The demo's start after a bad end, and its database server's bad ends."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.conf import settings as django_settings
from django.contrib.staticfiles.storage import staticfiles_storage
from django.db import OperationalError
from django.utils.functional import empty

from codegen_app.management.commands import demo
from codegen_app.platform import postgres
from codegen_app.platform.postgres import PostgresError
from codegen_app.site.demo import database, preparation
from codegen_app.site.demo.database import DatabaseServer
from tests.app.processes import wait_until_gone


def test_a_key_that_a_full_disk_cut_off_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "secret-key").write_text("")
    key = preparation.secret_key(tmp_path)
    assert len(key) >= 50
    assert preparation.secret_key(tmp_path) == key
    assert (tmp_path / "secret-key").stat().st_mode & 0o077 == 0


def test_what_killed_compilers_were_at_is_removed(
    tmp_path: Path, settings: pytest.FixtureRequest
) -> None:
    settings.VAR_DIR = tmp_path
    for folder in (tmp_path / "tmp", tmp_path / "code-cache" / "tmp"):
        (folder / "left").mkdir(parents=True)
    environment = demo.Command()._environment("127.0.0.1", 8000)
    assert environment["TMPDIR"] == str(tmp_path / "tmp")
    assert not list((tmp_path / "tmp").iterdir())
    assert not list((tmp_path / "code-cache" / "tmp").iterdir())


def test_static_files_that_were_cut_off_are_made_again(
    tmp_path: Path, settings: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.STATIC_ROOT = tmp_path / "static"
    settings.STATICFILES_DIRS = [django_settings.BASE_DIR / "static" / "css"]
    settings.STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
    monkeypatch.setattr(staticfiles_storage, "_wrapped", empty)  # it knows the folder of before
    preparation.collect_static_files()
    made = settings.STATIC_ROOT / "web" / "tokens.css"
    whole = made.read_bytes()
    made.write_bytes(b"")
    (tmp_path / "static-collected").unlink()  # as a start that was killed leaves it
    preparation.collect_static_files()
    assert made.read_bytes() == whole


def test_a_database_server_that_was_killed_is_started_again(tmp_path: Path) -> None:
    lines: list[str] = []
    cluster = postgres.cluster_for(tmp_path)
    server = DatabaseServer(cluster, lines.append)
    try:
        server.start()
        number = int((cluster.data / "postmaster.pid").read_text().split()[0])
        server.watch()
        assert lines == []
        os.kill(number, signal.SIGKILL)
        wait_until_gone(number)
        server.watch()
        assert lines == ["the database server ended; restarting it"]
        assert postgres.is_running(cluster)
        server.stop()
    finally:
        postgres.remove(tmp_path)


def test_a_server_that_does_not_come_back_is_started_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped in its tracks, as one that waits for a helper that was killed while it recovered."""
    lines: list[str] = []
    now = [0.0]
    cluster = postgres.cluster_for(tmp_path)
    try:
        postgres.start(cluster, ("fsync=off",))
        monkeypatch.setattr(database, "time", SimpleNamespace(monotonic=lambda: now[0]))
        server = DatabaseServer(cluster, lines.append)
        monkeypatch.setattr(database.postgres, "is_ready", lambda _: False)
        server.watch()
        assert lines == []
        now[0] += 31.0
        server.watch()
        assert lines == ["the database server does not recover; restarting it"]
        assert not postgres.is_running(cluster)
        server.watch()
        monkeypatch.undo()
        assert postgres.is_ready(cluster)
    finally:
        postgres.remove(tmp_path)


def test_a_server_that_does_not_start_is_tried_less_and_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    now = [0.0]

    def full(_: object) -> None:
        raise PostgresError("PostgreSQL did not start: No space left on device")

    monkeypatch.setattr(database.postgres, "start", full)
    monkeypatch.setattr(database, "time", SimpleNamespace(monotonic=lambda: now[0]))
    server = DatabaseServer(postgres.cluster_for(tmp_path), lines.append)
    for _ in range(100):
        server.watch()
        now[0] += 1.0
    assert 6 <= len(lines) / 2 <= 10
    assert lines[1].endswith("No space left on device; trying again in 1 s")
    assert lines[-1].endswith("trying again in 30 s")


def test_what_may_be_asked_again_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    answers = [OperationalError("the server closed the connection\n\tdetail"), 7]

    def question() -> object:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(database, "_PAUSE_S", 0.0)
    monkeypatch.setattr(database, "_forget_connections", lambda: None)
    assert DatabaseServer(None, lines.append).retry(question) == 7
    assert lines == ["the database: the server closed the connection; asking again"]
