"""Whether this process could serve a page now: checks of what it depends on, with a time limit.

Anybody may ask (load balancers have no login), so answers name no host, account or path; these go
to the log. However many ask at once, each check runs at most once a second.
"""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLateError
from pathlib import Path

import psycopg
from django.conf import settings
from django.core.files.storage import FileSystemStorage, default_storage

from codegen_app.platform import squashed
from codegen_app.platform.broker import transport
from codegen_app.platform.config.celery import app
from codegen_app.platform.config.redaction import redact_urls
from scheduler.text import one_line

OK = "ok"
LIMIT_S = 2.0  # of all checks, which run in parallel
FRESH_S = 1.0  # how long an answer is reused
_STORAGE_PROBE = "readiness"  # a name that is only looked up

log = logging.getLogger(__name__)


class NotReadyError(Exception):
    """What is missing, as one public line."""


class Check:
    """A dependency. ``ask`` returns, or raises ``NotReadyError`` with a line to show; for any other
    error ``failed`` is shown, and the log has the details."""

    def __init__(self, name: str, ask: Callable[[], None], failed: str) -> None:
        self.name = name
        self._ask = ask
        self._failed = failed
        self._lock = threading.Lock()
        self._asked_at = 0.0
        self._answer: Future[str] | None = None

    def begin(self) -> Future[str]:
        """Return a pending or fresh answer. A check that hangs keeps one thread, not one per
        request."""
        with self._lock:
            now = time.monotonic()
            present = self._answer
            if present and (not present.done() or now - self._asked_at < FRESH_S):
                return present
            self._asked_at, self._answer = now, Future()
            threading.Thread(
                target=self._run, args=(self._answer,), name=f"readiness {self.name}", daemon=True
            ).start()
            return self._answer

    def _run(self, answer: Future[str]) -> None:
        try:
            self._ask()
        except NotReadyError as error:
            answer.set_result(str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, that is the answer
            log.warning("%s: %s", self.name, one_line(redact_urls(str(error))))
            answer.set_result(self._failed)
        else:
            answer.set_result(OK)


def checks() -> tuple[Check, ...]:
    """Return this installation's checks; a broker other than the database has its own."""
    is_database = settings.CELERY_BROKER_URL.startswith(f"{transport.SCHEME}:")
    return _REQUIRED if is_database else (*_REQUIRED, _BROKER)


def run_checks(limit_s: float = LIMIT_S) -> dict[str, str]:
    """Return each check's result by name within ``limit_s``: "ok", or one line on the fault."""
    deadline = time.monotonic() + limit_s
    answers = {check.name: check.begin() for check in checks()}
    return {name: _await_answer(deadline, answer, limit_s) for name, answer in answers.items()}


def database(limit_s: float = LIMIT_S) -> str:
    """Return the result of the database's check alone."""
    return _await_answer(time.monotonic() + limit_s, _DATABASE.begin(), limit_s)


def _await_answer(deadline: float, answer: Future[str], limit_s: float) -> str:
    try:
        return answer.result(max(0.0, deadline - time.monotonic()))
    except TooLateError:
        return f"no answer within {limit_s:g} s"


def _connect() -> psycopg.Connection[tuple[str, str]]:
    """Return a separate connection: Django's have longer limits, and do not notice a hang for
    minutes."""
    return psycopg.connect(
        **transport.parameters(),
        autocommit=True,
        application_name="kiln readiness",
        connect_timeout=int(LIMIT_S),
        options=f"-c statement_timeout={int(LIMIT_S * 1000)}",
        tcp_user_timeout=int(LIMIT_S * 1000),
    )


def check_database() -> None:
    """Ask the database."""
    with _connect() as connection:
        connection.execute("SELECT 1")


def check_migrations() -> None:
    """Compare the applied migrations with this version's."""
    with _connect() as connection:
        try:
            applied = set(connection.execute("SELECT app, name FROM django_migrations").fetchall())
        except psycopg.errors.UndefinedTable:
            applied = set()
    missing = sorted(squashed.code_migrations().keys() - squashed.with_squashed(applied))
    if missing:
        first = ".".join(missing[0])
        raise NotReadyError(f"{len(missing)} not applied, first {first}: run kiln manage migrate")


def check_artifacts() -> None:
    """Write to the folder of artifacts, or ask the bucket."""
    if isinstance(default_storage, FileSystemStorage):
        folder = Path(default_storage.location)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=f".{_STORAGE_PROBE}-") as file:
            file.write(bytes(4096))
            file.flush()
    elif ask := getattr(default_storage, "ask", None):  # a bucket, for which a 404 says nothing
        ask()
    else:
        default_storage.exists(_STORAGE_PROBE)  # a remote storage is not written to each second


def check_broker() -> None:
    """Connect to a broker other than the database."""
    with app.connection_for_write(
        connect_timeout=LIMIT_S,
        transport_options={"socket_connect_timeout": LIMIT_S, "socket_timeout": LIMIT_S},
    ) as connection:
        connection.connect()
        connection.default_channel  # noqa: B018 - Redis is first asked for here


_DATABASE = Check("database", check_database, "does not answer")
_MIGRATIONS = Check("migrations", check_migrations, "cannot be read: the database does not answer")
_ARTIFACTS = Check("artifacts", check_artifacts, "cannot be written, or not be reached")
_BROKER = Check("broker", check_broker, "does not answer")
_REQUIRED = (_DATABASE, _MIGRATIONS, _ARTIFACTS)
