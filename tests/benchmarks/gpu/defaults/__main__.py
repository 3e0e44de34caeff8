"""How far the choice without any measurement is from the best candidate, measured on an NVIDIA GPU.

    python -m tests.benchmarks.gpu.defaults [--only TEXT] [--candidates N] [--rounds N]
        [--json FILE] [--markdown FILE] [--resume] [--seconds N]
    python -m tests.benchmarks.gpu.defaults --build-only [--target sm_90]     needs no GPU

Of each shape (tests/benchmarks/cycles/shapes.toml) the defaults in HIP C++ and in CuteDSL are
measured, and N other candidates of both: of matrix products two thirds are those that the default's
own estimate finds fastest, the others an even sample of all. The table holds beside the best what
serves where nothing was measured: the default in the language that is chosen where any is allowed
(``compile --language any``), and HIP's.

Kernels that are not in the cache are built first. A result further from float64 than rounding
explains is wrong and not timed. Times are medians of the rounds, each contender in a CUDA graph,
the second-level cache emptied before each sample. Results are written as they come; --resume leaves
out the shapes that are in --json's file already.

Exit status: 1 where a candidate is wrong or the chosen default is not within a tenth of the best,
3 where there is no such GPU or no torch for it.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from scheduler.errors import UserError
from scheduler.runtime import cuda
from scheduler.runtime.lock import lock_device
from scheduler.runtime.nvml import Monitor
from tests.benchmarks.cycles.defaults import WITHIN
from tests.benchmarks.cycles.shapes import FILE, Shape, read
from tests.benchmarks.gpu.__main__ import NO_GPU, missing, rounds
from tests.benchmarks.gpu.apart import Apart, LostError
from tests.benchmarks.gpu.defaults.results import Row, row_of, table
from tests.benchmarks.gpu.files import before, write
from tests.benchmarks.printing import say

_BUILDING = 0.5  # of the time, at most; what is not built then is built where it is measured


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    end = time.monotonic() + options.seconds
    try:
        due = _due(read(options.shapes), options.only)
    except UserError as error:
        raise SystemExit(str(error)) from None
    if options.build_only:
        return 1 if _build(due, options.target, options, options.seconds) else 0
    if lacks := missing():
        say(f"nothing is measured: {lacks}")
        return NO_GPU
    from tests.benchmarks.gpu.head import place_of

    device = cuda.CudaDevice(0)
    locks = Path(tempfile.gettempdir(), "kiln-locks")
    with lock_device(device.info.id, locks):
        monitor = Monitor(device.info.attributes["pci"])
        head = place_of(device.info, monitor, options.commit)
        head["samples"] = f"{options.rounds} rounds, {options.candidates} other candidates"
        for name, text in head.items():
            say(f"{name + ':':<10} {text}")
        rows = _measured(due, options, head, device.info.target, end)
    say(f"\n{table(rows)}")
    return 1 if any(row.failed or row.ratio() > WITHIN for row in rows) else 0


def _due(shapes: Sequence[Shape], only: Sequence[str]) -> dict[int, Shape]:
    """By their places in the file."""
    return {
        place: shape
        for place, shape in enumerate(shapes)
        if not only or any(text in shape.title for text in only)
    }


def _build(
    due: Mapping[int, Shape], target: str, options: argparse.Namespace, within_s: float
) -> int:
    """How many shapes' kernels were not built, all of them."""
    from tests.benchmarks.gpu.building import built
    from tests.benchmarks.gpu.defaults.building import build

    started, done, failed = time.monotonic(), 0, 0
    limit = min(within_s, threading.TIMEOUT_MAX / 2)
    how = partial(build, shapes=options.shapes.absolute(), most=options.candidates)
    for one in built(
        [str(place) for place in due], target, options.cache, options.workers, limit, how
    ):
        done += 1
        failed += bool(one.errors)
        say(f"built in {one.seconds:.0f} s: {one.name}")
        for contender, error in one.errors:
            say(f"not built: {one.name}, {contender}: {error}")
    took = time.monotonic() - started
    say(f"built: kernels of {done} of {len(due)} shapes in {took:.0f} s")
    return failed + len(due) - done


def _measured(
    due: Mapping[int, Shape],
    options: argparse.Namespace,
    head: Mapping[str, str],
    target: str,
    end: float,
) -> list[Row]:
    """Each shape, said and written as soon as it is measured."""
    from tests.benchmarks.gpu.defaults.measuring import Orders, measurer

    rows = before(options, row_of)
    known = {row.key for row in rows}
    left = {place: one for place, one in due.items() if (one.name, one.of) not in known}
    if not options.built:
        _build(left, target, options, (end - time.monotonic()) * _BUILDING)
    orders = Orders(0, options.cache, options.shapes.absolute(), options.candidates, options.rounds)
    worker: Apart[int, Row] = Apart(partial(measurer, orders))
    try:
        for done, (place, shape) in enumerate(left.items()):
            remaining = end - time.monotonic()
            if remaining <= 0:
                say(f"the time was spent: {len(left) - done} shapes are not measured (--resume)")
                break
            row = _row(worker, place, shape, min(remaining, options.shape_seconds))
            rows.append(row)
            say(f"measured: {shape.title}: {row.ratio():.2f}{' FAILED' if row.failed else ''}")
            write(options, head, rows, table(rows))
    finally:
        worker.stop()
    return rows


def _row(worker: Apart[int, Row], place: int, shape: Shape, within_s: float) -> Row:
    try:
        return worker.answer(place, within_s)
    except LostError as lost:
        return Row(shape.name, shape.of, error=str(lost))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.gpu.defaults",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--shapes", type=Path, default=FILE, metavar="FILE")
    parser.add_argument(
        "--only", action="append", default=[], metavar="TEXT", help="shapes named so; repeat"
    )
    parser.add_argument("--candidates", type=int, default=8, metavar="N", help="(%(default)s)")
    parser.add_argument(
        "--rounds", type=rounds, default=7, metavar="N", help="samples of each (%(default)s)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the results")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="where to write the table")
    parser.add_argument("--resume", action="store_true", help="leave out what --json's file has")
    parser.add_argument(
        "--seconds", type=float, default=math.inf, metavar="N", help="no shape begins after these"
    )
    parser.add_argument(
        "--shape-seconds", type=float, default=60.0, metavar="N", help="each (%(default)s)"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="that build")
    parser.add_argument("--build-only", action="store_true", help="time nothing: needs no GPU")
    parser.add_argument(
        "--built", action="store_true", help="build nothing before: all is in the cache"
    )
    parser.add_argument("--target", default="sm_90", help="of --build-only (%(default)s)")
    parser.add_argument("--commit", default="", help="what is measured, where there is no git")
    parser.add_argument("--cache", type=Path, default=Path("var/code-cache"), metavar="DIR")
    return parser


if __name__ == "__main__":
    sys.exit(main())
