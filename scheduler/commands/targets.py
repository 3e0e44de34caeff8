"""List the targets with their hardware figures, and the toolchains."""

from __future__ import annotations

import argparse
import sys

from scheduler.build.model import Toolchain
from scheduler.build.toolchains import ToolchainResult
from scheduler.commands import options
from scheduler.commands.output import print_json, print_table
from scheduler.targets import Target, find, names
from scheduler.targets.model import HardwareFigure
from scheduler.targets.terms import Terms


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_cache(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print targets, boards and toolchains; exit status 0."""
    found = options.toolchains(arguments)
    known = [find(name) for name in names()]
    if arguments.json:
        print_json(
            {
                "targets": {target.name: target.facts() for target in known},
                "toolchains": [_toolchain_json(one) for one in found],
            }
        )
        return 0
    for (words, figures), of_maker in _by_maker(known).items():
        print_table(
            (
                *("target", "family", words.wave, "matrix"),
                *(f"{figure.heading} {figure.unit}" for figure in figures),
            ),
            [
                (
                    *(target.name, target.family, target.wavefront, facts.get("matrix") or "-"),
                    *(facts[figure.field] for figure in figures),
                )
                for target, facts in ((target, target.facts()) for target in of_maker)
            ],
        )
        sys.stdout.write("\n")
    print_table(
        ("toolchain", "version"),
        [
            (
                one.name,
                one.version if isinstance(one, Toolchain) else f"not available: {one.reason}",
            )
            for one in found
        ],
    )
    return 0


def _by_maker(known: list[Target]) -> dict[tuple[Terms, tuple[HardwareFigure, ...]], list[Target]]:
    """Targets that have the same figures, under the same words."""
    found: dict[tuple[Terms, tuple[HardwareFigure, ...]], list[Target]] = {}
    for target in known:
        key = target.words, target.hardware.figures
        found.setdefault(key, []).append(target)
    return found


def _toolchain_json(one: ToolchainResult) -> dict[str, str | None]:
    if isinstance(one, Toolchain):
        return {"name": one.name, "version": one.version, "path_digest": one.path_digest}
    return {"name": one.name, "version": None, "reason": one.reason}
