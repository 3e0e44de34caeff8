"""What can be compiled for, with the hardware table and each toolchain found."""

from __future__ import annotations

import argparse

from scheduler.build.model import Toolchain
from scheduler.build.toolchains import Found
from scheduler.commands import options
from scheduler.commands.output import print_json, print_table
from scheduler.targets import find, names

# Of AMD's hardware; another maker's has none of them.
_FIGURES = ("vgprs_per_simd", "vgpr_granule", "max_waves_per_simd", "lds_bytes")


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
    print_table(
        ("target", "family", "wave", "matrix", "VGPRs/SIMD", "granule", "waves/SIMD", "LDS B/CU"),
        [
            (
                *(facts["name"], facts["family"], facts["wavefront"], facts.get("matrix") or "-"),
                *(facts.get(figure, "-") for figure in _FIGURES),
            )
            for facts in (target.facts() for target in known)
        ],
    )
    print_table(
        ("\ntoolchain", "version"),
        [
            (one.name, one.version if isinstance(one, Toolchain) else f"not here: {one.reason}")
            for one in found
        ],
    )
    return 0


def _toolchain_json(one: Found) -> dict[str, str | None]:
    if isinstance(one, Toolchain):
        return {"name": one.name, "version": one.version, "path_digest": one.path_digest}
    return {"name": one.name, "version": None, "reason": one.reason}
