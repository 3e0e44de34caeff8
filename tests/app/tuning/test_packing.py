"""Large bundles are packed by workers: asked for once, cancelled, tried again, kept for a while."""

from __future__ import annotations

import errno
import io
import json
import os
import threading
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import IO, Any

import pytest
from django.contrib.auth.models import User
from django.core.files.storage import default_storage
from django.db import connection
from django.test import Client
from django.utils import timezone

from codegen_app import tasks
from codegen_app.accounts.models import AuditEntry
from codegen_app.graphs.models import Graph
from codegen_app.kernels.models import Build, KernelUse, Packing
from codegen_app.platform.models import Artifact
from codegen_app.site import queued_work, retention
from codegen_app.tuning.services import bundles, packing
from codegen_app.tuning.services.bundles import BundleRequest, Progress
from codegen_app.workers import queue, work
from codegen_app.workers.models import State
from scheduler.errors import UserError
from tests.app import factories
from tests.app.tuning.test_downloads import made_build
from tests.support.pages_world import World

# Workers and threads have connections of their own, which must see the rows.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundles, "MAX_NODES", 0)


@pytest.fixture
def quickly_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bundles that hold nothing of their kernels."""
    monkeypatch.setattr(
        bundles, "write", lambda requested, out, _: out.write(requested.key.encode())
    )


def address(graph: Graph) -> str:
    return f"/graphs/{graph.pk}/bundle.zip"


def asked(client: Client, graph: Graph) -> Packing:
    """What the page's button asks for."""
    page = client.get(address(graph), follow=True)
    assert page.redirect_chain == [(f"/graphs/{graph.pk}/pack", 302)]
    assert "Packing takes too long for a page request" in " ".join(page.content.decode().split())
    answer = client.post(f"/graphs/{graph.pk}/pack")
    row = Packing.objects.latest("pk")
    assert answer.headers["Location"] == row.get_absolute_url()
    return row


def body(answer: Any) -> bytes:
    return b"".join(answer.streaming_content)


@pytest.mark.full
def test_a_worker_packs_it_and_it_is_downloaded_in_parts(reader: Client, tmp_path: Path) -> None:
    graph = factories.prepared_graph()
    defaults = KernelUse.objects.filter(template_node__graph=graph, is_default=True)
    for kernel in {use.kernel for use in defaults}:
        made_build(kernel, "gfx942")
    row = asked(reader, graph)
    page = reader.get(row.get_absolute_url()).content.decode()
    assert 'hx-trigger="every 2s"' in page
    assert reader.get(address(graph)).headers["Location"] == row.get_absolute_url()
    tasks.prepare()
    state = reader.get(f"/packings/{row.pk}.json").json()
    assert (state["state"], state["packed"], state["kernels"]) == (
        *("done", defaults.values("kernel").distinct().count()),
        defaults.values("kernel").distinct().count(),
    )
    answer = reader.get(address(graph))
    whole = body(answer)
    assert int(answer.headers["Content-Length"]) == len(whole) == state["size_bytes"]
    assert answer.headers["ETag"] == f'"{Packing.objects.get().file.digest}"'
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        assert archive.testzip() is None
        (top,) = {name.split("/")[0] for name in archive.namelist()}
        manifest = json.loads(archive.read(f"{top}/manifest.json"))
        assert set(manifest["kernels"]) == {use.kernel.name for use in defaults}
    (tmp_path / "direct.zip").write_bytes(body_of(bundles.open_bundle(bundles.graph_bundle(graph))))
    assert (tmp_path / "direct.zip").read_bytes() == whole, "the same, whoever packs it"

    use = defaults.first()
    assert use is not None
    of_kernel = reader.get(f"/kernels/{use.kernel.name}/bundle.zip?node={use.template_node_id}")
    assert of_kernel.headers["Location"] == f"/graphs/{graph.pk}/pack?use={use.pk}"
    reader.post(of_kernel.headers["Location"])
    tasks.prepare()
    again = reader.get(f"/kernels/{use.kernel.name}/bundle.zip?node={use.template_node_id}")
    assert use.kernel.name[:20] in again.headers["Content-Disposition"]
    with zipfile.ZipFile(io.BytesIO(body(again))) as archive:
        assert any(name.endswith("gfx942/kernel.so") for name in archive.namelist())


def body_of(file: IO[bytes]) -> bytes:
    with file:
        return file.read()


