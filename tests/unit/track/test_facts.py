"""What anybody sent with a point, as a point of a side: whole where it is right, never an error."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.results.points import model
from scheduler.track.causes import explain
from scheduler.track.differences import Aspect, environment_differences
from scheduler.track.facts import facts_of, point_of
from scheduler.track.generated import generate_history
from scheduler.track.sides import Point, Side
from tests.support.tracked import AMD, NVIDIA

FACTS = {
    "toolchain_version": "12.4",
    "flags": "-O3 -lineinfo",
    "driver": "550.1",
    "runtime": "CUDA 12.4",
    "host": "node-7",
    "source_digest": "s1",
    "code_digest": "c1",
    "config": {"BLOCK_N": 64, "BLOCK_M": 128},
    "resources": {"kernel": dict(NVIDIA)},
    "clocks": {"sm_clock": 1980, "throttled_power": 0.4},
    "attributes": {"uuid": "GPU-1", "power_limit_w": 700, "inner_loop": {"matrix": 8}},
}


def point(facts: dict[str, Any], target: str = "sm_90", value: float = 10.0) -> Point:
    return point_of(
        facts,
        value=value,
        low=None,
        high=None,
        n=3,
        revision="r",
        target=target,
        device="NVIDIA H200",
        toolchain="nvcc",
    )


def test_everything_that_was_recorded_is_there() -> None:
    found = point(FACTS)
    assert found.compiler.known
    assert found.compiler.flags == ("-O3", "-lineinfo")
    assert found.configuration == "BLOCK_M=128, BLOCK_N=64"
    assert (found.low, found.high) == (10.0, 10.0)
    assert found.code.resources["kernel"]["registers"] == 64
    assert found.code.inner_loop == {"matrix": 8}
    assert (found.environment.unit, found.environment.settings) == (
        "GPU-1",
        {"power_limit_w": "700"},
    )
    assert found.readings == {"sm_clock_mhz": 1980.0, "throttled_power": 0.4}


def kept(one: Point) -> Point:
    return point_of(
        facts_of(one),
        value=one.value,
        low=one.low,
        high=one.high,
        n=one.n,
        revision=one.revision,
        target=one.target,
        device=one.environment.device,
        toolchain=one.compiler.name,
    )


def test_a_point_is_the_same_after_it_was_recorded() -> None:
    for series in generate_history(6):
        for one in series.points[::30]:
            assert set(facts_of(one)) <= set(model.FACTS)
            assert kept(one) == one
    unknown = Point(value=2.0, low=2.0, high=2.0, n=1)
    assert facts_of(unknown) == {}
    assert kept(unknown) == unknown
    assert point(FACTS | {"attributes": {"others": {"a": None, "b": 1}}}).others == {}


def test_what_changed_between_two_points_is_found() -> None:
    other = point(FACTS | {"driver": "560.2", "clocks": {"sm_clock_mhz": 1500}})
    found = {one.aspect for one in environment_differences(point(FACTS), other)}
    assert found == {Aspect.DRIVER, Aspect.READINGS}


STRANGE = [None, 1, -1, "x", [], {}, {"k": 1}, {"k": None}, {"k": {"registers": -1}}, float("nan")]
STRANGE += [{"k": {**figures, name: 0}} for figures in (AMD, NVIDIA) for name in figures]
STRANGE += [{"k": {**figures, name: 2**31 - 1}} for figures in (AMD, NVIDIA) for name in figures]
STRANGE += [{"k": {**AMD, "vgpr": "64"}}, {"k": {**NVIDIA, "threads": True}}, {"sm_mhz": 1e400}]


@pytest.mark.full(but=["sm_90"])
@pytest.mark.parametrize("target", ["sm_90", "gfx942", "cpu", "", "none such"])
def test_whatever_is_sent_can_be_explained(target: str) -> None:
    for strange in STRANGE:
        for name in FACTS:
            one, other = point(FACTS, target), point(FACTS | {name: strange}, target, 20.0)
            environment_differences(one, other)
            for pair in ((one, other), (other, one), (other, other)):
                explain(*(Side((each,)) for each in pair))
