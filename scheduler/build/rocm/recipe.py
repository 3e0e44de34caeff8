"""HIP sources for AMD GPUs, and for this machine: the emulation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scheduler.build.flags import Flags
from scheduler.build.model import Toolchain
from scheduler.build.recipe import LibraryRecipe, Step
from scheduler.build.rocm import commands, offload_bundle
from scheduler.build.rocm.metadata import parse_resources
from scheduler.codegen.languages import HIP_SOURCE
from scheduler.targets import Target
from scheduler.targets.amd import amd_hardware

# Symbols that a GPU library may leave undefined: the HIP runtime's functions, and C library
# functions that compilers call implicitly.
_RUNTIME_SYMBOLS = re.compile(r"(__)?hip[A-Z]\w*|__cxa_(atexit|finalize)|mem(cpy|set|move|cmp)")


class HipRecipe(LibraryRecipe):
    """A HIP source with our headers: the common part of both builds."""

    version = "3"
    source_file = HIP_SOURCE
    listing_file = commands.LISTING
    library_file = commands.LIBRARY


class GpuRecipe(HipRecipe):
    """For an AMD GPU: listing, code object, and a library that contains the code object."""

    code_object_file = commands.CODE_OBJECT
    header_folders = commands.GPU_HEADERS
    may_leave_open = _RUNTIME_SYMBOLS

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
            (directory / commands.BUNDLE).write_bytes(offload_bundle.pack({processor: body}))

        return (
            Step(commands.listing(target, toolchain, flags)),
            Step(commands.code_object(target, toolchain)),
            Step(commands.linked_code_object(toolchain)),
            Step(commands.host(target, toolchain, flags), before=bundle),
            Step(commands.library(toolchain)),
        )

    def resources(self, directory: Path, target: Target) -> Mapping[str, Mapping[str, Any]]:
        listing = (directory / self.listing_file).read_text()
        return {name: asdict(kernel) for name, kernel in parse_resources(listing, target).items()}


class EmulationRecipe(HipRecipe):
    """For this machine's processor, with the emulation's own HIP headers."""

    header_folders = commands.EMULATION_HEADERS

    def obstacle(self, toolchain: Toolchain) -> str:
        return "" if toolchain.host else "no C library here; use the bundled compiler"

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
