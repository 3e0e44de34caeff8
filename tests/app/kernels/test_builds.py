"""Builds: asked for once, done by the real compiler, and failed with the compiler's own words."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from django.utils import timezone

from codegen_app.kernels.models import Build, GeneratedKernel
from codegen_app.kernels.services import builds, remote_builds
from codegen_app.platform import artifacts
from codegen_app.tuning.services import ledger
from codegen_app.workers import compilers, work
from codegen_app.workers.models import State, Worker
from scheduler.build.cuda.toolchains import NAME
from scheduler.build.flags import parse_flags
from scheduler.build.model import Build as Built
from scheduler.errors import Rejected, UserError
from tests.app import factories

# Heartbeats come over a connection of their own and must see the rows.
pytestmark = pytest.mark.django_db(transaction=True)

SOURCE = """#include <hip/hip_runtime.h>
__global__ void twice(float* x) { x[threadIdx.x] *= 2.0f; }
extern "C" __attribute__((visibility("default"))) int NAME(float* x) {
  hipLaunchKernelGGL(twice, dim3(1), dim3(64), 0, nullptr, x);
  return 0;
}
"""


def kernel(source: str = SOURCE) -> GeneratedKernel:
    made = factories.kernel()
    made.source = source.replace("NAME", made.name)
    made.save()
    return made


def claimed(asked: Build) -> Build:
    row = work.claim_next(Build.objects.filter(pk=asked.pk), "w")
    assert row is not None
    return row


def test_asking_twice_is_one_build_per_target_and_flags() -> None:
    one = kernel()
    flags = parse_flags("-O1")
    asked = {builds.request_builds([one], target)[one.pk].pk for target in ("gfx942", "gfx1100")}
    asked |= {builds.request_builds([one], target)[one.pk].pk for target in ("gfx942", "gfx1100")}
    other = builds.request_build(one, "gfx942", flags, None)
    assert len(asked) == 2
    assert other.pk not in asked
    assert other.flags == ["-O1"]
    assert Build.objects.count() == 3


def test_an_unknown_target_is_named() -> None:
    with pytest.raises(UserError, match="gfx9000"):
        builds.request_builds([kernel()], "gfx9000")


def test_a_build_has_its_files_and_figures() -> None:
    one = kernel()
    asked = builds.request_builds([one], "gfx942")[one.pk]
    builds.run_build(claimed(asked))
    done = Build.objects.get(pk=asked.pk)
    assert (done.state, done.reason) == (State.DONE, "")
    assert done.listing is not None
    assert done.code_object is not None
    assert "twice" in artifacts.read(done.listing).decode()
    assert artifacts.read(done.code_object).startswith(b"\x7fELF")
    (figures,) = done.resources.values()
    assert figures["wavefront"] == 64
    assert figures["vgpr"] > 0
    assert done.duration_s is not None


def test_a_compile_error_names_the_line_and_takes_its_candidates_along() -> None:
    broken = kernel(SOURCE.replace("*= 2.0f", "*= no_such_name"))
    asked = builds.request_builds([broken], "gfx942")[broken.pk]
    candidate = factories.candidate(factories.task(), build=asked)
    builds.run_build(claimed(asked))
    failed = Build.objects.get(pk=asked.pk)
    candidate.refresh_from_db()
    for row in (failed, candidate):
        assert (row.state, row.stage) == (State.REJECTED, "compile")
        assert row.reason.startswith("line 2: ")
        assert "no_such_name" in row.reason
    assert {one["line"] for one in failed.diagnostics} == {2}
    assert "no_such_name" in failed.log


def test_a_build_queued_before_the_compiler_changed_is_asked_for_again() -> None:
    """It is not passed off as the old compiler's, and whoever waits for it gets the new one."""
    old = factories.build(kernel=kernel(), target="gfx942", toolchain_version="clang 1.0")
    candidate = factories.candidate(factories.task(), build=old)
    assert not builds.local_builds().exists()
    assert builds.replace_orphaned() == 1
    old.refresh_from_db()
    candidate.refresh_from_db()
    new = candidate.build
    assert old.state == State.CANCELLED
    assert new.toolchain_version in old.reason
    assert (new.kernel, new.target, new.flags) == (old.kernel, old.target, old.flags)
    assert list(builds.local_builds()) == [new]
    assert builds.replace_orphaned() == 0


def test_a_build_is_left_to_the_worker_that_has_its_compiler() -> None:
    waiting = factories.build(toolchain="rocm", toolchain_version="7")
    worker = Worker.objects.create(
        name="other",
        host="other",
        pid=1,
        toolchains=[{"name": "rocm", "version": "7", "digest": waiting.toolchain_digest}],
        started_at=timezone.now(),
        seen_at=timezone.now(),
    )
    assert builds.replace_orphaned() == 0
    worker.stopped_at = timezone.now()
    worker.save()
    assert builds.replace_orphaned() == 1


def test_builds_that_only_a_cancelled_run_wants_are_dropped_and_come_back() -> None:
    candidate, other = factories.candidate(factories.task()), factories.candidate(factories.task())
    shared = factories.candidate(candidate.task, build=other.build)
    ledger.cancel(candidate.task.run, None)
    states = dict(Build.objects.values_list("pk", "state"))
    assert states == {candidate.build_id: State.CANCELLED, shared.build_id: State.QUEUED}

    one = kernel()
    asked = builds.request_builds([one], "gfx942")[one.pk]
    Build.objects.update(state=State.CANCELLED, reason="nothing waits for it any more")
    again = builds.request_builds([one], "gfx942")[one.pk]
    assert (again.pk, again.state, again.reason) == (asked.pk, State.QUEUED, "")


def test_files_need_no_folder_where_the_storage_is_none(
    settings: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """As S3: what the storage holds lies in no folder of this host."""
    storage = {"BACKEND": "django.core.files.storage.InMemoryStorage"}
    settings.STORAGES = {**settings.STORAGES, "default": storage}
    one = kernel()
    builds.run_build(claimed(builds.request_builds([one], "cpu")[one.pk]))
    done = Build.objects.select_related("library", "kernel").get(kernel=one)
    assert done.library is not None
    assert not Path(default_storage.path(done.library.path)).exists()
    content = artifacts.read(done.library)
    assert artifacts.local_file(done.library, ".so").read_bytes() == content
    made = remote_builds.build_result(done, cached=True)
    assert not isinstance(made, Rejected)
    assert (made.directory / "kernel.so").read_bytes() == content
    assert made.directory.is_relative_to(tmp_path)


def test_a_build_without_an_assembler_has_no_code_object(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver assembles it then: what a compiler does not make is not missed."""
    without = [one for one in compilers.available_toolchains() if one.name != NAME]
    monkeypatch.setattr(compilers, "toolchains", lambda: tuple(without))
    one = kernel()
    asked = builds.request_builds([one], "sm_90")[one.pk]
    builds.run_build(claimed(asked))
    done = Build.objects.get(pk=asked.pk)
    assert (done.state, done.reason) == (State.DONE, "")
    assert done.code_object is None
    assert done.intermediate is not None
    assert b".version" in artifacts.read(done.intermediate)
    assert builds.has_files(done)
    assert isinstance(remote_builds.build_result(done, cached=False), Built)
