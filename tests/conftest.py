"""What all tests share: the compiler with a cache, and an embedded PostgreSQL, started when the
first test needs a database.

``DATABASE_URL`` names another server instead, and a superuser of it. Each test process has a
database of its own, so that tests run in parallel; sessions that run at the same time share the
server.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from django.conf import settings
from django.test import TransactionTestCase
from pytest_django import DjangoDbBlocker

from codegen_app.platform import postgres
from codegen_app.platform.config import env
from codegen_app.platform.postgres.memory import memory
from scheduler.build.cache import CodeCache
from scheduler.build.model import Toolchain
from scheduler.build.toolchains import bundled_clang
from scheduler.cpu_count import usable_cpus
from tests.support import databases
from tests.support.caches import KEPT, MOST_BYTES

pytest_plugins = ["tests.support.durations", "tests.support.tiers"]

ROOT = Path(__file__).resolve().parents[1]
# What processes of the tests do without; first in the path of this one by pyproject.toml.
WITHOUT = str(ROOT / "tests" / "support" / "without")
CLUSTER = postgres.cluster_for(ROOT / "var", "tests")
# Nothing in it outlives the tests, so nothing has to reach the disk.
OPTIONS = (
    *("fsync=off", "synchronous_commit=off", "full_page_writes=off"),
    *("max_connections=200", "shared_buffers=128MB"),
)


HAS_GPU = any(Path(name).exists() for name in ("/dev/kfd", "/dev/nvidiactl", "/dev/dxg"))
collect_ignore = [] if HAS_GPU else ["gpu"]


def pytest_configure(config: pytest.Config) -> None:
    """Settings that only tests have; nothing here may need the database."""
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, (WITHOUT, os.environ.get("PYTHONPATH")))
    )
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.CELERY_BROKER_URL = "memory://localhost"
    settings.CELERY_BROKER_TRANSPORT_OPTIONS = {}
    settings.CODE_CACHE_DIR = KEPT.root
    settings.COMPARE_WITH_TORCH = False  # seconds a graph; test_torch_comparisons.py has it done
    settings.SEARCH_MS = 20_000  # for a machine that does much else
    settings.HISTORY_DAYS = 0  # histories of tests are of any year; test_scenarios.py has it done
    settings.MODEL_AUTOMATICALLY = False  # seconds a kernel; test_modelling.py has it done
    settings.PAGES_KEPT_BYTES = 0  # tests see what they changed; test_kept_pages.py keeps them
    settings.MIDDLEWARE = [one for one in settings.MIDDLEWARE if "whitenoise" not in one]
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }


def pytest_sessionfinish(session: pytest.Session) -> None:
    """What was used last is kept of what all runs have compiled."""
    if not hasattr(session.config, "workerinput"):
        KEPT.shrink(MOST_BYTES)


# They share one server's connections. Each has torch and what it compiled, and its compilers,
# workers and browsers.
_MOST_PROCESSES = 8
_BYTES_A_PROCESS = 2 << 30


def pytest_xdist_auto_num_workers() -> int:
    """For ``-n auto``: one more than processors, as many tests wait for processes of their own."""
    room = max(1, memory() // _BYTES_A_PROCESS)
    return min(usable_cpus() + 1, room, _MOST_PROCESSES)


# Minutes by themselves, mostly waiting for processes: at the end of a run one of them would hold
# it up while the other test processes have nothing left to do.
_LONGEST = (
    "tests/app/site/test_demo.py",
    "tests/app/workers/test_real_workers.py",
    "tests/app/workers/test_deaths.py",
    "tests/app/site/test_backups.py",
    "tests/e2e/journeys/",
    "tests/models/",
    "tests/unit/tuning/test_buckets.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first, after those that need what migrations left: tests with real transactions
    empty all tables."""
    items.sort(key=lambda item: (not _in_a_transaction(item), not item.nodeid.startswith(_LONGEST)))


def _in_a_transaction(item: pytest.Item) -> bool:
    """Whether all that a test writes is rolled back."""
    marker = item.get_closest_marker("django_db")
    fixtures = getattr(item, "fixturenames", ())
    real = "transactional_db" in fixtures or (marker and marker.kwargs.get("transaction"))
    return not real and (marker is not None or "db" in fixtures)


@pytest.fixture(scope="session")
def cache() -> CodeCache:
    """Builds of this run and of those before it."""
    return KEPT


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    """The bundled compiler."""
    return bundled_clang(KEPT)


@pytest.fixture(scope="session")
def database_server() -> Iterator[str]:
    """The address of a server whose databases tests may make and drop."""
    given = os.environ.get("DATABASE_URL")
    if given:
        yield given
        return
    with _in_use():
        postgres.start(CLUSTER, OPTIONS)
        yield CLUSTER.url("postgres")


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    database_server: str,
    django_db_blocker: DjangoDbBlocker,
    django_db_modify_db_settings_parallel_suffix: None,
) -> None:
    """Point Django at the server before pytest-django makes the test database there."""
    database = settings.DATABASES["default"]
    database.update(env.database(database_server))
    databases.drop_abandoned(database_server)
    with django_db_blocker.unblock():
        template = databases.migrated(database_server)
    database.setdefault("TEST", {}).update(NAME=databases.own_name(), TEMPLATE=template)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """After tests with transactions of their own, what they left is deleted the quick way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", databases.empty)
        yield


@pytest.fixture(autouse=True)
def _own_files(settings: object, tmp_path: Path) -> None:
    """Whatever a test stores goes away with it."""
    settings.MEDIA_ROOT = tmp_path / "artifacts"
    settings.VAR_DIR = tmp_path
    settings.DEVICE_LOCKS_DIR = tmp_path / "device-locks"


@contextmanager
def _in_use() -> Iterator[None]:
    """Stops the server when the last process that used it is done."""
    CLUSTER.home.parent.mkdir(parents=True, exist_ok=True)
    with (CLUSTER.home.parent / "tests.users").open("w") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        yield
        with suppress(BlockingIOError):
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            postgres.stop(CLUSTER)


@pytest.fixture(autouse=True)
def _numbers_of_torch() -> None:
    """What a test draws from torch's own generator is the same each time, in any order of tests."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(0)
