"""CuteDSL sources for NVIDIA GPUs: NVIDIA's compiler makes PTX, machine code and the host part,
clang the exported function."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scheduler.build.cache import digest
from scheduler.build.cuda.listing import compact_listing
from scheduler.build.cuda.resources import parse_resources
from scheduler.build.cutedsl import child, commands
from scheduler.build.cutedsl.toolchains import CHILD, RUNTIME, CuteDSLToolchain
from scheduler.build.elf import section_sizes
from scheduler.build.flags import Flags
from scheduler.build.includes import included_digest
from scheduler.build.model import Toolchain
from scheduler.build.recipe import LibraryRecipe, Step
from scheduler.codegen.languages import CUTEDSL_SOURCE
from scheduler.targets import Target

# Symbols that a library may leave undefined: functions of CuteDSL's runtime and of the C library.
_RUNTIME_SYMBOLS = re.compile(
    r"_cu[A-Za-z]\w*|__cxa_(atexit|finalize)|mem(cpy|set|move|cmp)|printf|abort"
)


class CuteDSLRecipe(LibraryRecipe):
    """The same files as for a HIP source: a device, a worker and a wrapper see no difference."""

    version = "1"
    source_file = CUTEDSL_SOURCE
    listing_file = commands.LISTING
    listing_title = "SASS"
    library_file = commands.LIBRARY
    code_object_file = child.CUBIN
    code_object_title = "Cubin"
    intermediate_file = child.PTX
    intermediate_title = "PTX"
    may_leave_open = _RUNTIME_SYMBOLS
    header_folders = commands.HEADERS
    remedy = "run pip install 'kiln[cutedsl]'"

    @property
    def code_file(self) -> str:
        return self.library_file

    def obstacle(self, toolchain: Toolchain) -> str:
        return "" if isinstance(toolchain, CuteDSLToolchain) else "cannot compile CuteDSL"

    def ignored_flags(self, flags: Flags) -> tuple[str, ...]:
        return tuple(value for value in flags.values if not value.startswith("-O"))

    def steps(
        self, target: Target, toolchain: Toolchain, flags: Flags, symbol: str
    ) -> tuple[Step, ...]:
        assert isinstance(toolchain, CuteDSLToolchain)
        return (
            Step(commands.compile_dsl(target, toolchain, flags, symbol)),
            Step(commands.sass(toolchain), output=commands.LISTING),
            Step(commands.host(toolchain, flags), before=_compact_listing),
            Step(commands.library(toolchain)),
        )

    def included_digest(self, source: str) -> str:  # noqa: ARG002 - it is Python
        host = included_digest(f"#include <{child.HEADER}>", self.header_folders)
        return digest(host, CHILD.read_bytes())

    def prepare(self, directory: Path, toolchain: Toolchain) -> None:
        super().prepare(directory, toolchain)
        assert isinstance(toolchain, CuteDSLToolchain)
        (directory / commands.SCRIPT).symlink_to(CHILD)
        (directory / RUNTIME).symlink_to(toolchain.runtime)

    def resources(self, directory: Path, target: Target) -> Mapping[str, Mapping[str, Any]]:
        usage, ptx = ((directory / name).read_text() for name in (child.USAGE, child.PTX))
        dynamic = json.loads((directory / child.SHARED).read_text())
        sections = section_sizes((directory / child.CUBIN).read_bytes())
        kernels = parse_resources(usage, ptx, target, sections, dynamic)
        return {name: asdict(kernel) for name, kernel in kernels.items()}


def _compact_listing(directory: Path) -> None:
    listing = directory / commands.LISTING
    listing.write_text(compact_listing(listing.read_text()))


RECIPE = CuteDSLRecipe()
"""The backend's recipe."""
