"""What tests of the pages start from: a small site with compiled kernels, and people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from psycopg import sql

from codegen_app.accounts import permissions
from scheduler import pipeline, untrusted
from scheduler.ir.serialize import graph_to_json
from tests.app.installations import BROKER, Installation
from tests.app.processes import worker_environment
from tests.support.caches import KEPT
from tests.support.leases import long_heartbeats  # noqa: F401 -- a fixture
from tests.support.pages_world import World, make_world


@pytest.fixture(autouse=True)
def _read_here(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples are read in this process: one more for each takes half a second."""
    if "apart" not in request.keywords:
        monkeypatch.setattr(untrusted, "read_graph", lambda file, *_: _graph_in(file))
        monkeypatch.setattr(untrusted, "dry_run", lambda *_: None)


def _graph_in(file: Path) -> dict[str, Any]:
    return graph_to_json(pipeline.load(file))


RIGHTS = [name.partition(".")[2] for name in permissions.TITLES]


@pytest.fixture(scope="session")
def code_cache() -> Path:
    return KEPT.root


@pytest.fixture
def world(code_cache: Path) -> World:
    return make_world(code_cache)


@pytest.fixture
def reader(client: Client) -> Client:
    client.force_login(User.objects.create_user("reader"))
    return client


@pytest.fixture
def tuner(client: Client) -> Client:
    user = User.objects.create_user("tuner")
    user.user_permissions.set(Permission.objects.filter(codename__in=RIGHTS))
    client.force_login(user)
    return client


@pytest.fixture
def here(transactional_db: None, tmp_path: Path) -> Installation:
    """The test's own."""
    return Installation(tmp_path, worker_environment(tmp_path, BROKER)["DATABASE_URL"])


@pytest.fixture
def there(here: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Another on the same server, with nothing in it."""
    name = f"{connection.settings_dict['NAME']}_restored"
    parts = urlsplit(here.url)
    url = urlunsplit(parts._replace(path=f"/{name}"))
    admin = urlunsplit(parts._replace(path="/postgres"))
    with psycopg.connect(admin, autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        yield Installation(tmp_path_factory.mktemp("restored"), url)
        server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
