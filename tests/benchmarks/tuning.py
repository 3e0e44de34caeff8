"""Tuning a whole model on CPU emulation: does it keep to its time, and the cores busy?

    python -m tests.benchmarks.tuning [MODEL] [--budget 60s] [--bind SYMBOL=N …]

The goals that were set: a budget of 60 s ends within 75 s; wherever the ledger shows a candidate
faster than the default beyond the noise, it is the one that was chosen; and while compiles are
waiting all cores are at least 90% busy. Busy is what the kernel says of the whole machine
(/proc/stat), so that nothing else should run beside it; the share of this run's own processes
stands beside it. Nothing is in the code cache at the beginning but the compiler's own set-up.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from scheduler import pipeline
from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.model import Build
from scheduler.build.toolchains import bundled_clang
from scheduler.codegen.caller import TemplateCaller
from scheduler.errors import Rejected
from scheduler.ir.bindings import hint_bindings, parse_bindings
from scheduler.runtime.devices import open_device
from scheduler.targets import find
from scheduler.tuning.budget import Budget, Meter, parse_seconds
from scheduler.tuning.compile_pool import LocalCompilePool
from scheduler.tuning.problems import find_problems
from scheduler.tuning.run import SearchOptions, tune
from scheduler.tuning.tuner import TuningResult

SAMPLES = Path(pipeline.__file__).parent / "samples" / "graphs"
EVERY_S = 0.1
FIRST = 'extern "C" __attribute__((visibility("default"))) int first() { return 0; }\n'


@dataclass
class Watch:
    """Compilers that count what waits, and the share of the time in which cores were busy then."""

    compilers: LocalCompilePool
    cores: int
    waiting: int = 0
    busy: list[float] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def submit(self, caller: TemplateCaller) -> Future[Build | Rejected]:
        """As the compilers do."""
        self.waiting += 1
        future = self.compilers.submit(caller)
        future.add_done_callback(self._done)
        return future

    def close(self) -> None:
        """As the compilers do; the watching ends too."""
        self.over.set()
        self.compilers.close()

    def _done(self, _: Future[Build | Rejected]) -> None:
        self.waiting -= 1

    def look(self) -> None:
        """Sample until it is over."""
        before = _jiffies()
        while not self.over.wait(EVERY_S):
            now = _jiffies()
            total = now[0] - before[0]
            if self.waiting > self.cores and total:
                self.busy.append(1 - (now[1] - before[1]) / total)
            before = now


def _jiffies() -> tuple[int, int]:
    """All of the machine's time so far, and its idle part (proc(5), /proc/stat)."""
    figures = [int(one) for one in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(figures), figures[3] + figures[4]


def report(result: TuningResult, watch: Watch, seconds: float, own_s: float) -> None:
    """What came of it."""
    sys.stdout.write("node\tcalls\tdefault ms\tchosen ms\tmeasured\tproblem\n")
    for one in result.problems:
        medians = [e.median_ns for e in one.entries if e.median_ns is not None]
        times = [one.entries[0].median_ns, one.chosen.median_ns if one.chosen else None]
        texts = ["-" if each is None else f"{each / 1e6:.4f}" for each in times]
        facts = (one.problem.node.name, len(one.problem.nodes), *texts, len(medians))
        sys.stdout.write("\t".join(map(str, (*facts, one.problem.title))) + "\n")
    busy = sum(watch.busy) / len(watch.busy) if watch.busy else float("nan")
    sys.stdout.write(
        f"{result.measurements} measured, {result.compiles} compiled, {seconds:.1f} s in all\n"
        f"cores busy while compiles waited: {busy:.0%} ({len(watch.busy)} samples);"
        f" this run's own share of all: {own_s / (seconds * watch.cores):.0%}\n"
    )


def main() -> None:
    """Tune the model and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", default="gpt2_2layer")
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--bind", action="append", default=[])
    options = parser.parse_args()
    cpu, cores = find("cpu"), os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as folder:
        cache = CodeCache(Path(folder))
        toolchain = bundled_clang(cache)
        build("#include <hip/hip_runtime.h>\n" + FIRST, "first", cpu, toolchain, cache)
        start, used = monotonic(), os.times()
        meter = Meter(Budget(parse_seconds(options.budget)))
        graph = pipeline.load(SAMPLES / f"{options.model}.pt2")
        graph = pipeline.with_hints(graph, parse_bindings(options.bind, graph.symbols))
        plan = pipeline.schedule(pipeline.lower(graph))
        backend = pipeline.scheduling(plan, (cpu,))
        problems = find_problems(plan, backend, cpu, hint_bindings(graph.symbols))
        watch = Watch(LocalCompilePool(cpu, lambda *_: toolchain, cache, cores), cores)
        watcher = threading.Thread(target=watch.look)
        watcher.start()
        device = open_device("cpu")
        info = device.info
        device.close()
        result = tune(plan, problems, info, watch, meter, SearchOptions())
        watcher.join()
        now = os.times()
        own_s = sum(now[:4]) - sum(used[:4])
        report(result, watch, monotonic() - start, own_s)


if __name__ == "__main__":
    main()