def test_a_download_goes_on_where_it_broke_off(
    reader: Client, world: World, quickly_written: None
) -> None:
    row = asked(reader, world.graph)
    tasks.prepare()
    row.refresh_from_db()
    whole = row.key.encode()
    place = f"/packings/{row.pk}/bundle.zip"

    def part(given: str, **more: str) -> tuple[int, str | None, bytes]:
        answer = reader.get(place, headers={"range": given, **more})
        content = body(answer) if answer.streaming else answer.content
        assert int(answer.headers.get("Content-Length", len(content))) == len(content)
        return answer.status_code, answer.headers.get("Content-Range"), content

    assert row.file is not None
    same, other = f'"{row.file.digest}"', '"another"'
    assert part("bytes=10-") == (206, "bytes 10-63/64", whole[10:])
    assert part("bytes=0-0") == (206, "bytes 0-0/64", whole[:1])
    assert part("bytes=-4") == (206, "bytes 60-63/64", whole[-4:])
    assert part("bytes=60-900", **{"if-range": same}) == (206, "bytes 60-63/64", whole[60:])
    assert part("bytes=60-", **{"if-range": other}) == (200, None, whole)
    assert part("bytes=64-") == (416, "bytes */64", b"")
    for odd in ("bytes=", "bytes=-", "bytes=1-2,4-5", "lines=1-2", "bytes=x-"):
        assert part(odd) == (200, None, whole), odd
    head = reader.head(place)
    assert (head.status_code, head.headers["Content-Length"]) == (200, "64")


def test_twenty_who_ask_for_the_same_get_one(reader: Client, world: World) -> None:
    people = [User.objects.create_user(f"p{number}") for number in range(20)]
    found: list[int] = []

    def ask(person: User) -> None:
        try:
            found.append(packing.request_packing(bundles.graph_bundle(world.graph), person).pk)
        finally:
            connection.close()

    threads = [threading.Thread(target=ask, args=[person]) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(found), len(set(found)), Packing.objects.count()) == (20, 1, 1)
    assert AuditEntry.objects.filter(action="pack").count() == 1


def test_the_same_is_packed_once_and_what_changed_anew(
    reader: Client, world: World, quickly_written: None
) -> None:
    first = asked(reader, world.graph)
    tasks.prepare()
    reader.post(f"/graphs/{world.graph.pk}/pack")
    assert not work.due_rows(Packing.objects.all()).exists()
    Build.objects.filter(target="gfx942").update(code_digest=factories.digest())
    second = asked(reader, world.graph)
    assert second.pk != first.pk
    # It is packed as things are when its turn comes, and found by that.
    Build.objects.filter(target="gfx942").update(code_digest=factories.digest())
    tasks.prepare()
    assert reader.get(address(world.graph)).status_code == 200


def test_anybody_reads_what_is_there_and_asking_needs_an_account(
    client: Client, world: World, quickly_written: None, settings: Any
) -> None:
    settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if "LoginMiddleware" not in name]
    page = client.get(address(world.graph), follow=True).content.decode()
    assert "Packing requires an account" in page
    answer = client.post(f"/graphs/{world.graph.pk}/pack")
    assert answer.headers["Location"].startswith("/login/?next=/graphs/")
    assert not Packing.objects.exists()
    packing.request_packing(bundles.graph_bundle(world.graph), User.objects.create_user("p"))
    tasks.prepare()
    assert client.get(address(world.graph)).status_code == 200
    assert client.get(f"/packings/{Packing.objects.get().pk}").status_code == 200


