"""What was stored is there whole, or is mended; what is not whole is never handed out."""

from __future__ import annotations

import errno
from pathlib import Path
from uuid import uuid4

import pytest
from django.core.files.storage import default_storage
from django.test import Client

from codegen_app.graphs.models import Graph
from codegen_app.graphs.services import imports as graphs
from codegen_app.kernels.models import Build, KernelUse
from codegen_app.kernels.services import builds, preparation, remote_builds
from codegen_app.platform import artifacts, files
from codegen_app.platform.models import Artifact
from codegen_app.tuning.models import Candidate
from codegen_app.tuning.services import ledger
from codegen_app.workers import work
from codegen_app.workers.models import State
from scheduler import files as engine_files
from scheduler import samples
from scheduler.build import compile as compiling
from scheduler.build.flags import DEFAULT_FLAGS
from scheduler.errors import MachineError
from scheduler.sandbox.process import CompletedProcess
from tests.app.kernels.test_builds import SOURCE, claimed, kernel
from tests.support.pages_world import World

# Heartbeats come over a connection of their own and must see the rows.
pytestmark = pytest.mark.django_db(transaction=True)


def place(artifact: Artifact) -> Path:
    return Path(default_storage.path(artifact.path))


@pytest.mark.parametrize("suffix", [".so", ".s"])
@pytest.mark.parametrize("left", [0, 10])
def test_a_file_that_was_cut_off_counts_as_missing_until_it_is_stored_again(
    suffix: str, left: int
) -> None:
    data = bytes(range(256)) * 20
    kept = artifacts.store(data, suffix)
    whole = place(kept).read_bytes()
    place(kept).write_bytes(whole[:left])
    with pytest.raises(files.DamagedFileError):
        artifacts.read(kept)
    with pytest.raises(files.DamagedFileError):
        artifacts.local_file(kept)
    assert artifacts.store(data, suffix) == kept
    assert artifacts.read(kept) == data
    assert artifacts.local_file(kept, suffix).read_bytes() == data


def test_listings_are_kept_compressed() -> None:
    listing = b"\tv_add_f32 v0, v1, v2\n" * 5000
    kept = artifacts.store(listing, ".s")
    assert kept.size_bytes == len(listing)
    assert place(kept).stat().st_size < len(listing) / 50


def test_a_full_disk_leaves_nothing_half_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(engine_files.os, "fsync", full)
        with pytest.raises(MachineError, match="no space left for artifacts in"):
            artifacts.store(b"some bytes", ".so")
    folder = Path(default_storage.path(""))
    assert not [path for path in folder.rglob("*") if path.is_file()]
    kept = artifacts.store(b"some bytes", ".so")
    assert artifacts.read(kept) == b"some bytes"


def test_a_fetched_copy_is_checked_too() -> None:
    kept = artifacts.store(b"library", ".so")
    copy = artifacts.local_folder(kept, "kernel.so") / "kernel.so"
    copy.write_bytes(b"")
    assert (artifacts.local_folder(kept, "kernel.so") / "kernel.so").read_bytes() == b"library"


def test_a_damaged_download_says_so_and_the_build_can_be_done_again(
    reader: Client, world: World
) -> None:
    one = world.kernels[0]
    build = one.builds.get(target="gfx942")
    address = f"/kernels/{one.name}/{build.pk}/kernel.so"
    whole = b"".join(reader.get(address).streaming_content)
    assert build.library is not None
    for content, word in ((whole[:-1], "damaged in"), (None, "missing from")):
        if content is None:
            place(build.library).unlink()
        else:
            place(build.library).write_bytes(content)
        answer = reader.get(address)
        assert answer.status_code == 404
        assert f"is {word} the storage: build" in answer.content.decode()


def test_building_again_does_it_again_where_it_failed_or_a_file_is_gone() -> None:
    one = kernel()
    asked = builds.request_build(one, "cpu", DEFAULT_FLAGS, None)
    builds.run_build(claimed(asked))
    assert builds.request_build(one, "cpu", DEFAULT_FLAGS, None).state == State.DONE
    done = Build.objects.select_related("library").get(pk=asked.pk)
    assert done.library is not None
    place(done.library).write_bytes(b"")
    again = builds.request_build(one, "cpu", DEFAULT_FLAGS, None)
    assert (again.pk, again.state) == (asked.pk, State.QUEUED)
    builds.run_build(claimed(again))
    done.refresh_from_db()
    assert done.state == State.DONE
    assert artifacts.is_whole(done.library)

    for state in (State.REJECTED, State.QUARANTINED, State.CANCELLED):
        Build.objects.update(state=state, reason="the compiler was killed by SIGKILL", deaths=3)
        again = builds.request_build(one, "cpu", DEFAULT_FLAGS, None)
        assert (again.state, again.reason, again.deaths) == (State.QUEUED, "", 0)


