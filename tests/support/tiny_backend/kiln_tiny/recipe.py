"""C for this machine: a listing, and a library from it."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kiln_tiny.scheduling import SOURCE_FILE
from scheduler.build.elf import dynamic_symbols
from scheduler.build.flags import Flags
from scheduler.build.model import Diagnostic, Toolchain
from scheduler.build.recipe import Recipe, Step, parse_diagnostics
from scheduler.targets import Target


class TinyRecipe(Recipe):
    """``kernel.bin`` is the library, ``kernel.lst`` its listing; there is no code object."""

    version = "1"
    source_file = SOURCE_FILE
    listing_file = "kernel.lst"
    library_file = "kernel.bin"

    def obstacle(self, toolchain: Toolchain) -> str:
        return "" if toolchain.host else "no C compiler for this machine"

    def prepare(self, directory: Path, toolchain: Toolchain) -> None:
        """Nothing but the source is needed."""

    def steps(
        self, target: Target, toolchain: Toolchain, flags: Flags, symbol: str
    ) -> tuple[Step, ...]:
        # By its name: a fenced compiler cannot look at the machine to find out.
        machine = ("-target", f"{platform.machine()}-linux-gnu")
        compiler = (*toolchain.host, *machine, *flags.host, "-fPIC", "-g1")
        return (
            Step((*compiler, "-S", "-o", self.listing_file, self.source_file)),
            Step((*compiler, "-shared", "-x", "assembler", self.listing_file, "-o", "kernel.bin")),
        )

    def load_error(self, directory: Path, symbol: str) -> str:
        exported = dynamic_symbols((directory / self.library_file).read_bytes()).defined
        return "" if symbol in exported else f"no function {symbol}"

    def resources(self, directory: Path, target: Target) -> Mapping[str, Mapping[str, Any]]:
        return {"loop": {"library_bytes": (directory / self.library_file).stat().st_size}}

    def diagnostics(self, log: str) -> tuple[Diagnostic, ...]:
        return parse_diagnostics(log, self.source_file)


RECIPE = TinyRecipe()
