"""Compare two result files: which series are slower, faster, unchanged or unknown."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from scheduler.commands.output import print_json, print_progress, print_table
from scheduler.errors import UserError
from scheduler.files import write_atomic
from scheduler.results.file import read
from scheduler.track.compare import Comparison, compare
from scheduler.track.compared_series import CompareSettings, Status
from scheduler.track.report import explain_difference, markdown, summary
from scheduler.track.result_series import series_from_results

FAIL_ON = {
    "regression": (Status.SLOWER,),
    "unknown": (Status.UNKNOWN,),
    "gone": (Status.GONE,),
}
_FAILED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", type=Path, metavar="A.json", help="baseline results")
    parser.add_argument("after", type=Path, metavar="B.json", help="new results")
    parser.add_argument(
        "--fail-on",
        action="append",
        default=[],
        choices=tuple(FAIL_ON),
        help="exit with status 1 if a series is slower, unknown or gone; repeatable",
    )
    parser.add_argument(
        "--least-effect",
        type=float,
        default=CompareSettings().least_effect,
        metavar="FRACTION",
        help="minimum effect: 0.01 is 1%% (default: %(default)s)",
    )
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write the tables as Markdown"
    )


def run(arguments: argparse.Namespace) -> int:
    """Compare, print, and exit with 1 where ``--fail-on`` says so."""
    if not 0 <= arguments.least_effect < 1:
        raise UserError("--least-effect: must be at least 0 and less than 1; write 0.01 for 1%")
    results = read(arguments.before), read(arguments.after)
    sides = series_from_results(results[0]), series_from_results(results[1])
    settings = CompareSettings(least_effect=arguments.least_effect)
    comparison = compare(*sides, settings)
    before, after = ({series.series: series for series in side} for side in sides)
    reasons = {
        row.series: explain_difference(before[row.series], after[row.series])
        if row.status in (Status.SLOWER, Status.FASTER)
        else row.reason
        for row in comparison.rows
    }
    if arguments.markdown:
        titles = []
        for path, result in zip((arguments.before, arguments.after), results, strict=True):
            commits = [run.origin.commit[:12] for run in result.runs if run.origin.commit]
            titles.append(", ".join(dict.fromkeys(commits)) or path.name)
        text = markdown(comparison, (titles[0], titles[1]), lambda row: reasons[row.series])
        write_atomic(arguments.markdown, text.encode())
    if arguments.json:
        rows = [{**asdict(row), "why": reasons[row.series]} for row in comparison.rows]
        print_json({**asdict(comparison), "rows": rows})
    else:
        _print_comparison(comparison, reasons)
    failing = {status for name in arguments.fail_on for status in FAIL_ON[name]}
    return _FAILED if any(row.status in failing for row in comparison.rows) else 0


def _print_comparison(comparison: Comparison, reasons: dict[str, str]) -> None:
    print_table(
        ("series", "result", "after/before", "low", "high", "n", "reason"),
        [
            (
                *(row.series, row.status.label, row.ratio, row.low, row.high),
                *(f"{row.n_before}, {row.n_after}", reasons[row.series]),
            )
            for row in comparison.rows
        ],
    )
    print_table(
        ("group", "geometric mean", "low", "high", "series"),
        [(mean.name, mean.ratio, mean.low, mean.high, mean.n) for mean in comparison.groups],
    )
    print_progress(f"{summary(comparison)}; {comparison.compared:,} series compared")
