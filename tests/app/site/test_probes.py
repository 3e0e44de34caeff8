"""What load balancers ask: whether the process answers, and whether it could serve."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client

from codegen_app.platform import readiness
from codegen_app.platform.readiness import Check
from tests.support.probes import wait_for_probes

ROOT = Path(__file__).resolve().parents[3]
CLOSED = 1  # a port on which nobody listens
NOT_IN_ALLOWED_HOSTS = {"Host": "10.1.2.3:8000"}


@pytest.fixture(autouse=True)
def _asked_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "FRESH_S", 0.0)
    wait_for_probes(monkeypatch)


@pytest.fixture
def redirecting(settings: object) -> Iterator[None]:
    """As behind a proxy that speaks HTTPS, with pages that need a login."""
    settings.SECURE_SSL_REDIRECT = True
    settings.ALLOWED_HOSTS = ["kiln.example"]
    yield


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database is where nobody listens."""
    database = settings.DATABASES["default"]
    for name, value in {"HOST": "127.0.0.1", "PORT": CLOSED, "PASSWORD": "hunter2"}.items():
        monkeypatch.setitem(database, name, value)


def test_the_process_answers_without_a_database(redirecting: None) -> None:
    """No test here may use a database unless it says so: this one does not."""
    answer = Client().get("/healthz", headers=NOT_IN_ALLOWED_HOSTS)
    assert (answer.status_code, answer.text) == (200, "ok\n")
    assert not answer.cookies
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("address", ["/healthz", "/readyz"])
def test_they_are_read_alone(address: str, redirecting: None, transactional_db: None) -> None:
    for method in ("post", "put", "delete", "options"):
        answer = getattr(Client(), method)(address)
        assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, HEAD")
    whole, head = Client().get(address), Client().head(address)
    assert (head.status_code, head.content) == (200, b"")
    assert int(head.headers["Content-Length"]) == len(whole.content)


def test_a_site_that_can_serve_is_ready(
    redirecting: None, transactional_db: None, tmp_path: Path
) -> None:
    answer = Client().get("/readyz", headers=NOT_IN_ALLOWED_HOSTS)
    names = ("database", "migrations", "artifacts", "broker")
    assert answer.json() == {"ready": True, "checks": dict.fromkeys(names, "ok")}
    assert answer.status_code == 200
    assert not answer.cookies
    assert list((tmp_path / "artifacts").iterdir()) == []


def test_messages_in_the_database_need_no_check_of_their_own(
    transactional_db: None, settings: object
) -> None:
    settings.CELERY_BROKER_URL = "database://localhost"
    assert list(readiness.run_checks()) == ["database", "migrations", "artifacts"]


def test_a_database_that_is_away_is_named_and_nothing_of_it_shown(
    elsewhere: None, caplog: pytest.LogCaptureFixture
) -> None:
    answer = Client().get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["ready"] is False
    checks = answer.json()["checks"]
    assert checks["database"] == "does not answer"
    assert checks["migrations"] != checks["artifacts"] == "ok"
    for secret in ("hunter2", "127.0.0.1", settings.DATABASES["default"]["USER"]):
        assert secret not in answer.text
    assert "127.0.0.1" in caplog.text, "the operator learns where it was looked for"
    assert "hunter2" not in caplog.text


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("forgotten", "first"),
    [
        ("sessions.0001_initial", "sessions.0001_initial"),
        ("codegen_app.0050_accounted", "codegen_app.0001_squashed_0050_accounted"),
    ],
)
def test_a_migration_that_is_not_applied_is_named(forgotten: str, first: str) -> None:
    row = forgotten.split(".")
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM django_migrations WHERE app = %s AND name = %s RETURNING applied", row
        )
        (applied,) = cursor.fetchone()
        try:
            found = readiness.run_checks()
        finally:
            cursor.execute(
                "INSERT INTO django_migrations (app, name, applied) VALUES (%s, %s, %s)",
                [*row, applied],
            )
    assert found["migrations"] == f"1 not applied, first {first}: run kiln manage migrate"
    assert readiness.run_checks()["migrations"] == "ok"


def test_artifacts_that_cannot_be_written(transactional_db: None, tmp_path: Path) -> None:
    (tmp_path / "artifacts").write_text("a file where the folder should be")
    answer = Client().get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"]["artifacts"] == "cannot be written, or not be reached"
    assert str(tmp_path) not in answer.text


PROBED = """
import django
django.setup()
from codegen_app.platform import readiness
print(readiness.run_checks(120)["broker"])
"""


def test_a_broker_of_its_own_is_asked_for(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "codegen_app.platform.config.settings",
        "DATABASE_URL": f"postgresql://nobody@127.0.0.1:{CLOSED}/none",
        "KILN_VAR": str(tmp_path),
        "KILN_BROKER_URL": f"redis://:hunter2@127.0.0.1:{CLOSED}/0",
    }
    done = subprocess.run(
        [sys.executable, "-c", PROBED],
        check=False, cwd=ROOT, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout == "does not answer\n", done.stderr
    assert "hunter2" not in done.stderr


def test_what_does_not_answer_is_waited_for_once_and_not_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    over, asked = Event(), []

    def hang() -> None:
        asked.append(1)
        over.wait()

    check = Check("database", hang, "does not answer")
    monkeypatch.setattr(readiness, "checks", lambda: (check,))
    for _ in range(3):
        assert readiness.run_checks(0.01) == {"database": "no answer within 0.01 s"}
    assert asked == [1]
    over.set()
    assert check.begin().result(60) == "ok"
    assert readiness.run_checks(60) == {"database": "ok"}
    assert asked == [1, 1]


def test_many_who_ask_get_one_fresh_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    check = Check("database", lambda: asked.append(1), "does not answer")
    monkeypatch.setattr(readiness, "checks", lambda: (check,))
    monkeypatch.setattr(readiness, "FRESH_S", 3600.0)
    for _ in range(5):
        assert readiness.run_checks(60) == {"database": "ok"}
    assert asked == [1]
