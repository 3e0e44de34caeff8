"""How often noise is taken for a difference, and how soon a step is found, where single values are
compared with a history.

    python -m tests.benchmarks.prediction [--runs 40000] [--seed 1]

For each kind of noise (2%) and length of the history: the rate at which a new value lies outside
its interval, as a multiple of the stated rate; how often a comparison of 20 and of 200 series
reports a difference (stated: 1%); how often a step is found among 200 series; and the suspicions of
a step per 1,000 values without one. Exits with 1 if a stated rate is exceeded by half for the kinds
that it is stated for.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping

import numpy as np

from scheduler.stats.prediction import MAX_HISTORY, Floats, History, predict
from scheduler.stats.suspicion import MAX_SUSPECTED, suspected_steps
from scheduler.track.ratios import adjust_p_values
from tests.benchmarks.printing import say

Draw = Callable[[np.random.Generator, tuple[int, int]], Floats]

HISTORIES = (8, 12, 20, 30)
FAMILIES = (20, 200)
STEPS = (1.1, 1.2, 1.5)
TOLERANCE = 1.5


def autocorrelated(rng: np.random.Generator, shape: tuple[int, int], rho: float) -> Floats:
    """Return values whose neighbours correlate by ``rho``."""
    draws = rng.normal(size=shape)
    for place in range(1, shape[1]):
        draws[:, place] = rho * draws[:, place - 1] + (1 - rho**2) ** 0.5 * draws[:, place]
    values: Floats = np.exp(0.02 * draws)
    return values


STATED: Mapping[str, Draw] = {
    "normal": lambda rng, shape: np.exp(0.02 * rng.normal(size=shape)),
    "log-normal": lambda rng, shape: 1 + 0.02 * np.exp(0.5 * rng.normal(size=shape)),
    "gamma": lambda rng, shape: 1 + 0.02 * rng.gamma(3, size=shape),
    "exponential": lambda rng, shape: 1 + 0.02 * rng.exponential(size=shape),
    "uniform": lambda rng, shape: 1 + 0.02 * rng.uniform(size=shape),
    "correlated .5": lambda rng, shape: autocorrelated(rng, shape, 0.5),
    "correlated .8": lambda rng, shape: autocorrelated(rng, shape, 0.8),
    "ticks": lambda rng, shape: np.round(100 * np.exp(0.01 * rng.normal(size=shape))),
}
HEAVY_TAILS: Mapping[str, Draw] = {
    "Laplace": lambda rng, shape: np.exp(0.015 * rng.laplace(size=shape)),
    "Student, 4": lambda rng, shape: np.exp(0.015 * rng.standard_t(4, size=shape)),
    "log-normal, 1": lambda rng, shape: 1 + 0.02 * np.exp(rng.normal(size=shape)),
}


def chances(values: Floats, step: float = 1.0, least: float = 0.0) -> Floats:
    """Return the probability of the last value of each row, by those before it."""
    prediction = predict([History(row) for row in values[:, :-1]], 0.002)
    logs, counts = np.log(step * values[:, -1]), np.ones(len(values), np.int64)
    by_noise = prediction.p_values(logs, counts, least)
    result: Floats = np.maximum(
        by_noise, prediction.repeat_chances(logs - prediction.levels, counts)
    )
    return result


def suspicions(draw: Draw, rng: np.random.Generator, runs: int) -> float:
    """Return how many of 1,000 values without a step are suspected."""
    values = draw(rng, (runs, MAX_HISTORY + MAX_SUSPECTED))
    steps = suspected_steps(list(map(History, values)), np.full(runs, 0.005), 0.001)
    return 1000 * sum(step is not None for step in steps) / runs


def main() -> int:
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    runs = options.runs // max(FAMILIES) * max(FAMILIES)
    missed = []
    heading = " ".join(f"{f'+{step - 1:.0%}':>6}" for step in STEPS)
    say(f"{'noise':>14} history   1%  .1%  of 20 of 200  found: {heading}  suspected in 1,000")
    for name, draw in (STATED | HEAVY_TAILS).items():
        for size in HISTORIES:
            values = draw(rng, (runs, size + 1))
            p = chances(values)
            rates = [float((p <= rate).mean()) / rate for rate in (0.01, 0.001)]
            families = [
                np.mean([adjust_p_values(part).min() <= 0.01 for part in p.reshape(-1, n)])
                for n in FAMILIES
            ]
            found = [(chances(values, step, 0.01) <= 0.01 / 200).mean() for step in STEPS]
            suspected = suspicions(draw, rng, runs) if size == max(HISTORIES) else None
            say(
                f"{name:>14} {size:7} {rates[0]:4.2f} {rates[1]:4.2f} {families[0]:6.1%}"
                f" {families[1]:6.1%}         {' '.join(f'{part:6.0%}' for part in found)}"
                + ("" if suspected is None else f"  {suspected:.2f}")
            )
            if name in STATED and (rates[0] > TOLERANCE or families[0] > TOLERANCE * 0.01):
                missed.append(f"{name}, {size} values")
    for line in missed:
        say(f"MISSED: {line}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
