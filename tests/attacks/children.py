"""Damaged files, each taken in a child process, and what came of them.

An attack is a module with ``hostile_file(seed, index)``, the bytes of one file, and ``take(path)``,
which does all that is done with such a file and returns what it was refused for, "" where it was
accepted. Counted as wrong: anything raised that is no ``UserError``, or one of several lines; a
file that takes more than 10 s of the processor, or ends not at all; memory that one file takes, or
that stays after many. The command exits with 1 when there was any.
"""

from __future__ import annotations

import argparse
import importlib
import json
import resource
import selectors
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scheduler.errors import UserError
from tests.benchmarks.printing import say

SECONDS = 10.0  # of the processor: a file that takes longer hangs
WAITED = 120.0  # seconds by the clock, on a machine that has other things to do
MEMORY = 3 << 30  # address space of a child
GROWTH_KIB = 300 << 10  # resident memory that one file may take
STAYS_KIB = 200 << 10  # and that may stay of all files after the first ones
SETTLED = 1000  # files after which caches are full
REPORTED = 200  # faults that are printed

WRONG = ("traceback", "hang", "died", "growth")


# ---- the child


def short_line(error: UserError) -> str:
    """What a file was refused for. ``AssertionError`` where that is no short line."""
    line = str(error)
    if not line or len(line.splitlines()) > 1 or len(line) > 1000:
        raise AssertionError(f"no short line: {line[:2000]!r}") from error
    return line


def serve(attack: str) -> None:
    """Take the files that the lines of stdin name, ``seed index``, one answer a line."""
    module = importlib.import_module(attack)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        for line in sys.stdin:
            seed, index = map(int, line.split())
            path.write_bytes(module.hostile_file(seed, index))
            Path("/proc/self/clear_refs").write_text("5")  # the peak from here on
            before, start = _memory()["VmRSS"], time.process_time()
            answer: dict[str, Any] = {}
            try:
                refusal = module.take(path)
                answer = {"outcome": "refused" if refusal else "accepted", "line": refusal}
            except Exception:  # noqa: BLE001 - whatever it is, it is what is looked for
                answer = {"outcome": "traceback", "line": traceback.format_exc()[-1800:]}
            memory = _memory()
            answer |= {
                "seconds": time.process_time() - start,
                "rss": memory["VmRSS"],
                "took": memory["VmHWM"] - before,
            }
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


def _memory() -> dict[str, int]:
    """What this process holds now and held at most, in KiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return {
        name: int(value.split()[0])
        for name, _, value in (line.partition(":") for line in lines)
        if name in ("VmRSS", "VmHWM")
    }


# ---- the parent


@dataclass
class Child:
    """A process that takes files, and the file that it has."""

    process: subprocess.Popen[bytes]
    index: int = -1
    since: float = 0.0
    taken: int = 0
    settled: int = 0  # KiB after the first files


@dataclass
class Report:
    """What came of the files."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    slowest: tuple[float, int] = (0.0, -1)
    largest: tuple[int, int] = (0, -1)
    stays: int = 0

    def note(self, index: int, answer: dict[str, Any]) -> None:
        outcome = answer["outcome"]
        self.slowest = max(self.slowest, (answer.get("seconds", 0.0), index))
        self.largest = max(self.largest, (answer.get("took", 0), index))
        if answer.get("seconds", 0.0) > SECONDS:
            outcome = "hang"
        elif outcome in ("accepted", "refused") and answer.get("took", 0) > GROWTH_KIB:
            outcome = "growth"
        self.counts[outcome] += 1
        if outcome in WRONG:
            self.faults.append(f"{index} {outcome}: {answer.get('line', '')}")

    @property
    def wrong(self) -> int:
        return sum(self.counts[outcome] for outcome in WRONG) + (self.stays > STAYS_KIB)


def take_all(attack: str, seed: int, indices: range, jobs: int) -> Report:
    """Take all files in child processes."""
    report = Report()
    waiting = iter(indices)
    with selectors.DefaultSelector() as selector:
        for _ in range(jobs):
            _next(_child(attack, selector), seed, waiting, selector)
        while selector.get_map():
            ready = {key.data.index: key.data for key, _ in selector.select(timeout=0.5)}
            for child in ready.values():
                _answered(child, report)
                again = (
                    child if child.process.poll() is None else _replaced(attack, child, selector)
                )
                _next(again, seed, waiting, selector)
            for child in [key.data for key in selector.get_map().values()]:
                if child.index not in ready and time.monotonic() - child.since > WAITED:
                    report.note(child.index, {"outcome": "hang"})
                    _next(_replaced(attack, child, selector), seed, waiting, selector)
    return report


def _child(attack: str, selector: selectors.BaseSelector) -> Child:
    command = [sys.executable, "-c", f"from tests.attacks.children import serve; serve({attack!r})"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child = Child(process)
    assert process.stdout is not None
    selector.register(process.stdout, selectors.EVENT_READ, child)
    return child


def _next(
    child: Child, seed: int, waiting: Iterator[int], selector: selectors.BaseSelector
) -> None:
    """Give the child another file, or let it go where there is none."""
    index = next(waiting, None)
    assert child.process.stdin is not None and child.process.stdout is not None
    if index is None:
        _end(child, selector)
        return
    child.index, child.since = index, time.monotonic()
    child.process.stdin.write(f"{seed} {index}\n".encode())
    child.process.stdin.flush()


def _end(child: Child, selector: selectors.BaseSelector) -> None:
    assert child.process.stdin is not None and child.process.stdout is not None
    selector.unregister(child.process.stdout)
    child.process.stdin.close()
    child.process.kill()
    child.process.wait()
    child.process.stdout.close()


def _replaced(attack: str, child: Child, selector: selectors.BaseSelector) -> Child:
    _end(child, selector)
    return _child(attack, selector)


def _answered(child: Child, report: Report) -> None:
    assert child.process.stdout is not None
    line = child.process.stdout.readline()
    if not line:
        child.process.wait()
        report.note(child.index, {"outcome": "died", "line": f"status {child.process.returncode}"})
        return
    answer = json.loads(line)
    report.note(child.index, answer)
    child.taken += 1
    if child.taken == SETTLED:
        child.settled = answer["rss"]
    elif child.taken > SETTLED:
        report.stays = max(report.stays, answer["rss"] - child.settled - answer["took"])


def main(attack: str, description: str | None) -> int:
    """Run the attack and print its counts."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="INDEX")
    parser.add_argument("--only", type=int, metavar="INDEX", help="one file, in this process")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if options.only is not None:
        return _one(attack, options.seed, options.only)
    start = time.monotonic()
    indices = range(options.first, options.first + options.count)
    report = take_all(attack, options.seed, indices, options.jobs)
    for fault in report.faults[:REPORTED]:
        say(fault)
    counts = report.counts
    say(
        f"seed {options.seed}, {counts.total()} files: "
        f"{counts['refused']} refused, {counts['accepted']} accepted, "
        f"{counts['traceback']} tracebacks, {counts['hang']} hangs, {counts['died']} died, "
        f"{counts['growth']} took too much memory; {time.monotonic() - start:.0f} s"
    )
    say(
        f"slowest {report.slowest[0]:.2f} s (file {report.slowest[1]}), most memory "
        f"{report.largest[0] >> 10} MiB (file {report.largest[1]}), "
        f"{report.stays >> 10} MiB more after all files than after {SETTLED}"
    )
    return 1 if report.wrong else 0


def _one(attack: str, seed: int, index: int) -> int:
    module = importlib.import_module(attack)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(module.hostile_file(seed, index))
        say(module.take(path) or "accepted")
    return 0