def test_what_a_person_asked_for_is_built_though_no_run_waits_for_it_any_more(
    world: World,
) -> None:
    """A run that wanted the same build took it along when its budget was spent."""
    one, other = (
        Build.objects.create(
            kernel=each,
            target="gfx90a",
            toolchain="bundled",
            toolchain_version="1",
            toolchain_digest="0",
        )
        for each in world.kernels[:2]
    )
    Build.objects.filter(pk=one.pk).update(requested=True)
    task = world.run.tasks.first()
    for position, build in enumerate((one, other), start=1000):
        Candidate.objects.filter(task=task, kernel=build.kernel).delete()
        Candidate.objects.create(task=task, position=position, kernel=build.kernel, build=build)
    KernelUse.objects.filter(kernel__in=[one.kernel, other.kernel]).update(is_default=False)
    ledger.drop_builds(Candidate.objects.filter(task=task))
    one.refresh_from_db()
    other.refresh_from_db()
    assert (one.state, other.state) == (State.QUEUED, State.CANCELLED)


def test_a_library_that_the_storage_has_no_more_is_built_again_for_a_run() -> None:
    one = kernel()
    builds.run_build(claimed(builds.request_build(one, "cpu", DEFAULT_FLAGS, None)))
    done = Build.objects.get(kernel=one)
    assert done.library is not None
    place(done.library).unlink()
    assert remote_builds._result_or_request(done, cached=True) is None
    done.refresh_from_db()
    assert done.state == State.QUEUED
    builds.run_build(claimed(done))
    done.refresh_from_db()
    assert remote_builds._result_or_request(done, cached=True) is not None


@pytest.mark.parametrize(
    "ended",
    [
        CompletedProcess(-9, "", "killed by SIGKILL", interrupted=True),
        CompletedProcess(1, "clang: error: unable to execute command: Killed\n"),
        CompletedProcess(1, "error: unable to open output file 'a.o': 'No space left on device'\n"),
        CompletedProcess(1, "fatal error: error in backend: IO failure: No space left on device\n"),
    ],
)
def test_a_killed_compiler_is_no_rejection(
    ended: CompletedProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = kernel(f"{SOURCE}// {uuid4()}: in no cache\n")
    asked = builds.request_build(one, "cpu", DEFAULT_FLAGS, None)
    with monkeypatch.context() as patch:
        patch.setattr("scheduler.build.compile.run", lambda *_, **__: ended)
        work.attempt(claimed(asked), builds.run_build)
    asked.refresh_from_db()
    assert asked.state == State.QUEUED
    assert "the compiler" in asked.reason
    assert "; tried again at" in asked.reason
    Build.objects.update(again_at=None)
    work.attempt(claimed(asked), builds.run_build)
    asked.refresh_from_db()
    assert (asked.state, asked.reason) == (State.DONE, "")


def test_no_kernels_text_passes_for_a_failure_of_the_machine() -> None:
    one = kernel("#error fatal error: No space left on device\n")
    asked = builds.request_build(one, "cpu", DEFAULT_FLAGS, None)
    work.attempt(claimed(asked), builds.run_build)
    asked.refresh_from_db()
    assert asked.state == State.REJECTED


def test_a_full_disk_puts_builds_off(monkeypatch: pytest.MonkeyPatch) -> None:
    one = kernel(f"// {uuid4()}\n")
    asked = builds.request_build(one, "cpu", DEFAULT_FLAGS, None)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("scheduler.build.cache.tempfile.mkdtemp", full)
        work.attempt(claimed(asked), builds.run_build)
    asked.refresh_from_db()
    assert asked.state == State.QUEUED
    assert asked.reason.startswith("no space left for the code cache in")


@pytest.mark.full
def test_importing_an_equal_file_mends_what_the_storage_lost() -> None:
    file = samples.path("gpt2_2layer")
    graph, _ = graphs.import_graph(file, "gpt2", [], None)
    place(graph.file).write_bytes(b"")
    row = work.claim_next(Graph.objects.all(), "w")
    assert row is not None
    work.attempt(row, preparation.prepare)
    row.refresh_from_db()
    assert row.state == State.QUEUED
    assert "is damaged in the storage" in row.reason
    again, is_new = graphs.import_graph(file, "gpt2", [], None)
    assert (again.pk, is_new) == (graph.pk, False)
    row = work.claim_next(Graph.objects.all(), "w")
    assert row is not None
    work.attempt(row, preparation.prepare)
    row.refresh_from_db()
    assert row.state == State.DONE


def test_a_failure_that_names_no_line_of_the_source_is_looked_at_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = kernel(f"{SOURCE}// {uuid4()}: in no cache\n")
    asked = builds.request_build(one, "cpu", DEFAULT_FLAGS, None)
    real, calls = compiling.run, []

    def fail_once(*args: object, **kwargs: object) -> CompletedProcess:
        calls.append(args)
        if len(calls) == 1:
            return CompletedProcess(1, "error: some library of the compiler could not be made\n")
        return real(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(compiling, "run", fail_once)
        work.attempt(claimed(asked), builds.run_build)
    asked.refresh_from_db()
    assert (asked.state, asked.reason) == (State.DONE, "")


def test_no_build_begins_where_there_is_no_room_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    one = kernel(f"{SOURCE}// {uuid4()}: in no cache\n")
    asked = builds.request_build(one, "cpu", DEFAULT_FLAGS, None)
    with monkeypatch.context() as patch:
        patch.setattr(compiling, "_MIN_FREE_BYTES", 2**62)
        work.attempt(claimed(asked), builds.run_build)
    asked.refresh_from_db()
    assert asked.state == State.QUEUED
    assert asked.reason.startswith("no space left for the code cache in")
