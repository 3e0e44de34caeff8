"""Model the cycles of AMD GPU kernels: of a code object and its launch, or of a bundle."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from scheduler.bundle.reader import open_bundle
from scheduler.commands import options
from scheduler.commands.output import print_json, print_line, print_progress
from scheduler.cycles.bundles import model_bundle
from scheduler.cycles.kernel_file import model_file, read_kernels
from scheduler.cycles.kernel_model import TARGETS
from scheduler.cycles.launches.parser import read_launch
from scheduler.cycles.report import Band, LaunchReport, Pipe, Report, StallReason
from scheduler.cycles.report_json import to_json
from scheduler.errors import UserError
from scheduler.isa.listing import Instruction
from scheduler.isa.rocm.reader import GPU
from scheduler.targets import Board, Target, boards, find
from scheduler.text import shorten

_MAX_STALLS = 8
_MIN_SHARE = 0.005  # of a launch's stall: less is not listed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="a code object (.hsaco, .co), a listing (.s, .amdgcn), or a bundle's folder",
    )
    parser.add_argument(
        "--target", required=True, metavar="NAME", help=f"one of {', '.join(TARGETS)}"
    )
    parser.add_argument(
        "--launch",
        type=Path,
        metavar="JSON",
        help="grid, block and arguments of a code object's launch (docs/model.md)",
    )
    parser.add_argument(
        "--board", default="", metavar="NAME", help="MI300X, … (default: the first of the target)"
    )
    options.add_bindings(parser)
    parser.add_argument(
        "--kernel", default="", metavar="NAME", help="model this kernel of a bundle only"
    )


def run(arguments: argparse.Namespace) -> int:
    """Model one launch, or each kernel of a bundle at the sizes that are bound."""
    target = find(arguments.target)
    target_boards = boards(target.name)
    name = arguments.board.casefold()
    board = next((board for board in target_boards if name in board.name.casefold()), None)
    if board is None:
        names = ", ".join(board.name for board in target_boards) or "none"
        problem = f"unknown board {shorten(arguments.board)} for {target.name}"
        raise UserError(f"--board: {problem}; known: {names}")
    model = _model_bundle if arguments.file.is_dir() else _model_file
    reports = model(arguments, target, board)
    if arguments.json:
        print_json({"modelled": [to_json(report) for _, report in reports]})
        return 0
    for listing, report in reports:
        for line in format_report(listing, report):
            print_line(line)
    return 0


def _model_file(
    arguments: argparse.Namespace, target: Target, board: Board
) -> list[tuple[str, Report]]:
    if arguments.launch is None:
        raise UserError("--launch: required for a code object or a listing; see docs/model.md")
    try:
        launch = read_launch(arguments.launch.read_bytes(), arguments.launch.name)
        kernels = read_kernels(arguments.file, target, launch.function)
    except OSError as error:
        raise UserError(f"{error.filename}: {error.strerror}") from None
    return [(kernels.listing, model_file(kernels, target, board, launch))]


def _model_bundle(
    arguments: argparse.Namespace, target: Target, board: Board
) -> list[tuple[str, Report]]:
    if arguments.launch is not None:
        raise UserError("--launch: not allowed with a bundle; set sizes with --bind")
    bundle = open_bundle(arguments.file)
    sizes = options.parse_sizes(arguments, bundle.manifest)
    reports = []
    for kernel, listing, report in model_bundle(bundle, target, board, sizes, arguments.kernel):
        print_progress(f"{shorten(kernel)}: {report.sampled}")
        reports.append((listing, report))
    return reports


def format_report(listing: str, report: Report) -> Iterator[str]:
    """Yield the lines of a report: each launch's time, sentence, pipes, and longest waits."""
    sizes = ", ".join(f"{name}={value}" for name, value in report.sizes.items())
    yield f"{report.kernel}  ({', '.join(filter(None, (report.board, sizes)))})"
    yield f"  modelled {_format_time(report.time_us)}: {report.sentence}"
    if report.unknown:
        names = ", ".join(f"{name} ({count})" for name, count in report.unknown.items())
        yield f"  instructions unknown to the emulator: {names}"
    functions = {function.name: function for function in GPU.parse(listing).functions}
    for launch in report.launches:
        if len(report.launches) > 1:
            yield f"  {launch.function}: {_format_time(launch.time_us)}: {launch.sentence}"
        yield from _format_launch(launch, functions[launch.function].instructions)
    yield f"  {report.sampled}"


def _format_launch(launch: LaunchReport, instructions: Sequence[Instruction]) -> Iterator[str]:
    x, y, z = launch.grid
    yield (
        f"  grid {x}x{y}x{z}, {launch.waves} waves per block, {launch.resident} blocks per"
        f" compute unit (limited by {launch.limiter}),"
        f" {launch.rounds:.3g} rounds, tail {launch.tail:.0%}"
    )
    yield f"  pipes: {_format_shares(launch.pipes)}"
    yield f"  waits: {_format_shares(launch.waits)}"
    for loop in launch.loops:
        body = instructions[loop.first : loop.last + 1]
        lines = [entry.source_line for entry in body if entry.source_line]
        line_range = f" in lines {min(lines)} to {max(lines)}" if lines else ""
        yield (
            f"  loop{line_range}: {loop.iterations:.3g} iterations of {loop.cycles:.0f} cycles,"
            f" matrix pipes {loop.matrix_busy:.0%} busy"
        )
    total = sum(figures.stall for figures in launch.instructions) or 1.0
    for figures in sorted(launch.instructions, key=lambda figures: -figures.stall)[:_MAX_STALLS]:
        share = figures.stall / total
        if share < _MIN_SHARE:
            continue
        instruction = instructions[figures.index]
        reason = max(
            figures.reasons, key=lambda stall_reason: figures.reasons[stall_reason], default=None
        )
        why = f" ({reason})" if reason else ""
        line = f"line {instruction.source_line}: " if instruction.source_line else ""
        text = shorten(f"{instruction.mnemonic} {instruction.operands}", 80)
        if figures.conflict is not None and figures.conflict > 1:
            text += f", conflicts x{figures.conflict:.2f}"
        if figures.bytes_moved:
            text += f", {figures.bytes_used or 0:.0f} of {figures.bytes_moved:.0f} B used"
        yield f"  {share:6.1%} of stalls{why}: {line}{text}"
    for note in launch.notes:
        yield f"  note: {note}"


def _format_shares(shares: Mapping[Pipe, float] | Mapping[StallReason, float]) -> str:
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    return (
        ", ".join(f"{name} {share:.0%}" for name, share in ordered if share >= _MIN_SHARE) or "none"
    )


def _format_time(band: Band) -> str:
    return f"{band.mid:.4g} µs ({band.low:.4g} to {band.high:.4g})"
