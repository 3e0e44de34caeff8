"""What nothing needs is removed, and nothing else: not what is stored or used just then."""

from __future__ import annotations

import os
import threading
import time
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.db import connection, transaction
from django.utils import timezone

from codegen_app.kernels.models import Build
from codegen_app.platform import artifacts, files
from codegen_app.platform.models import Artifact
from codegen_app.site import retention
from codegen_app.tuning.models import BenchmarkResult, TuningRun
from codegen_app.workers.models import State
from scheduler.build.cache import CodeCache
from tests.app import factories

pytestmark = pytest.mark.django_db(transaction=True)

LONG_AGO = timezone.now() - timedelta(days=400)


def aged() -> None:
    Artifact.objects.update(used_at=LONG_AGO)


def made_long_ago(path: Path) -> None:
    os.utime(path, (0, 0))


def in_storage(path: str) -> Path:
    return Path(default_storage.path(path))


def test_an_artifact_that_no_row_needs_goes_with_its_file() -> None:
    kept = artifacts.store(b"library", ".so")
    between = artifacts.store(b"ptx", ".ptx")
    listing = artifacts.store(b"listing", ".s")
    factories.build(listing=listing, intermediate=between, library=kept)
    orphan = artifacts.store(b"nobody's", ".so")
    assert retention.sweep()["artifacts"] == 0, "it may be needed in a moment"
    aged()
    assert retention.sweep(dry_run=True)["artifacts"] == 1
    assert artifacts.is_whole(orphan)
    assert retention.sweep()["artifacts"] == 1
    assert not in_storage(orphan.path).exists()
    assert artifacts.read(kept) == b"library"
    assert artifacts.read(between) == b"ptx"
    assert retention.sweep() == dict.fromkeys(retention.sweep(), 0)


def test_files_that_no_row_names_go_once_they_are_old() -> None:
    kept = artifacts.store(b"needed", ".so")
    factories.build(library=kept)
    stray = f"sha256/ab/{files.digest_of(b'stray')}.so"
    files.write(stray, b"stray")
    part = in_storage("sha256/ab/.x.123.part")
    part.write_bytes(b"hal")
    assert retention.sweep()["files without a row"] == 0
    for path in (in_storage(stray), part, in_storage(kept.path)):
        made_long_ago(path)
    assert retention.sweep()["files without a row"] == 2
    assert not in_storage(stray).exists()
    assert not part.exists()
    assert artifacts.is_whole(kept)
    assert Artifact.objects.get() == kept


def test_storing_what_is_just_being_swept_waits_and_writes_it_anew() -> None:
    orphan = artifacts.store(b"content", ".so")
    aged()
    stored: list[Artifact] = []

    def store() -> None:
        try:
            stored.append(artifacts.store(b"content", ".so"))
        finally:
            connection.close()

    thread = threading.Thread(target=store)
    with transaction.atomic():
        assert retention._drop(orphan.pk)
        thread.start()
        while not _somebody_waits():
            time.sleep(0.005)
    thread.join()
    (again,) = stored
    assert again.pk != orphan.pk
    assert artifacts.read(again) == b"content"
    assert retention.sweep()["artifacts"] == 0


def _somebody_waits() -> bool:
    """For this transaction, not for any of those of other tests on this server."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks"
            " WHERE NOT granted AND transactionid = pg_current_xact_id()::xid"
        )
        (count,) = cursor.fetchone()
    return bool(count)


def test_a_sweep_leaves_what_was_stored_again_just_before() -> None:
    orphan = artifacts.store(b"content", ".so")
    aged()
    artifacts.store(b"content", ".so")
    assert not retention._drop(orphan.pk)
    assert artifacts.is_whole(orphan)


def test_the_code_cache_keeps_what_was_used_last(tmp_path: Path) -> None:
    cache = CodeCache(tmp_path / "cache")
    for number in range(10):
        file = tmp_path / "file"
        file.write_bytes(bytes(1000))
        entry = cache.put(f"{number:02}key", {"kernel.so": file}, {})
        for each in entry.directory.iterdir():
            os.utime(each, (1000 + number, 1000 + number))
    assert cache.get("00key") is not None, "used just now"
    assert cache.shrink(10**6) == 0
    assert cache.shrink(6000, dry_run=True) == cache.shrink(6000) > 0
    left = {number for number in range(10) if cache.get(f"{number:02}key")}
    assert {0, 8, 9} < left
    assert not {1, 2, 3} & left
    assert not list((cache.root / "tmp").iterdir())
    assert cache.shrink(1) == 0, "all were used just now"


def test_old_runs_go_where_a_time_is_set_and_what_serves_stays(
    settings: pytest.FixtureRequest,
) -> None:
    task = factories.task()
    candidate = factories.candidate(task)
    result = factories.result(
        candidate.build,
        1.0,
        task=task,
        problem=task.problem,
        environment=factories.environment(),
    )
    TuningRun.objects.update(state=State.DONE, finished_at=LONG_AGO)
    Build.objects.update(state=State.REJECTED, reason="x", finished_at=LONG_AGO)
    assert retention.sweep()["runs"] == 0, "kept for good unless somebody says otherwise"
    settings.KEEP_RUNS_DAYS = settings.KEEP_BUILDS_DAYS = 30
    assert retention.sweep(dry_run=True)["builds"] == 0, "a run needs it"
    found = retention.sweep()
    assert (found["runs"], found["builds"]) == (1, 1)
    assert not TuningRun.objects.exists()
    assert not BenchmarkResult.objects.filter(pk=result.pk).exists()
    assert not Build.objects.exists()


def test_the_command_counts_and_removes() -> None:
    artifacts.store(b"nobody's", ".so")
    aged()
    out = StringIO()
    call_command("sweep", "--dry-run", stdout=out)
    assert "1 artifacts would be removed" in out.getvalue()
    call_command("sweep", stdout=out)
    assert "1 artifacts removed" in out.getvalue()
    assert not Artifact.objects.exists()