def test_who_asked_may_cancel_and_the_worker_stops(
    reader: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = asked(reader, world.graph)
    other = Client()
    other.force_login(User.objects.create_user("other"))
    assert other.post(f"/packings/{row.pk}/cancel").status_code == 403
    monkeypatch.setattr(work, "_MAX_INTERVAL_S", 0.02)
    stopped = threading.Event()

    def cancel() -> int:
        try:
            return reader.post(f"/packings/{row.pk}/cancel").status_code
        finally:
            connection.close()

    def endless(_: BundleRequest, out: IO[bytes], progress: Progress) -> None:
        progress(3, 7)
        while Packing.objects.get().packed != 3:
            pass
        assert 'value="3"' in reader.get(row.get_absolute_url()).content.decode()
        try:
            # From another thread, as a web process would: this one is interrupted at once.
            with ThreadPoolExecutor(1) as web:
                assert web.submit(cancel).result() == 302
            while True:
                out.write(b"x")
                out.seek(0)
        finally:
            stopped.set()

    monkeypatch.setattr(bundles, "write", endless)
    tasks.prepare()
    assert stopped.is_set()
    row.refresh_from_db()
    assert (row.state, row.file) == (State.CANCELLED, None)
    assert not Artifact.objects.filter(path__endswith=".zip").exists()
    page = reader.get(row.get_absolute_url()).content.decode()
    assert "Request again" in page
    reader.post(f"/graphs/{world.graph.pk}/pack")
    row.refresh_from_db()
    assert (row.state, row.packed) == (State.QUEUED, 0)


def test_a_full_disk_puts_it_off_and_a_missing_file_ends_it(
    reader: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails_with(error: Exception) -> Callable[..., None]:
        def write(*_: Any) -> None:
            raise error

        return write

    row = asked(reader, world.graph)
    monkeypatch.setattr(bundles, "write", fails_with(OSError(errno.ENOSPC, "full")))
    tasks.prepare()
    row.refresh_from_db()
    assert row.state == State.QUEUED
    assert "the disk is full" in row.reason
    assert "tried again at" in reader.get(row.get_absolute_url()).content.decode()
    Packing.objects.update(again_at=None)
    monkeypatch.setattr(bundles, "write", fails_with(UserError("kernel.so is missing")))
    tasks.prepare()
    row.refresh_from_db()
    assert (row.state, row.reason) == (State.REJECTED, "kernel.so is missing")


def test_what_a_dead_worker_held_is_packed_by_another(
    reader: Client, world: World, quickly_written: None
) -> None:
    asked(reader, world.graph)
    held = work.claim_next(Packing.objects.all(), "gone:1")
    assert held is not None
    Packing.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert work.requeue_expired() >= 1
    tasks.prepare()
    assert Packing.objects.get().state == State.DONE


def test_a_waiting_one_is_announced(
    reader: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(reader, world.graph)
    told: list[object] = []
    monkeypatch.setattr(queued_work, "notify", lambda kind, *_, **__: told.append(kind))
    queued_work.notify_workers()
    assert queue.Kind.PREPARE in told


def test_a_person_has_a_few_packed_at_a_time(reader: Client, world: World) -> None:
    person = User.objects.get(username="reader")
    for _ in range(packing.MAX_OPEN):
        Build.objects.filter(target="gfx942").update(code_digest=factories.digest())
        packing.request_packing(bundles.graph_bundle(world.graph), person)
    Build.objects.filter(target="gfx942").update(code_digest=factories.digest())
    page = reader.post(f"/graphs/{world.graph.pk}/pack", follow=True).content.decode()
    assert f"you have {packing.MAX_OPEN} unfinished bundles" in page
    assert Packing.objects.count() == packing.MAX_OPEN


def test_it_is_kept_for_a_while_and_then_goes_with_its_file(
    reader: Client, world: World, quickly_written: None, settings: Any
) -> None:
    row = asked(reader, world.graph)
    tasks.prepare()
    row.refresh_from_db()
    assert row.file is not None
    place = Path(default_storage.path(row.file.path))
    Artifact.objects.filter(pk=row.file.pk).update(used_at=timezone.now() - timedelta(days=9))
    assert retention.sweep()["packed bundles"] == 0
    assert place.exists(), "it is needed"
    days = timedelta(days=settings.KEEP_BUNDLES_DAYS, hours=1)
    Packing.objects.update(finished_at=timezone.now() - days)
    assert retention.sweep(dry_run=True)["packed bundles"] == 1
    found = retention.sweep()
    assert (found["packed bundles"], Packing.objects.count()) == (1, 0)
    assert not place.exists()


def test_a_damaged_or_lost_file_is_never_handed_out(
    reader: Client, world: World, quickly_written: None
) -> None:
    for damage in (lambda file: file.write_bytes(b"x" * 64), lambda file: file.unlink()):
        reader.post(f"/graphs/{world.graph.pk}/pack")
        tasks.prepare()
        row = Packing.objects.get()
        assert row.file is not None
        place = Path(default_storage.path(row.file.path))
        assert reader.get(address(world.graph)).status_code == 200
        damage(place)
        if place.exists():
            os.utime(place, (1, 1))
        page = reader.get(address(world.graph), follow=True).content.decode()
        assert "its file is missing or damaged: request it again" in page
