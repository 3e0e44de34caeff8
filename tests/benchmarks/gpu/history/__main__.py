"""A real history to start with: the project's own kernels at its own commits, measured on a GPU.

    python -m tests.benchmarks.gpu.history prepare FOLDER [--target sm_90] [--cache DIR]
                                           [--commits b22b229^..main] [--sample NAME[:SIZE=N,…] …]
    python -m tests.benchmarks.gpu.history check FOLDER [--controls 1]
    python -m tests.benchmarks.gpu.history measure FOLDER OUT [--device cuda:0] [--seconds 240]
                                           [--runs 6] [--samples 15] [--controls 1]
                                           [--commit TEXT]

``prepare`` needs git and compilers and no GPU: it builds the samples' default kernels, in HIP C++
and in CuteDSL, with the engine of each commit that may have changed them, and keeps each library
once. A commit from before NVIDIA's targets rendered for gfx1030, whose sources today's compiler
builds. Some of those that left all instructions as they were are measured too: what is found there
is a false alarm. ``check`` reads the folder as ``measure`` does, without a device, and says which
commits changed the instructions of which kernel. ``measure`` needs the folder and the device and
compiles nothing: each code is checked against today's float64 reference once; then all commits of
a problem are timed in interleaved rounds, in several runs through all problems, with the device's
clocks and what throttled them beside every sample. After each run it writes a file for each
sample, for ``manage.py import_results --with-sources OUT/*``. Where there is no git, ``--commit``
says which commit measured.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scheduler.errors import UserError
from tests.benchmarks.gpu.history.folder import Sample
from tests.benchmarks.gpu.history.prepare import SAMPLES, prepare
from tests.benchmarks.printing import say


def main() -> int:
    options = _options()
    try:
        return int(options.call(options))
    except UserError as error:
        say(str(error))
        return 2


def _prepare(options: argparse.Namespace) -> int:
    wanted = options.sample or SAMPLES
    history = prepare(options.folder, wanted, options.target, options.commits, options.cache)
    size = sum(file.stat().st_size for file in options.folder.rglob("*") if file.is_file())
    same = sum(one.as_before for one in history.measured)
    failed = len(history.commits) - len(history.measured)
    say(
        f"{len(history.commits)} commits: {len(history.measured) - same} changed kernels, {same}"
        f" left them as they were, {failed} could not be built; {size / 1e6:.1f} MB"
    )
    return 0


def _check(options: argparse.Namespace) -> int:
    from tests.benchmarks.gpu.history.measure import check

    return check(options.folder, options.controls)


def _measure(options: argparse.Namespace) -> int:
    from tests.benchmarks.gpu.history.measure import Amounts, measure

    amounts = Amounts(options.runs, options.samples, options.seconds, options.controls)
    return measure(options.folder, options.out, options.device, amounts, options.commit)


def _sample(text: str) -> Sample:
    name, _, sizes = text.partition(":")
    pairs = [pair.partition("=") for pair in sizes.split(",") if pair]
    try:
        return Sample(name, {size: int(value) for size, _, value in pairs})
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text}: sizes are written NAME:s70=128") from None


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.gpu.history")
    which = parser.add_subparsers(required=True)
    one = which.add_parser("prepare", help="build the kernels of each commit, without a GPU")
    one.set_defaults(call=_prepare)
    one.add_argument("folder", type=Path, metavar="FOLDER")
    one.add_argument("--sample", type=_sample, action="append", help="instead of the usual ones")
    one.add_argument("--target", default="sm_90")
    one.add_argument("--commits", default="b22b229^..main", help="as git takes it (%(default)s)")
    one.add_argument("--cache", type=Path, default=Path("var/history-cache"), metavar="DIR")
    two = which.add_parser("check", help="say what of it would be measured, without a GPU")
    two.set_defaults(call=_check)
    two.add_argument("folder", type=Path, metavar="FOLDER")
    _controls(two)
    three = which.add_parser("measure", help="measure what was prepared")
    three.set_defaults(call=_measure)
    _controls(three)
    three.add_argument("folder", type=Path, metavar="FOLDER")
    three.add_argument("out", type=Path, metavar="OUT")
    three.add_argument("--device", default="cuda:0")
    three.add_argument("--commit", default="", help="what measures, where there is no git")
    three.add_argument(
        "--seconds",
        type=float,
        default=240.0,
        help="no run begins that would end later (%(default)s)",
    )
    three.add_argument("--runs", type=int, default=6, help="at most, of each commit (%(default)s)")
    three.add_argument("--samples", type=int, default=15, help="of each run (%(default)s)")
    return parser.parse_args()


def _controls(parser: argparse.ArgumentParser) -> None:
    said = "commits in a row that changed nothing, to be measured all the same (%(default)s)"
    parser.add_argument("--controls", type=int, default=1, help=said)


if __name__ == "__main__":
    sys.exit(main())
