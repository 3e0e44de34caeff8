"""List the targets with their hardware figures, and the toolchains."""

from __future__ import annotations

import argparse
import sys

from scheduler.build.model import Toolchain
from scheduler.commands import options
from scheduler.commands.output import print_json, print_table
from scheduler.targets import find, names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_cache(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print targets, boards and toolchains; exit status 0."""
    compilers = options.toolchains(arguments)
    all_targets = [find(name) for name in names()]
    if arguments.json:
        toolchains = [
            {
                "name": compiler.name,
                "version": compiler.version,
                "path_digest": compiler.path_digest,
            }
            if isinstance(compiler, Toolchain)
            else {"name": compiler.name, "version": None, "reason": compiler.reason}
            for compiler in compilers
        ]
        targets = {target.name: target.facts() for target in all_targets}
        print_json({"targets": targets, "toolchains": toolchains})
        return 0
    for words, figures in dict.fromkeys(
        (target.words, target.hardware.figures) for target in all_targets
    ):
        rows = []
        for target in all_targets:
            if (target.words, target.hardware.figures) == (words, figures):
                facts = target.facts()
                matrix = facts.get("matrix") or "-"
                general = (target.name, target.family, target.wavefront, matrix)
                rows.append((*general, *(facts[figure.field] for figure in figures)))
        headings = (f"{figure.heading} {figure.unit}" for figure in figures)
        print_table(("target", "family", words.wave, "matrix", *headings), rows)
        sys.stdout.write("\n")
    rows = [
        (
            compiler.name,
            compiler.version
            if isinstance(compiler, Toolchain)
            else f"not available: {compiler.reason}",
        )
        for compiler in compilers
    ]
    print_table(("toolchain", "version"), rows)
    return 0
