"""How soon each strategy finds a fast configuration, on recorded spaces.

    python -m tests.benchmarks.search [--seeds 30] [--workers 2] [--kernel-tuner NAME …] [FILE …]

For each recorded space (by default the two in ``data``; any other in Kernel Tuner's cache format
can be named) and each strategy, over the seeds: the share of the best performance that was reached
after 1%, 2% and 5% of the space, the evaluations until 95% of the best (a run ends at a quarter of
the space and then counts as that), and the time of a proposal.

The goals that were set: the default (guided) reaches 95% of the best with at most half of the
evaluations of random search, and is at 1%, 2% and 5% at least as good as the best strategy of
Kernel Tuner.

Kernel Tuner is no dependency of this project. Where it is installed in the same environment
(``pip install kernel-tuner==1.5.0 scikit-learn``), its strategies are run in its simulation mode on
the same files; ``--kernel-tuner`` names some of them, ``--kernel-tuner none`` leaves it out.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import importlib.util
import io
import json
import os
import random
import tempfile
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from time import process_time

import numpy as np

from scheduler.tuning.space import Floats
from scheduler.tuning.strategies.registry import STRATEGIES
from tests.benchmarks.printing import say
from tests.support.replay import RecordedSpace, read, replay

DATA = Path(__file__).parent / "data"
SHARES = (0.01, 0.02, 0.05)
GOOD = 0.95
LONGEST = 0.25  # of the space
OURS = [name for name in STRATEGIES if name != "exhaustive"]  # the file's order says nothing
THEIRS = (
    "random_sample",
    "greedy_ils",
    "genetic_algorithm",
    "simulated_annealing",
    "dual_annealing",
    "pso",
    "firefly_algorithm",
    "diff_evo",
    "hybrid_vndx",
    "adaptive_tabu_greywolf",
    "bayes_opt",
)


@dataclass(frozen=True)
class Run:
    """One seed: the share of the best performance after each share of the space, evaluations until
    95% of it (None: not within the run), and milliseconds for a proposal."""

    reached: tuple[float, ...]
    needed: int | None
    proposal_ms: float


load = lru_cache(maxsize=2)(read)


def ours(path: Path, strategy: str, seed: int) -> Run:
    """A run of one of the project's strategies: at least 5% of the space, then until 95%."""
    recorded = load(path)
    size = len(recorded.space)
    chosen = STRATEGIES[strategy].make(recorded.space, np.random.default_rng(seed), None)
    start = process_time()
    history = replay(recorded, chosen, int(size * SHARES[-1]), lambda _: False)
    proposal_ms = 1e3 * (process_time() - start) / len(history)
    good = recorded.best / GOOD
    while not any(time <= good for time in history.times) and len(history) < size * LONGEST:
        index = chosen.propose(history)
        assert index is not None
        history.add(index, float(recorded.times[index]))
    return run_of(np.array(history.times), recorded, proposal_ms)


def run_of(times: Floats, recorded: RecordedSpace, proposal_ms: float) -> Run:
    """What the times in the order of trying say."""
    size = len(recorded.space)
    curve = recorded.best / np.minimum.accumulate(np.nan_to_num(times, nan=np.inf))
    reached = tuple(float(curve[min(len(curve), int(size * share)) - 1]) for share in SHARES)
    good = np.flatnonzero(curve >= GOOD)
    return Run(reached, int(good[0]) + 1 if good.size else None, proposal_ms)


def theirs(path: Path, strategy: str, seed: int) -> Run:
    """A run of Kernel Tuner's, in its simulation mode, with 5% of the space as its budget."""
    import kernel_tuner

    recorded = load(path)
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        data = json.load(file)
    names, legal = data["tune_params_keys"], set(data["cache"])

    def is_legal(values: dict[str, object]) -> bool:
        return ",".join(str(values[name]) for name in names) in legal

    random.seed(seed)
    np.random.seed(seed)
    budget = int(len(recorded.space) * SHARES[-1])
    start = process_time()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        cache = Path(folder) / "cache.json"
        cache.write_text(json.dumps(data))
        warnings.simplefilter("ignore")
        results, _ = kernel_tuner.tune_kernel(
            data["kernel_name"],
            f"__global__ void {data['kernel_name']}(){{}}",
            tuple(data["problem_size"]),
            [],
            data["tune_params"],
            restrictions=is_legal,
            simulation_mode=True,
            cache=str(cache),
            strategy=strategy,
            strategy_options={"max_fevals": budget},
            lang="CUDA",
            verbose=False,
        )
    times = [r["time"] if isinstance(r["time"], int | float) else np.nan for r in results]
    spent_ms = 1e3 * (process_time() - start) / max(1, len(times))
    return run_of(np.array(times[:budget], dtype=float), recorded, spent_ms)


def report(recorded: RecordedSpace, rows: dict[str, list[Run]]) -> None:
    """A line a strategy."""
    size = len(recorded.space)
    say(f"\n{recorded.name}: {size} configurations, {len(next(iter(rows.values())))} seeds")
    say("strategy\tat 1%\tat 2%\tat 5%\tto 95%: mean\tmedian\treached\tms a proposal")
    for name, runs in rows.items():
        reached = [f"{np.mean([run.reached[i] for run in runs]):.3f}" for i in range(len(SHARES))]
        most = int(size * (LONGEST if name in OURS else SHARES[-1]))
        needed = [most if run.needed is None else run.needed for run in runs]
        found = sum(run.needed is not None for run in runs) / len(runs)
        spent = np.mean([run.proposal_ms for run in runs])
        figures = (f"{np.mean(needed):.0f}", f"{np.median(needed):.0f}", f"{found:.0%}")
        say("\t".join((name, *reached, *figures, f"{spent:.1f}")))
    print_summary(rows)


def print_summary(rows: dict[str, list[Run]]) -> None:
    """Whether the goals hold."""

    def at(name: str, share: int) -> float:
        return float(np.mean([run.reached[share] for run in rows[name]]))

    others = [name for name in rows if name not in OURS]
    for share, text in enumerate(f"{share:.0%}" for share in SHARES):
        if others:
            best = max(others, key=lambda name: at(name, share))
            holds = "yes" if at("guided", share) >= at(best, share) else "NO"
            say(f"at {text} as good as Kernel Tuner's best ({best}): {holds}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run everything and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, help="recorded spaces")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--kernel-tuner", nargs="*", default=list(THEIRS), metavar="NAME")
    options = parser.parse_args(arguments)
    wanted = [] if options.kernel_tuner == ["none"] else options.kernel_tuner
    if wanted and importlib.util.find_spec("kernel_tuner") is None:
        say("kernel_tuner is not installed here: its strategies are left out")
        wanted = []
    with ProcessPoolExecutor(options.workers) as pool:
        for path in options.files or sorted(DATA.glob("*.cache.json.gz")):
            seeds = range(options.seeds)
            rows = {name: list(pool.map(partial(ours, path, name), seeds)) for name in OURS}
            for name in wanted:
                rows[name] = list(pool.map(partial(theirs, path, name), seeds))
            report(read(path), rows)


if __name__ == "__main__":
    main()
