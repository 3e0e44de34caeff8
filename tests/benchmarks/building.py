"""What a build takes beside the compiler, and how fast listings are read and compared.

    python -m tests.benchmarks.building

Goals that were set: at most 10% beyond the compiler's own time; nothing compiled the second time;
a listing of 20,000 lines read in well under a second, two of 10,000 compared in at most one.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import TypeVar

from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.model import Build
from scheduler.build.parallel import BuildRequest, build_all
from scheduler.build.toolchains import bundled_clang
from scheduler.isa.diff import diff
from scheduler.isa.listing import Function
from scheduler.isa.rocm.liveness import live_registers
from scheduler.isa.rocm.reader import GPU
from scheduler.targets import find, names
from tests.unit.build.sources import ADD, GEMM

Result = TypeVar("Result")


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    """Seconds and result."""
    start = perf_counter()
    result = work()
    return perf_counter() - start, result


def builds(cache: CodeCache) -> None:
    """Milliseconds for each target: the whole build, the compiler in it, and the second build."""
    sys.stdout.write("target\tkernel\tbuild ms\tcompiler ms\tbeyond %\tsecond ms\n")
    toolchain = bundled_clang(cache)
    for target in (find(name) for name in names()):
        for symbol, source in (("add_one", ADD), ("product", GEMM)):
            if target.emulates:  # the bundled compiler sets itself up once
                build(source + "// first\n", symbol, target, toolchain, cache)
            cold, result = timed(lambda: build(source, symbol, target, toolchain, cache))  # noqa: B023
            warm, again = timed(lambda: build(source, symbol, target, toolchain, cache))  # noqa: B023
            if not isinstance(result, Build) or not isinstance(again, Build) or not again.cached:
                raise RuntimeError(f"{target.name}: {result}")
            beyond = 100 * (cold / result.duration_s - 1)
            figures = (1e3 * cold, 1e3 * result.duration_s, beyond, 1e3 * warm)
            line = "\t".join((target.name, symbol, *(f"{each:.1f}" for each in figures)))
            sys.stdout.write(f"{line}\n")


def many(cache: CodeCache, count: int, workers: int) -> None:
    """Builds a second over the cores."""
    toolchain = bundled_clang(cache)
    target = find("gfx942")
    requests = [
        BuildRequest(f"// {number}\n{GEMM}", "product", target, toolchain)
        for number in range(count)
    ]
    seconds, _ = timed(lambda: build_all(requests, cache, workers))
    sys.stdout.write(f"{count} builds by {workers} workers: {count / seconds:.1f} a second\n")


def listings(cache: CodeCache) -> None:
    """Milliseconds to read, follow and compare large listings."""
    result = build(GEMM, "product", find("gfx942"), bundled_clang(cache), cache)
    if not isinstance(result, Build):
        raise RuntimeError(result.reason)
    text = (result.directory / "kernel.s").read_text()
    copies = 1 + 20_000 // text.count("\n")
    large = "".join(re.sub(r"BB0_", f"BB{number}_", text) for number in range(copies))
    read, listing = timed(lambda: GPU.parse(large))
    live, _ = timed(lambda: [live_registers(function) for function in listing.functions])
    instructions = [each for function in listing.functions for each in function.instructions]
    one = Function("one", 1, 1, tuple((instructions * 10)[:10_000]), {})
    other = Function("other", 1, 1, tuple(each for index, each in enumerate(one.instructions)
                                          if index % 17), {})  # fmt: skip
    compared, _ = timed(lambda: diff(one, other, (GPU, GPU)))
    lines = large.count("\n")
    sys.stdout.write(f"{lines} lines read: {1e3 * read:.0f} ms; live: {1e3 * live:.0f} ms\n")
    sys.stdout.write(f"10,000 instructions compared: {1e3 * compared:.0f} ms\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        builds(CodeCache(Path(folder)))
        many(CodeCache(Path(folder)), 24, 2)
        listings(CodeCache(Path(folder)))
