"""HIP sources for NVIDIA GPUs: PTX by clang, machine code and its listing by NVIDIA's programs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scheduler.build.cuda import commands
from scheduler.build.cuda.listing import attribute_to_callers, compact_listing
from scheduler.build.cuda.resources import parse_resources
from scheduler.build.cuda.toolchains import CudaToolchain
from scheduler.build.elf import section_sizes
from scheduler.build.flags import Flags
from scheduler.build.model import Toolchain
from scheduler.build.recipe import Step
from scheduler.build.rocm.recipe import HipRecipe
from scheduler.codegen.languages import HIP_SOURCE
from scheduler.targets import Target

# Symbols that a library may leave undefined: the driver's functions, memory for the list of its
# kernels, and C library functions that compilers call implicitly.
_RUNTIME_SYMBOLS = re.compile(
    r"cu[A-Z]\w*|__cxa_(atexit|finalize)|__tls_get_addr|mem(cpy|set|move|cmp)|malloc|free"
)


class CudaRecipe(HipRecipe):
    """Listing: SASS with nvdisasm, else PTX; the library holds the cubin, else the PTX."""

    version = "3"
    listing_file = commands.LISTING
    listing_title = "SASS"
    code_object_file = commands.CUBIN
    code_object_title = "Cubin"
    header_folders = commands.HEADERS
    intermediate_file = commands.PTX
    intermediate_title = "PTX"
    without_code_object = "assembled by the driver: install kiln[nvidia] for SASS"
    may_leave_open = _RUNTIME_SYMBOLS

    @property
    def code_file(self) -> str:
        return self.library_file

    def files_with(self, toolchain: Toolchain) -> tuple[str, ...]:
        assert isinstance(toolchain, CudaToolchain)
        absent = () if toolchain.ptxas else (self.code_object_file,)
        return tuple(name for name in self.files if name not in absent)

    def obstacle(self, toolchain: Toolchain) -> str:
        if not isinstance(toolchain, CudaToolchain):
            return "cannot generate PTX"
        return "" if toolchain.clang and toolchain.linker else "no clang with an ld.lld"

    def ignored_flags(self, flags: Flags) -> tuple[str, ...]:
        return tuple(value for value in flags.values if value not in flags.host)

    def steps(
        self,
        target: Target,
        toolchain: Toolchain,
        flags: Flags,
        symbol: str,  # noqa: ARG002 - the source names it
    ) -> tuple[Step, ...]:
        assert isinstance(toolchain, CudaToolchain)
        assembly_steps: tuple[Step, ...] = ()
        if toolchain.ptxas:
            assembly_steps = (
                Step(commands.cubin(target, toolchain), _rewrite_lines, commands.USAGE),
                Step(commands.sass(toolchain), output=commands.LISTING),
            )
        return (
            Step(commands.ptx(target, toolchain, flags)),
            *assembly_steps,
            Step(commands.host(target, toolchain, flags), before=_write_image),
            Step(commands.library(toolchain)),
        )

    def resources(self, directory: Path, target: Target) -> Mapping[str, Mapping[str, Any]]:
        usage = directory / commands.USAGE
        if not usage.exists():
            return {}
        ptx = (directory / commands.PTX).read_text()
        sections = section_sizes((directory / commands.CUBIN).read_bytes())
        kernels = parse_resources(usage.read_text(), ptx, target, sections)
        return {name: asdict(kernel) for name, kernel in kernels.items()}


def _rewrite_lines(directory: Path) -> None:
    ptx = directory / commands.PTX
    ptx.write_text(attribute_to_callers(ptx.read_text(), HIP_SOURCE))


def _write_image(directory: Path) -> None:
    """Write the driver's image: the cubin, else the PTX as a C string; and the stored listing."""
    cubin, ptx = directory / commands.CUBIN, directory / commands.PTX
    listing = directory / commands.LISTING
    if cubin.exists():
        (directory / commands.IMAGE).write_bytes(cubin.read_bytes())
        listing.write_text(compact_listing(listing.read_text()))
        return
    _rewrite_lines(directory)
    (directory / commands.IMAGE).write_bytes(ptx.read_bytes() + b"\0")
    listing.write_bytes(ptx.read_bytes())


RECIPE = CudaRecipe()
