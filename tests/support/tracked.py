"""Points of a series of which everything is known, to be changed one thing at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from scheduler.track.sides import (
    Alternative,
    CodeObject,
    Compiler,
    Environment,
    Point,
    Side,
)

AMD: Mapping[str, Any] = {
    "vgpr": 64,
    "agpr": 0,
    "sgpr": 40,
    "lds_bytes": 16384,
    "scratch_bytes": 0,
    "vgpr_spills": 0,
    "sgpr_spills": 0,
    "code_bytes": 2048,
    "wavefront": 64,
    "occupancy_waves_per_simd": 8,
    "limiter": "waves",
}
NVIDIA: Mapping[str, Any] = {
    "registers": 64,
    "shared_bytes": 1024,
    "stack_bytes": 0,
    "spill_store_bytes": 0,
    "spill_load_bytes": 0,
    "barriers": 1,
    "threads": 256,
    "occupancy_blocks_per_sm": 4,
    "occupancy_warps_per_sm": 32,
    "limiter": "registers",
    "code_bytes": 4096,
}


def point(value: float = 100.0, target: str = "gfx942", **changes: Any) -> Point:
    """On an MI300X or an H200; ``changes`` are of ``Point``'s own fields."""
    nvidia = target.startswith("sm_")
    base = Point(
        value=value,
        low=value * 0.998,
        high=value * 1.002,
        n=20,
        revision="r1",
        source_digest="source 1",
        configuration="BLOCK_M=64",
        target=target,
        compiler=Compiler("rocm", "7.1.0", ("-O3",), "headers 1"),
        code=CodeObject("code 1", "", {"kernel": NVIDIA if nvidia else AMD}, {"vector": 20}),
        environment=Environment(
            driver="580.95",
            runtime="CUDA 13.0" if nvidia else "ROCm 7.1",
            device="NVIDIA H200" if nvidia else "AMD Instinct MI300X",
            unit="unit 1",
            host="host 1",
            settings={"power limit": "700 W"},
        ),
        readings={"sm_clock_mhz": 1980.0, "throttled_power": 0.0},
    )
    return replace(base, **changes)


def edited(one: Point, value: float, number: int = 2, **resources: Any) -> Point:
    """The same after a commit that changes the source, and with it the code."""
    of = {name: {**figures, **resources} for name, figures in one.code.resources.items()}
    return replace(
        at(one, value),
        revision=f"r{number}",
        source_digest=f"source {number}",
        code=replace(one.code, digest=f"code {number}", instructions_digest="", resources=of),
    )


def chosen_anew(one: Point, value: float, **changes: Any) -> Point:
    """The same after another configuration was chosen at another revision."""
    later = edited(one, value)
    earlier = {one.configuration: Alternative(one.source_digest, one.code.digest)}
    return replace(later, **{"configuration": "BLOCK_M=128", "others": earlier, **changes})


def recompiled(one: Point, value: float, version: str = "7.2.0") -> Point:
    """The same by another version of the compiler."""
    compiler = replace(one.compiler, version=version)
    code = replace(one.code, digest=f"{one.code.digest} by {version}")
    return replace(at(one, value), revision="r2", compiler=compiler, code=code)


def elsewhere(one: Point, **changes: Any) -> Point:
    """The same in an environment that differs by ``changes``."""
    return replace(one, environment=replace(one.environment, **changes))


def at(one: Point, value: float) -> Point:
    """The same with another time."""
    return replace(one, value=value, low=value * 0.998, high=value * 1.002)


def side(*points: Point) -> Side:
    """The nearest to the change first."""
    return Side(points)


def repeated(one: Point, count: int, noise: float = 0.005, seed: int = 0) -> Side:
    """So many measurements of the same."""
    draws = np.random.default_rng(seed).normal(0, noise, count)
    return Side(tuple(at(one, one.value * float(np.exp(draw))) for draw in draws))
