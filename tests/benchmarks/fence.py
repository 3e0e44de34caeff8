"""What the fence costs: programs started, and kernels compiled, with it and without.

python -m tests.benchmarks.fence [--starts 200] [--builds 20]
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from scheduler import sandbox, targets
from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.toolchains import bundled_clang
from tests.unit.build.sources import ADD

SYSTEM = tuple(map(Path, ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache")))


def milliseconds(times: int, *ways: Callable[[], object]) -> list[float]:
    """The least processor time of each, with that of the processes it started, taken in turns."""
    taken: list[list[float]] = [[] for _ in ways]
    for _ in range(times):
        for way, samples in zip(ways, taken, strict=True):
            start = _processor_seconds()
            way()
            samples.append(1e3 * (_processor_seconds() - start))
    return [min(samples) for samples in taken]


def _processor_seconds() -> float:
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def without(way: Callable[[], object]) -> Callable[[], object]:
    """The same with no part of the fence in force."""

    def run() -> object:
        with mock.patch("scheduler.sandbox.launch._restrict"):
            return way()

    return run


def compiled(root: Path, target: str) -> Callable[[], object]:
    """A build of a kernel that is new each time."""
    cache, made = CodeCache(root / "cache"), iter(range(10**9))
    toolchain = bundled_clang(cache)
    build(ADD, "add_one", targets.find(target), toolchain, cache)  # the compiler sets itself up

    def run() -> object:
        source = f"{ADD}// {next(made)}\n"
        return build(source, "add_one", targets.find(target), toolchain, cache)

    return run


def main() -> None:
    """Print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=200)
    parser.add_argument("--builds", type=int, default=20)
    options = parser.parse_args()
    own = sandbox.Sandbox(execute=SYSTEM, processes=True)
    free, kept = milliseconds(
        options.starts,
        lambda: subprocess.Popen(["/bin/true"]).wait(),
        lambda: sandbox.start(["/bin/true"], own).wait(),
    )
    sys.stdout.write(f"start of a program: {free:.2f} ms, fenced {kept:.2f} ms\n")
    with tempfile.TemporaryDirectory() as folder:
        for target in ("gfx942", "cpu"):
            way = compiled(Path(folder) / target, target)
            free, kept = milliseconds(options.builds, without(way), way)
            sys.stdout.write(f"build for {target}: {free:.1f} ms, fenced {kept:.1f} ms\n")


if __name__ == "__main__":
    main()
