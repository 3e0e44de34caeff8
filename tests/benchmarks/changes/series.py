"""Series in which nothing changes: made noise of many kinds, and recorded measurements.

Each kind gives logarithms of values around 0; 1% of noise (``NOISE``) unless it says otherwise.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt

import scheduler.samples

Array = npt.NDArray[np.float64]
Generator = np.random.Generator
Kind = Callable[[Generator, int], Array]

NOISE = 0.01
RUNS_OF_A_REVISION = 3
SAMPLES_OF_A_RUN = 15


def normal(rng: Generator, n: int) -> Array:
    return rng.normal(0, NOISE, n)


def heavy_tails(rng: Generator, n: int) -> Array:
    return 0.6 * NOISE * rng.standard_t(3, n)


def spikes(rng: Generator, n: int) -> Array:
    """One value in 25 takes longer, by 15% on average."""
    return normal(rng, n) + (rng.random(n) < 0.04) * rng.exponential(0.15, n)


def bursts(rng: Generator, n: int) -> Array:
    """Spikes of two or three values, each of its own height."""
    values = normal(rng, n)
    for start in np.flatnonzero(rng.random(n) < 0.015):
        length = int(rng.integers(2, 4))
        values[start : start + length] += rng.exponential(0.15, values[start : start + length].size)
    return values


def two_modes(rng: Generator, n: int) -> Array:
    return rng.normal(0, 0.4 * NOISE, n) + (rng.random(n) < 0.25) * 4 * NOISE


def sticky_modes(rng: Generator, n: int) -> Array:
    """Two modes, 2.5% from each other, each kept for 7 values on average."""
    mode = np.cumsum(rng.random(n) < 0.15) % 2
    return rng.normal(0, 0.5 * NOISE, n) + mode * 2.5 * NOISE


def alike(rng: Generator, n: int) -> Array:
    """Neighbours are alike (autoregressive, 0.4)."""
    values = np.zeros(n)
    drawn = rng.normal(0, 0.9 * NOISE, n)
    for at in range(n):
        values[at] = drawn[at] + (0.4 * values[at - 1] if at else 0.0)
    return values


def drift(rng: Generator, n: int) -> Array:
    """2% in 100 values."""
    return normal(rng, n) + 0.02 * np.arange(n) / 100


def quantized(rng: Generator, n: int) -> Array:
    """Ticks of 2.5%."""
    return np.log(np.maximum(1, np.round(np.exp(normal(rng, n)) * 40)) / 40)


def changing_noise(rng: Generator, n: int) -> Array:
    return normal(rng, n) * np.repeat(rng.choice([0.5, 1.0, 2.0], n // 50 + 1), 50)[:n]


def sessions(rng: Generator, n: int) -> Array:
    """Runs of one revision, measured together, have half of their variance in common."""
    groups = -(-n // RUNS_OF_A_REVISION)
    common = np.repeat(rng.normal(0, NOISE, groups), RUNS_OF_A_REVISION)[:n]
    return (normal(rng, n) + common) / np.sqrt(2)


def recorded_samples(rng: Generator, n: int) -> Array:
    """Samples of a kernel timed on an H200, in blocks of five as they were taken."""
    samples = _recorded()[rng.integers(len(_recorded()))]
    starts = rng.integers(0, samples.size - 4, -(-n // 5))
    return np.concatenate([samples[start : start + 5] for start in starts])[:n]


def recorded_medians(rng: Generator, n: int) -> Array:
    """What a run would have said: medians of 15 such samples, in blocks of five."""
    samples = _recorded()[rng.integers(len(_recorded()))]
    starts = rng.integers(0, samples.size - 4, (n, SAMPLES_OF_A_RUN // 5))
    drawn = samples[starts[:, :, None] + np.arange(5)]
    return np.median(drawn.reshape(n, SAMPLES_OF_A_RUN), axis=1)


SYNTHETIC: dict[str, Kind] = {
    kind.__name__: kind
    for kind in (
        normal, heavy_tails, spikes, bursts, two_modes, sticky_modes, alike, drift, quantized,
        changing_noise, sessions,
    )
}  # fmt: skip
SAME_COMMIT: dict[str, Kind] = {
    kind.__name__: kind for kind in (recorded_samples, recorded_medians)
}
KINDS = SYNTHETIC | SAME_COMMIT


def revisions(kind: str, n: int) -> tuple[str, ...]:
    runs = RUNS_OF_A_REVISION if kind == "sessions" else 1
    return tuple(str(at // runs) for at in range(n))


@cache
def _recorded() -> tuple[Array, ...]:
    """Logarithms of each candidate's samples, around their median, without the first three: a
    kernel's first launches are warming up."""
    found = []
    for path in scheduler.samples.results():
        if path.name.startswith("history-"):
            continue
        content = json.loads(lzma.decompress(path.read_bytes()))
        for task in content["runs"][0]["tasks"]:
            for candidate in task["candidates"]:
                samples = (candidate["timed"] or {}).get("samples_ns", [])
                if len(samples) >= SAMPLES_OF_A_RUN:
                    logs = np.log(np.asarray(samples[3:], dtype=np.float64))
                    found.append(logs - np.median(logs))
    return tuple(found)
