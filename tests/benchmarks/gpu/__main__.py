"""Kernels on an NVIDIA GPU beside torch's own, right first, times second.

    python -m tests.benchmarks.gpu [--only TEXT] [--tune 5s] [--results FILE] [--json FILE]
                                   [--markdown FILE] [--resume] [--seconds N] [--no-compile]
    python -m tests.benchmarks.gpu --build-only [--target sm_90]     needs no GPU

All kernels are built first, by as many processes as there are cores; then each problem is timed in
a process: Kiln's default configurations in HIP C++ and CuteDSL, with --tune also those that its
tuner chooses here, with --results those that it chose before, torch eager, and torch.compile
(max-autotune where sizes are static). A result further from float64 than its dtype explains is
shown as wrong and not timed. Times are microseconds: the median of the rounds ± half of the middle
half's width, each contender in a CUDA graph, the second-level cache emptied before each sample.

Each problem has its bars: the most that our time may be of torch.compile's, or of a copy's of as
many bytes. Results are written as they come; --resume leaves out the problems that are in --json's
file already.

Exit status: 1 where a kernel of Kiln's is wrong or a bar is missed, 3 where there is no such GPU or
no torch for it.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from scheduler.errors import UserError
from scheduler.results import file as results_file
from scheduler.results.model import Results
from scheduler.runtime import cuda
from scheduler.runtime.device import AbsentDevice
from scheduler.runtime.lock import lock_device
from scheduler.runtime.nvml import Monitor
from scheduler.tuning.budget import parse_seconds
from tests.benchmarks.gpu.compilers import NONE, c_compiler
from tests.benchmarks.gpu.files import before, write
from tests.benchmarks.gpu.results import Row, row_of
from tests.benchmarks.gpu.table import said, table

if TYPE_CHECKING:
    from tests.benchmarks.gpu.worker import Orders

NO_GPU = 3
_BUILDING = 0.3  # of the time, at most; what is not built then is built where it is measured


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    started = time.monotonic()
    if options.build_only:
        return _built_alone(options)
    if lacks := missing():
        _say(f"nothing is measured: {lacks}")
        return NO_GPU
    from tests.benchmarks.gpu.head import head_of

    device = cuda.CudaDevice(0)
    monitor = Monitor(device.info.attributes["pci"])
    with (
        tempfile.TemporaryDirectory() as folder,
        lock_device(device.info.id, Path(tempfile.gettempdir(), "kiln-locks")),
    ):
        found = None if options.no_compile else c_compiler(os.environ, Path(folder))
        if found is not None:
            os.environ["CC"] = found.command
        elif not options.no_compile:
            _say(NONE)
        head = head_of(device.info, monitor, options, found)
        for name, text in head.items():
            _say(f"{name + ':':<10} {text}")
        orders = _orders(options, with_compile=found is not None)
        rows = _measured(options, orders, head, device.info.target, started + options.seconds)
    return 1 if any(row.failed or row.missed for row in rows) else 0


def missing() -> str:
    """What this machine lacks, in one line; "" where nothing."""
    if importlib.util.find_spec("torch") is None:
        return "torch is not installed"
    found = cuda.DEVICES.probe()
    if absent := next((one for one in found if isinstance(one, AbsentDevice)), None):
        return f"no NVIDIA GPU: {absent.reason}"
    import torch

    if not torch.cuda.is_available():
        return f"torch {torch.__version__} does not see the GPU: it needs a build for CUDA"
    return ""


def seconds(text: str) -> float:
    """A time, as argparse wants it."""
    try:
        return parse_seconds(text)
    except UserError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def results(text: str) -> Results:
    """A file of recorded results, as argparse wants it."""
    try:
        return results_file.read(Path(text))
    except UserError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def rounds(text: str) -> int:
    """At least two, for an interval."""
    if not text.isdecimal() or int(text) < 2:
        raise argparse.ArgumentTypeError(f"{text!r}: a number of at least 2")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.gpu",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="TEXT", help="problems named so; repeat"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the results")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="where to write the table")
    parser.add_argument("--resume", action="store_true", help="leave out what --json's file has")
    parser.add_argument(
        "--seconds", type=float, default=math.inf, metavar="N", help="no problem begins after these"
    )
    parser.add_argument(
        "--problem-seconds", type=float, default=240.0, metavar="N", help="each (%(default)s)"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="that build")
    parser.add_argument("--build-only", action="store_true", help="time nothing: needs no GPU")
    parser.add_argument("--target", default="sm_90", help="of --build-only (%(default)s)")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument(
        "--tune", type=seconds, default=0.0, metavar="TIME", help="tune each kernel so long as well"
    )
    parser.add_argument(
        "--tune-only", action="append", default=[], metavar="TEXT", help="problems named so; repeat"
    )
    parser.add_argument(
        "--results",
        type=results,
        action="append",
        default=[],
        metavar="FILE",
        help="recorded results: what they chose for a problem's graph is taken as tuned; repeat",
    )
    parser.add_argument(
        "--rounds", type=rounds, default=50, metavar="N", help="samples of each (%(default)s)"
    )
    parser.add_argument("--commit", default="", help="what is measured, where there is no git")
    parser.add_argument("--cache", type=Path, default=Path("var/code-cache"), metavar="DIR")
    return parser


def _orders(options: argparse.Namespace, *, with_compile: bool) -> Orders:
    from tests.benchmarks.gpu.worker import Orders

    only, known = tuple(options.tune_only), tuple(options.results)
    return Orders(0, options.cache, options.rounds, options.tune, only, known, with_compile)


def _built_alone(options: argparse.Namespace) -> int:
    from tests.benchmarks.gpu.problems import problems

    names = [one.name for one in problems(options.only)]
    return 1 if _build(names, options.target, options, options.seconds) else 0


def _build(names: Sequence[str], target: str, options: argparse.Namespace, within: float) -> int:
    """How many problems' kernels were not built."""
    from tests.benchmarks.gpu.building import built

    started, done, failed = time.monotonic(), 0, 0
    limit = min(within, threading.TIMEOUT_MAX / 2)
    for one in built(names, target, options.cache, options.workers, limit):
        done += 1
        failed += bool(one.errors)
        for language, error in one.errors:
            _say(f"not built: {one.name}, {language}: {error}")
    took = time.monotonic() - started
    _say(f"built: kernels of {done} of {len(names)} problems in {took:.0f} s")
    return failed + len(names) - done


def _measured(
    options: argparse.Namespace,
    orders: Orders,
    head: Mapping[str, str],
    target: str,
    end: float,
) -> list[Row]:
    """Each problem, said and written as soon as it is measured; then the whole table."""
    from tests.benchmarks.gpu.problems import problems
    from tests.benchmarks.gpu.worker import Worker

    rows = before(options, row_of)
    known = {row.name for row in rows}
    due = [one for one in problems(options.only) if one.name not in known]
    _build([one.name for one in due], target, options, (end - time.monotonic()) * _BUILDING)
    worker = Worker(orders)
    try:
        for place, problem in enumerate(due):
            left = end - time.monotonic()
            row = worker.measured(problem, min(left, options.problem_seconds)) if left > 0 else None
            if row is None or (row.failed and time.monotonic() >= end):
                _say(f"the time was spent: {len(due) - place} problems are not measured (--resume)")
                break
            rows.append(row)
            bars = "; ".join(said(row, bar) for bar in row.bars)
            _say(f"measured: {problem.name}: {bars}{' FAILED' if row.failed else ''}")
            write(options, head, rows, table(rows))
    finally:
        worker.stop()
    _say(f"\n{table(rows)}" if rows else f"no problem is named {' or '.join(options.only)}")
    return rows


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
