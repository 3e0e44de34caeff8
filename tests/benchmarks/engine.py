"""How long a model takes from its file to kernels, stage by stage, cold and warm.

    python -m tests.benchmarks.engine [MODEL] [--target gfx942] [--target …] [--jobs N]

The goals that were set, for gpt2_124m on two cores: from the file to rendered sources at most 2 s;
compiled for one target at most 60 s cold and 2 s warm; at most 10% beyond the compiler's own
time; less than 1 GiB of memory. ``compile`` runs as the command that a person types; its time and
memory are those of its process and, for memory, of the largest compiler it started. The
compiler's own time is what its processes take when as many of them as there are jobs start one
after the other with nothing in between. Beside the whole command stands the build alone, without
Python's start, the imports and the stages before it.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from scheduler import pipeline, samples
from scheduler.targets import find
from tests.benchmarks.printing import say

Made = TypeVar("Made")
ROUNDS = 5


def main() -> None:
    """Print the tables."""
    options = _options()
    targets = options.target or ["gfx942"]
    machine = f"{os.cpu_count()} cores, load {os.getloadavg()[0]}"
    say(f"{options.model} for {' '.join(targets)}: {machine}")
    stages(options.model, targets)
    commands(options.model, targets, options.jobs)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", nargs="?", default="gpt2_124m")
    parser.add_argument("--target", action="append", help="gfx942 where none is given; repeat")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    return parser.parse_args()


def stages(model: str, targets: list[str]) -> None:
    """Seconds of each stage, first and best of some rounds in one process."""
    rounds = [_one_round(model, targets) for _ in range(ROUNDS)]
    say(f"\nfile to sources\tfirst s\tbest of {ROUNDS} s")
    for stage in rounds[0]:
        times = [one[stage] for one in rounds]
        say(f"{stage}\t{times[0]:.3f}\t{min(times):.3f}")
    totals = [sum(one.values()) for one in rounds]
    say(f"total\t{totals[0]:.3f}\t{min(totals):.3f}\t(goal 2)")


def _one_round(model: str, targets: list[str]) -> dict[str, float]:
    seconds: dict[str, float] = {}

    def timed(stage: str, work: Callable[[], Made]) -> Made:
        start = time.perf_counter()
        made = work()
        seconds[stage] = time.perf_counter() - start
        return made

    graph = timed("frontends", lambda: pipeline.load(samples.path(model)))
    lowered = timed("lowering", lambda: pipeline.lower(graph))
    plan = timed("fusion", lambda: pipeline.schedule(lowered))
    timed("codegen", lambda: pipeline.generate(plan, [find(name) for name in targets]))
    return seconds


@dataclass(frozen=True)
class Compiled:
    """One run of the command."""

    seconds: float
    mebibytes: float  # of the command's own process
    compiler_mebibytes: float
    compiler_seconds: float
    facts: dict[str, Any]


def commands(model: str, targets: list[str], jobs: int) -> None:
    """The compile command with an empty cache, twice more with what it left there."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        # The bundled compiler looks at its own files once on a machine: not this model's time.
        _compile("vit_2layer", targets, place, "warm-up", jobs)
        runs = {
            "cold": _compile(model, targets, place, "cold", jobs, fresh=True),
            "warm": _compile(model, targets, place, "warm", jobs, fresh=False),
            "warm again": _compile(model, targets, place, "again", jobs, fresh=False),
        }
    say(
        "\ncompile\tcommand s\tstart s\trender s\tbuild s\tcompiler s\tbuild beyond %"
        "\tcommand beyond %\tcompiled\tcached\tMiB\tcompiler MiB"
    )
    for name, run in runs.items():
        times, builds = run.facts["seconds"], run.facts["builds"]
        built = times["total"] - times["render"]
        alone = run.compiler_seconds if builds["compiled"] else 0.0
        beyond = [
            f"{100 * (ours / alone - 1):.0f}" if alone else "-" for ours in (built, run.seconds)
        ]
        figures = (run.seconds, run.seconds - times["total"], times["render"], built, alone)
        say(
            "\t".join((name, *(f"{one:.2f}" for one in figures), *beyond))
            + f"\t{builds['compiled']}\t{builds['cached']}\t{run.mebibytes:.0f}"
            f"\t{run.compiler_mebibytes:.0f}"
        )
    say("goals\t60 cold, 2 warm\t\t2\t\t\t10\t10\t\t\t1024")


def _compiler_seconds(bundle: Path, jobs: int) -> float:
    """From the first compiler's start to the last one's end, were there nothing else to do."""
    manifest = json.loads((bundle / "manifest.json").read_text())
    kernels = dict.fromkeys(call["kernel"] for call in manifest["calls"])
    ends = [0.0] * jobs
    for kernel in kernels:
        for target in manifest["targets"]:
            record = json.loads((bundle / "kernels" / kernel / target / "build.json").read_text())
            heapq.heapreplace(ends, ends[0] + record["duration_s"])
    return max(ends)


def _compile(
    model: str, targets: list[str], place: Path, name: str, jobs: int, *, fresh: bool = True
) -> Compiled:
    cache = place / "cache" if not fresh or name == "cold" else place / f"cache-{name}"
    report = place / f"{name}.usage"
    command = [
        *(sys.executable, "-c", _MEASURED, str(report)),
        *("compile", str(samples.path(model)), "--jobs", str(jobs)),
        *(part for target in targets for part in ("--target", target)),
        *("--cache", str(cache), "--out", str(place / name), "--json"),
    ]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - start
    own, children = (float(kib) / 1024 for kib in report.read_text().split())
    alone = _compiler_seconds(place / name, jobs)
    return Compiled(seconds, own, children, alone, json.loads(done.stdout))


# The command itself, with what its process and the largest of its children took, in KiB.
_MEASURED = """
import resource, sys
from pathlib import Path
from scheduler.commands.main import main
report = Path(sys.argv[1])
status = main(sys.argv[2:])
both = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
report.write_text(" ".join(str(resource.getrusage(who).ru_maxrss) for who in both))
sys.exit(status)
"""


if __name__ == "__main__":
    main()
