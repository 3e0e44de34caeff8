"""Which kernel serves: a better one beyond the noise, and the past is kept."""

from __future__ import annotations

import pytest

from codegen_app.models import BenchmarkResult, Environment, GeneratedKernel, Problem, Selection
from codegen_app.services import selections
from tests.app import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def problem() -> Problem:
    return factories.task().problem


@pytest.fixture
def environment() -> Environment:
    return Environment.objects.create(
        digest=factories.digest(),
        device="rocm:0",
        device_name="MI300X",
        target="gfx942",
        compiler="rocm 7",
        compute_units=304,
        memory_bytes=1,
        emulated=False,
    )


def result(
    problem: Problem,
    environment: Environment,
    low: float,
    high: float,
    kernel: GeneratedKernel | None = None,
    bindings: dict[str, int] | None = None,
) -> BenchmarkResult:
    build = factories.build(kernel=kernel) if kernel else factories.build()
    return BenchmarkResult.objects.create(
        kernel=build.kernel,
        build=build,
        problem=problem,
        environment=environment,
        bindings=bindings or {},
        samples_ns=[low, high],
        batch=1,
        median_ns=(low + high) / 2,
        low_ns=low,
        high_ns=high,
        check_max_error=0.0,
        check_bound=1.0,
        check_ratio=0.0,
        emulated=False,
    )


def serving() -> Selection:
    return Selection.objects.get(until__isnull=True)


def test_a_gain_within_the_noise_changes_nothing(
    problem: Problem, environment: Environment
) -> None:
    first = result(problem, environment, 90, 110)
    selections.offer(first, "run 1")
    selections.offer(result(problem, environment, 80, 95), "run 2")
    assert serving().result == first
    assert Selection.objects.count() == 1


def test_a_gain_beyond_the_noise_replaces_and_keeps_the_past(
    problem: Problem, environment: Environment
) -> None:
    first = result(problem, environment, 90, 110)
    better = result(problem, environment, 70, 89)
    selections.offer(first, "run 1")
    selections.offer(better, "run 2")
    assert serving().result == better
    past = Selection.objects.get(until__isnull=False)
    assert past.result == first
    assert past.until == serving().since


def test_times_at_other_sizes_are_not_compared(problem: Problem, environment: Environment) -> None:
    selections.offer(result(problem, environment, 10, 11, bindings={"s0": 16}), "run 1")
    larger = result(problem, environment, 900, 910, bindings={"s0": 1024})
    selections.offer(larger, "run 2")
    assert serving().result == larger


def test_the_same_kernel_again_keeps_its_date(problem: Problem, environment: Environment) -> None:
    first = result(problem, environment, 90, 110)
    selections.offer(first, "run 1")
    selections.offer(result(problem, environment, 50, 60, kernel=first.kernel), "run 2")
    assert serving().result == first
