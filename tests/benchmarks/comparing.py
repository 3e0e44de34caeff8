"""Two sides of thousands of series compared: how long it takes, and how often it is wrong.

    python -m tests.benchmarks.comparing [--series 3000] [--rounds 5]

Times are drawn (lognormal with heavy tails, noise of 1%), a tenth of the series became 5% slower.
A line for each number of samples: seconds, the share of slower series that was found, and how many
of those named are false. The last one is the same with another environment everywhere: every pair
then has a sentence that says what differs.

The goal that was set: 3,000 with 3,000 series in 1 s. Exits with 1 beyond it.
"""

from __future__ import annotations

import argparse
import platform
import statistics
from dataclasses import replace
from time import perf_counter

import numpy as np

from scheduler.track.compare import Comparison, compare
from scheduler.track.compared_series import MeasuredSeries, Status
from scheduler.track.sides import CodeObject, Compiler, Environment, Point
from tests.benchmarks.printing import say

GOAL_S = 1.0
SLOWER = 0.1  # of the series
EFFECT, NOISE = 1.05, 0.01


def side(
    series: int, samples: int, scale: float, rng: np.random.Generator, rig: str
) -> list[MeasuredSeries]:
    """All series once."""
    slower = np.arange(series) < SLOWER * series
    levels = np.exp(np.linspace(7, 14, series)) * np.where(slower, scale, 1.0)
    drawn = levels[:, None] * np.exp(NOISE * rng.standard_t(4, (series, samples)))
    where = Environment(driver=rig, runtime="CUDA 13.0", device="NVIDIA H200")
    point = Point(1.0, 1.0, 1.0, samples, compiler=Compiler("nvcc", "13.0"), environment=where)
    return [
        MeasuredSeries(
            str(n), f"group {n % 20}", row, replace(point, code=CodeObject(f"{scale} {n}"))
        )
        for n, row in enumerate(drawn)
    ]


def timed(
    series: int, samples: int, rounds: int, rigs: tuple[str, str]
) -> tuple[float, Comparison]:
    """The median of so many rounds."""
    seconds = []
    for number in range(rounds):
        rng = np.random.default_rng([samples, number])
        before = side(series, samples, 1.0, rng, rigs[0])
        after = side(series, samples, EFFECT, rng, rigs[1])
        start = perf_counter()
        found = compare(before, after)
        seconds.append(perf_counter() - start)
    return statistics.median(seconds), found


def main() -> int:
    """Print a line for each number of samples."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--series", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    say(f"{arguments.series:,} series on each side, {platform.machine()}")
    say(f"{'samples':>8} {'s':>7} {'found':>7} {'false':>6} {'same':>7} {'cannot be said':>15}")
    slowest = 0.0
    for samples in (5, 10, 20, 50):
        seconds, found = timed(arguments.series, samples, arguments.rounds, ("580.95", "580.95"))
        named = [
            int(row.series) for row in found.select(Status.SLOWER) + found.select(Status.FASTER)
        ]
        true = sum(number < SLOWER * arguments.series for number in named)
        say(
            f"{samples:>8} {seconds:>7.3f} {true / (SLOWER * arguments.series):>7.1%} "
            f"{len(named) - true:>6} {len(found.select(Status.SAME)):>7,} "
            f"{len(found.select(Status.UNKNOWN)):>15,}"
        )
        slowest = max(slowest, seconds)
    seconds, _ = timed(arguments.series, 20, arguments.rounds, ("580.95", "580.159"))
    say(f"all in another environment: {seconds:.3f} s")
    return int(max(slowest, seconds) > GOAL_S)


if __name__ == "__main__":
    raise SystemExit(main())
