"""From a model's file to kernel sources, beside another revision of this repository.

    python -m tests.benchmarks.against REVISION [--rounds N]

Both are measured in turn, each round in processes of their own, so that what else the machine
does falls on both alike. The ratio of the medians says how this tree compares: 1.05 is 5% slower.
What is imported only when it is needed counts to the first sample.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "cpu")

# Runs in either tree: what it imports has the same names in both.
_MEASURE = """
import json, sys, time
sys.path.insert(0, ".")
start = time.perf_counter()
from scheduler import pipeline, samples, targets
wanted = [targets.find(name) for name in sys.argv[1:]]
seconds = {"imports": time.perf_counter() - start}
for name in samples.names():
    start = time.perf_counter()
    plan = pipeline.schedule(pipeline.lower(pipeline.load(samples.path(name))))
    pipeline.generate(plan, wanted).manifest()
    seconds[name] = time.perf_counter() - start
print(json.dumps(seconds))
"""


def main() -> None:
    """Print a line for the imports and for each sample, and one for all of it together."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("revision")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder, "other")
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", other, arguments.revision], check=True)
        try:
            theirs, ours = _rounds(other, arguments.rounds)
        finally:
            subprocess.run([*git, "remove", "--force", other], check=True)
    sys.stdout.write(f"{'sample':<20} {arguments.revision[:12]:>12} {'here':>8} {'ratio':>6}\n")
    for name in [*ours[0], "all"]:
        before, after = (
            statistics.median(_of(one, name) for one in runs) for runs in (theirs, ours)
        )
        sys.stdout.write(f"{name:<20} {before:11.3f}s {after:7.3f}s {after / before:6.2f}\n")


def _rounds(other: Path, rounds: int) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
    """Seconds by sample, a round each: of the other tree and of this one."""
    theirs, ours = [], []
    for number in range(rounds):
        order = [(other, theirs), (ROOT, ours)]
        for tree, into in order if number % 2 else reversed(order):
            into.append(_measured(tree))
    return theirs, ours


def _measured(tree: Path) -> dict[str, float]:
    command = [sys.executable, "-c", _MEASURE, *TARGETS]
    done = subprocess.run(command, cwd=tree, check=True, capture_output=True, text=True)
    seconds: dict[str, float] = json.loads(done.stdout)
    return seconds


def _of(seconds: dict[str, float], name: str) -> float:
    return sum(seconds.values()) if name == "all" else seconds[name]


if __name__ == "__main__":
    main()
