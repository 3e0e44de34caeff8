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
    known = [find(name) for name in names()]
    if arguments.json:
        toolchains = [
            {"name": one.name, "version": one.version, "path_digest": one.path_digest}
            if isinstance(one, Toolchain)
            else {"name": one.name, "version": None, "reason": one.reason}
            for one in compilers
        ]
        targets = {target.name: target.facts() for target in known}
        print_json({"targets": targets, "toolchains": toolchains})
        return 0
    for words, figures in dict.fromkeys((one.words, one.hardware.figures) for one in known):
        rows = []
        for target in known:
            if (target.words, target.hardware.figures) == (words, figures):
                facts = target.facts()
                matrix = facts.get("matrix") or "-"
                described = (target.name, target.family, target.wavefront, matrix)
                rows.append((*described, *(facts[figure.field] for figure in figures)))
        headings = (f"{figure.heading} {figure.unit}" for figure in figures)
        print_table(("target", "family", words.wave, "matrix", *headings), rows)
        sys.stdout.write("\n")
    rows = [
        (one.name, one.version if isinstance(one, Toolchain) else f"not available: {one.reason}")
        for one in compilers
    ]
    print_table(("toolchain", "version"), rows)
    return 0
