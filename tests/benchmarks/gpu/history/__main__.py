"""A real history to start with: the project's own kernels at its own commits, measured on a GPU.

    python -m tests.benchmarks.gpu.history prepare FOLDER [--sample NAME] [--target sm_90]
                                           [--commits 347df3b..main] [--cache DIR]
    python -m tests.benchmarks.gpu.history measure FOLDER OUT [--device cuda:0] [--runs 5]
                                           [--samples 15]

``prepare`` needs git and compilers and no GPU: it builds the sample's kernels with the engine of
each commit that may have changed them, and keeps those that differ from the commit before, each
code object once. ``measure`` needs the folder and the device: all commits of a problem are checked
against today's float64 reference once and then timed in interleaved rounds, several runs each,
with the device's clocks and what throttled them beside every sample. It writes one file for each
commit, with the commit as what measured, for ``manage.py import_results --with-sources OUT/*``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scheduler.outcome import UserError
from tests.benchmarks.gpu.history.prepare import prepare
from tests.benchmarks.printing import say


def main() -> int:
    options = _options()
    try:
        return int(options.call(options))
    except UserError as error:
        say(str(error))
        return 2


def _prepare(options: argparse.Namespace) -> int:
    history = prepare(
        options.folder, options.sample, options.target, options.commits, options.cache
    )
    size = sum(file.stat().st_size for file in options.folder.rglob("*") if file.is_file())
    same = sum(one.left_out == "kernels as before" for one in history.commits)
    failed = len(history.commits) - len(history.measured) - same
    say(
        f"{len(history.commits)} commits: {len(history.measured)} changed kernels, {same} left them"
        f" as they were, {failed} could not be built; {size / 1e6:.1f} MB"
    )
    return 0


def _measure(options: argparse.Namespace) -> int:
    from tests.benchmarks.gpu.history.measure import measure

    return measure(options.folder, options.out, options.device, options.runs, options.samples)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.gpu.history")
    which = parser.add_subparsers(required=True)
    one = which.add_parser("prepare", help="build the kernels of each commit, without a GPU")
    one.set_defaults(call=_prepare)
    one.add_argument("folder", type=Path, metavar="FOLDER")
    one.add_argument("--sample", default="gpt2_2layer")
    one.add_argument("--target", default="sm_90")
    one.add_argument("--commits", default="347df3b..main", help="as git takes it (%(default)s)")
    one.add_argument("--cache", type=Path, default=Path("var/history-cache"), metavar="DIR")
    other = which.add_parser("measure", help="measure what was prepared")
    other.set_defaults(call=_measure)
    other.add_argument("folder", type=Path, metavar="FOLDER")
    other.add_argument("out", type=Path, metavar="OUT")
    other.add_argument("--device", default="cuda:0")
    other.add_argument("--runs", type=int, default=5, help="of each commit (%(default)s)")
    other.add_argument("--samples", type=int, default=15, help="of each run (%(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
