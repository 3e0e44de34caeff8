"""A site whose artifacts are in a bucket: a worker with a folder of its own, and S3 that goes away
while it works."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db.models import Q
from django.test import Client

from codegen_app.graphs.models import Graph
from codegen_app.graphs.services import imports as graphs
from codegen_app.kernels.models import Build
from codegen_app.platform import files
from codegen_app.platform.config import storage
from codegen_app.platform.models import Artifact
from codegen_app.workers.models import State
from scheduler import samples, targets
from scheduler.build.recipe import recipe_of
from tests.app.installations import BROKER, Installation
from tests.app.workers.test_real_workers import COMPILING, Workers
from tests.support.s3_server import BUCKET, S3Server

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]
AWAY = "S3 does not answer"


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory, settings: Any) -> Iterator[S3Server]:
    """Where artifacts of this process are, too."""
    made = S3Server(tmp_path_factory.mktemp("s3"))
    made.start()
    made.make_bucket()
    settings.STORAGES = {**settings.STORAGES, "default": storage.artifacts(made.environment())}
    yield made
    made.kill()


@pytest.fixture
def workers(server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    """On another machine as it were: nothing of this process's folder is theirs."""
    more = server.environment(KILN_WORK_RETRY_S="1", KILN_MODEL="0")
    made = Workers(tmp_path_factory.mktemp("worker"), BROKER, **more)
    yield made
    made.kill()


def _waiting() -> bool:
    rows = (Graph.objects, Build.objects)
    return any(one.filter(state__in=(State.QUEUED, State.RUNNING)).exists() for one in rows)


def test_from_the_import_to_the_restored_backup_while_s3_goes_away_and_comes_back(
    server: S3Server,
    workers: Workers,
    reader: Client,
    here: Installation,
    there: Installation,
    tmp_path: Path,
) -> None:
    graph, _ = graphs.import_graph(samples.path("gpt2_2layer"), "gpt2", ["cpu"], None)
    before = server.names()
    assert len(before) == 1, "the imported file"

    server.kill()
    workers.start_one(COMPILING)
    away = Graph.objects.filter(reason__startswith=AWAY, state=State.QUEUED)
    workers.wait(away.exists, "graph put off while S3 is away")
    server.start()
    workers.wait(Build.objects.filter(state=State.RUNNING).exists, "build begun")
    server.kill()
    put_off = Build.objects.filter(reason__startswith=AWAY, state=State.QUEUED)
    workers.wait(put_off.exists, "build put off while S3 is away")
    server.start()
    assert before <= server.names()
    workers.wait(lambda: not _waiting(), "end of the work")
    graph.refresh_from_db()
    assert (graph.state, graph.reason) == (State.DONE, "")
    assert not Build.objects.exclude(state=State.DONE, reason="").exists()
    rows = Artifact.objects.all()
    assert server.names() == {f"site/one/{row.path}" for row in rows}, "each once, nothing else"
    assert all(files.is_intact(row.path, row.digest) for row in rows)

    _read_pages(reader)
    swept = _in_bucket(here, server).manage("sweep")
    assert (swept.returncode, swept.stderr) == (0, ""), swept.stderr
    assert server.names() == {f"site/one/{row.path}" for row in rows}, "all of it is needed"
    _back_up_and_restore(server, here, there, tmp_path / "backup")


def _in_bucket(site: Installation, server: S3Server, **more: str) -> Installation:
    """The same with its artifacts in the bucket."""
    return Installation(site.var, site.url, server.environment(**more))


def _read_pages(reader: Client) -> None:
    build = Build.objects.filter(~Q(listing=None), ~Q(library=None)).select_related("kernel")[0]
    page = reader.get(f"/kernels/{build.kernel.name}?build={build.pk}")
    assert page.status_code == 200
    assert "The listing file is missing" not in page.content.decode()
    recipe = recipe_of(targets.find(build.target), build.kernel.source_file)
    for name, file in ((recipe.listing_file, build.listing), (recipe.library_file, build.library)):
        assert file is not None
        answer = reader.get(f"/kernels/{build.kernel.name}/{build.pk}/{name}")
        assert files.digest_of(b"".join(answer.streaming_content)) == file.digest


def _back_up_and_restore(
    server: S3Server, here: Installation, there: Installation, folder: Path
) -> None:
    site = _in_bucket(here, server)
    server.kill()
    failed = site.manage("backup", folder)
    assert failed.returncode == 1
    assert failed.stderr.startswith(f"CommandError: {AWAY}"), failed.stderr
    assert failed.stderr.count("\n") == 1
    assert not (folder / "backup.json").exists(), "no whole backup"
    server.start()
    done = site.manage("backup", folder)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr

    other = _in_bucket(there, server, KILN_S3_PREFIX="site/two")
    server.kill()
    failed = other.manage("restore", folder)
    assert failed.returncode == 1
    assert AWAY in failed.stderr
    assert failed.stderr.count("\n") == 1
    server.start()
    restored = other.manage("restore", folder)
    assert restored.returncode == 0, restored.stderr
    ours = {key.removeprefix("site/one/") for key in server.names() if "site/one/" in key}
    theirs = {key.removeprefix("site/two/") for key in server.names() if "site/two/" in key}
    assert ours == theirs
    client = server.client()
    for path in ours:
        one, two = (
            client.get_object(Bucket=BUCKET, Key=f"site/{site}/{path}")["Body"].read()
            for site in ("one", "two")
        )
        assert one == two
    again = other.manage("backup", folder.with_name("again"))
    assert (again.returncode, again.stderr) == (0, ""), "each that its database names is there"
