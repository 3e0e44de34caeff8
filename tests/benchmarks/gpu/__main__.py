"""Kernels on an NVIDIA GPU beside torch's own, right first, times second.

    python -m tests.benchmarks.gpu [--only TEXT] [--tune 5s] [--results FILE] [--json FILE]
                                   [--no-compile]

Each problem in one process: Kiln's default configurations, with --tune also those that its tuner
chooses here, with --results those that it chose before, torch eager, and torch.compile
(max-autotune where sizes are static). A result further from float64 than its dtype explains is
shown as wrong and not timed. Times are microseconds: the median of the rounds ± half of the middle
half's width, each contender in a CUDA graph, the second-level cache emptied before each sample.

Exit status: 1 where a kernel of Kiln's is wrong, 3 where there is no such GPU or no torch for it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scheduler.build.cache import CodeCache
from scheduler.outcome import UserError
from scheduler.results import file as results_file
from scheduler.results.model import Results
from scheduler.runtime import cuda
from scheduler.runtime.device import Absent
from scheduler.runtime.lock import exclusive
from scheduler.runtime.nvml import Monitor
from scheduler.tuning.budget import parse_seconds
from tests.benchmarks.gpu.compilers import NONE, c_compiler
from tests.benchmarks.gpu.results import Row
from tests.benchmarks.gpu.table import table

if TYPE_CHECKING:
    from tests.benchmarks.gpu.measuring import Settings

NO_GPU = 3


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if lacks := missing():
        _say(f"nothing is measured: {lacks}")
        return NO_GPU
    from tests.benchmarks.gpu.head import head_of

    device = cuda.CudaDevice(0)
    monitor = Monitor(device.info.attributes["pci"])
    with (
        tempfile.TemporaryDirectory() as folder,
        exclusive(device.info.id, Path(tempfile.gettempdir(), "kiln-locks")),
    ):
        found = None if options.no_compile else c_compiler(os.environ, Path(folder))
        if found is not None:
            os.environ["CC"] = found.command
        elif not options.no_compile:
            _say(NONE)
        head = head_of(device.info, monitor, options, found)
        for name, text in head.items():
            _say(f"{name + ':':<10} {text}")
        settings = _settings(options, device.info, monitor, with_compile=found is not None)
        rows = _measured(options, settings, head)
    return 1 if any(row.failed for row in rows) else 0


def missing() -> str:
    """What this machine lacks, in one line; "" where nothing."""
    if importlib.util.find_spec("torch") is None:
        return "torch is not installed"
    found = cuda.DEVICES.probe()
    if absent := next((one for one in found if isinstance(one, Absent)), None):
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


def _settings(
    options: argparse.Namespace, info: Any, monitor: Monitor, *, with_compile: bool
) -> Settings:
    from tests.benchmarks.gpu.making import Shop
    from tests.benchmarks.gpu.measuring import Settings

    shop = Shop(info, CodeCache(options.cache))
    only, known = tuple(options.tune_only), tuple(options.results)
    return Settings(shop, monitor, options.rounds, options.tune, only, known, with_compile)


def _measured(
    options: argparse.Namespace, settings: Settings, head: Mapping[str, str]
) -> list[Row]:
    """Each problem, said and written as soon as it is measured; then the whole table."""
    from tests.benchmarks.gpu.measuring import measured
    from tests.benchmarks.gpu.problems import problems

    rows: list[Row] = []
    for problem in problems():
        if options.only and not any(text in problem.name for text in options.only):
            continue
        rows.append(measured(problem, settings))
        _say(f"measured: {problem.name}")
        if options.json:
            data = {"head": head, "rows": [asdict(row) for row in rows]}
            options.json.write_text(json.dumps(data, indent=1))
    _say(f"\n{table(rows)}" if rows else f"no problem is named {' or '.join(options.only)}")
    return rows


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
