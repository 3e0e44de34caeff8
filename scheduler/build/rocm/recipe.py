"""HIP sources for AMD GPUs, and the same for this machine: the emulation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

from scheduler.build.diagnostics import diagnostics
from scheduler.build.elf import dynamic_symbols
from scheduler.build.flags import Flags
from scheduler.build.model import Diagnostic, Toolchain
from scheduler.build.places import HEADERS
from scheduler.build.recipe import Recipe, Step
from scheduler.build.rocm import bundle_format, commands
from scheduler.build.rocm.metadata import resources
from scheduler.codegen.rocm.source import SOURCE_FILE
from scheduler.targets import Target
from scheduler.targets.amd import amd_hardware

# What a library for a GPU may leave open: the HIP runtime's functions, and what compilers call
# of the C library by themselves.
_OFFERED = re.compile(r"(__)?hip[A-Z]\w*|__cxa_(atexit|finalize)|mem(cpy|set|move|cmp)")


class HipRecipe(Recipe):
    """A HIP source with our headers: what both ways of building it share."""

    version = "3"
    source_file = SOURCE_FILE
    listing_file = commands.LISTING
    library_file = commands.LIBRARY
    may_leave_open: ClassVar[re.Pattern[str] | None] = None
    """The symbols that whoever loads the library offers it; None: its linker has seen to that."""

    def prepare(self, directory: Path, toolchain: Toolchain) -> None:
        (directory / "include").symlink_to(HEADERS)
        if toolchain.builtin_headers:
            (directory / "builtin").symlink_to(toolchain.builtin_headers)

    def unloadable(self, directory: Path, symbol: str) -> str:
        symbols = dynamic_symbols((directory / self.library_file).read_bytes())
        if symbol not in symbols.defined:
            return f"the source does not export {symbol}"
        if self.may_leave_open is None:
            return ""
        unknown = sorted(n for n in symbols.undefined if not self.may_leave_open.fullmatch(n))
        return f"nothing offers {', '.join(unknown)} when the library is loaded" if unknown else ""

    def diagnostics(self, log: str) -> tuple[Diagnostic, ...]:
        return diagnostics(log, self.source_file)


class GpuRecipe(HipRecipe):
    """For an AMD GPU: listing, code object, and a library with the code object inside."""

    code_object_file = commands.CODE_OBJECT
    may_leave_open = _OFFERED

    def obstacle(self, toolchain: Toolchain) -> str:
        return "" if toolchain.clang and toolchain.linker else "no clang with an ld.lld"

    def steps(
        self,
        target: Target,
        toolchain: Toolchain,
        flags: Flags,
        symbol: str,  # noqa: ARG002 - the source names it
    ) -> tuple[Step, ...]:
        processor = amd_hardware(target).processor

        def bundle(directory: Path) -> None:
            body = (directory / commands.CODE_OBJECT).read_bytes()
            (directory / commands.BUNDLE).write_bytes(bundle_format.pack({processor: body}))

        return (
            Step(commands.listing(target, toolchain, flags)),
            Step(commands.code_object(target, toolchain)),
            Step(commands.linked_code_object(toolchain)),
            Step(commands.host(target, toolchain, flags), before=bundle),
            Step(commands.library(toolchain)),
        )

    def resources(self, directory: Path, target: Target) -> Mapping[str, Mapping[str, Any]]:
        listing = (directory / self.listing_file).read_text()
        return {name: asdict(one) for name, one in resources(listing, target).items()}


class EmulationRecipe(HipRecipe):
    """For this machine's processor, on the emulation's own HIP headers."""

    def obstacle(self, toolchain: Toolchain) -> str:
        return "" if toolchain.host else "no C library for this machine; the bundled one has one"

    def steps(
        self,
        target: Target,
        toolchain: Toolchain,
        flags: Flags,
        symbol: str,  # noqa: ARG002 - the source names it
    ) -> tuple[Step, ...]:
        return (
            Step(commands.emulation_listing(target, toolchain, flags)),
            Step(commands.emulation_library(toolchain, flags)),
        )

    def resources(self, directory: Path, target: Target) -> Mapping[str, Mapping[str, Any]]:  # noqa: ARG002
        return {}


GPU = GpuRecipe()
EMULATION = EmulationRecipe()
