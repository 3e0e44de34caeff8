"""How the time of each stage grows with a model: seconds of the processor a thousand nodes.

    python -m tests.benchmarks.growth [chain|products|wide|shapes …] [--lengths 1000,4000,20000]
                                      [--candidates]

A model's time must grow as its nodes do: the last column is the time for each node of the longest
over that of the shortest, and exits with 1 where that is above 2. ``--candidates`` adds what
preparing a graph on the site renders beside the defaults (minutes).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from typing import TypeVar

from scheduler import pipeline
from scheduler.bundle.writer import wrapper_of
from scheduler.codegen.problem import problem_of
from scheduler.codegen.scheduling import targets_sharing_source
from scheduler.codegen.title import title
from scheduler.ir.graph import Graph
from scheduler.ir.serialize import graph_from_json, graph_to_json
from scheduler.targets import find, names
from tests.benchmarks.printing import say
from tests.support import long_models

MODELS = ("chain", "products", "wide", "shapes")
MOST = 2.0
Made = TypeVar("Made")


def main() -> int:
    """Print a table for each model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="*", choices=[*MODELS, []], metavar="MODEL")
    parser.add_argument("--lengths", default="1000,4000,20000")
    parser.add_argument("--candidates", action="store_true")
    options = parser.parse_args()
    lengths = [int(length) for length in options.lengths.split(",")]
    say(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; processor's seconds, 1000 nodes")
    linear = True
    _stages(long_models.chain(100), candidates=options.candidates)  # imports, templates
    for model in options.models or MODELS:
        make: Callable[[int], Graph] = getattr(long_models, model)
        rounds = [_stages(make(length), candidates=options.candidates) for length in lengths]
        say(f"\n{model}\t" + "\t".join(str(length) for length in lengths) + "\tratio")
        for stage in rounds[0]:
            each = [1000 * one[stage] / n for one, n in zip(rounds, lengths, strict=True)]
            ratio = each[-1] / max(each[0], 1e-3)
            linear &= stage != "total" or ratio <= MOST
            say(f"{stage}\t" + "\t".join(f"{one:.3f}" for one in each) + f"\t{ratio:.2f}")
    return 0 if linear else 1


def _stages(graph: Graph, *, candidates: bool) -> dict[str, float]:
    """Seconds of each stage."""
    seconds: dict[str, float] = {}

    def timed(stage: str, work: Callable[[], Made]) -> Made:
        start = time.process_time()
        made = work()
        seconds[stage] = time.process_time() - start
        return made

    text = timed("written", lambda: json.dumps(graph_to_json(graph)))
    read = timed("read", lambda: graph_from_json(json.loads(text)))
    lowered = timed("lowered", lambda: pipeline.lower(read))
    plan = timed("scheduled", lambda: pipeline.schedule(lowered))
    targets = targets_sharing_source(find(names()[0]))
    made = timed("rendered", lambda: pipeline.generate(plan, targets))
    timed("wrapper", lambda: wrapper_of(made.manifest()))
    nodes = plan.nodes
    timed("problems", lambda: [(problem_of(n, lowered), title(n, lowered)) for n in nodes])
    if candidates:
        backend = pipeline.scheduling(plan, targets)
        timed("candidates", lambda: [len(backend.candidates(n).callers) for n in nodes])
    seconds["total"] = sum(seconds.values())
    return seconds


if __name__ == "__main__":
    sys.exit(main())
