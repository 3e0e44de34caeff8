"""Builds: asked for once, done by the real compiler, and lost with the compiler's own words."""

from __future__ import annotations

import pytest

from codegen_app.models import Build, GeneratedKernel, State
from codegen_app.services import artifacts, builds, work
from scheduler.build.flags import parse_flags
from scheduler.outcome import UserError
from tests.app import factories

pytestmark = pytest.mark.django_db

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
    lost = Build.objects.get(pk=asked.pk)
    candidate.refresh_from_db()
    for row in (lost, candidate):
        assert (row.state, row.stage) == (State.REJECTED, "compile")
        assert row.reason.startswith("line 2: ")
        assert "no_such_name" in row.reason
    assert {one["line"] for one in lost.diagnostics} == {2}
    assert "no_such_name" in lost.log


def test_a_build_for_another_compiler_is_not_passed_off_as_this_ones() -> None:
    one = factories.build(target="gfx942", toolchain_version="clang 1.0")
    builds.run_build(claimed(one))
    lost = Build.objects.get(pk=one.pk)
    assert lost.state == State.REJECTED
    assert "clang 1.0" in lost.reason
