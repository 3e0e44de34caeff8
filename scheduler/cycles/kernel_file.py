"""Models a kernel from a file, a code object or a listing, with its launch."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from scheduler.cycles.kernel_model import Limits, model_kernel
from scheduler.cycles.launches.binding import bind_launch
from scheduler.cycles.launches.parser import LaunchSpec
from scheduler.cycles.report import Report
from scheduler.errors import UserError
from scheduler.isa.rocm.emulator.program import program_of
from scheduler.isa.rocm.objects import reader
from scheduler.sandbox.process import Cancellation
from scheduler.targets import Board, Target
from scheduler.targets.amd import amd_hardware
from scheduler.text import shorten

MOST_BYTES = 64 << 20  # of a listing
_OBJECTS = (b"\x7fELF", b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB")
_KERNEL = re.compile(r"^[ \t]*\.amdhsa_kernel[ \t]+(\S+)", re.MULTILINE)
_TARGET = re.compile(r'\.amdgcn_target[ \t]+"[^"\n]*--(gfx\w+)')
# Control characters, which no listing has: terminals and pages would act on them.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@dataclass(frozen=True)
class KernelFile:
    """A file's listing in LLVM's syntax, and the names of the kernels in it."""

    name: str
    listing: str
    kernels: tuple[str, ...]

    def select_kernel(self, asked: str) -> str:
        """Return the kernel of that name, or the only one. ``UserError`` lists the kernels there
        are."""
        there = ", ".join(map(shorten, self.kernels[:20])) or "none"
        if asked and asked not in self.kernels:
            raise UserError(f"{self.name}: no kernel {shorten(asked)}; known: {there}")
        if not asked and len(self.kernels) != 1:
            raise UserError(f"{self.name}: the launch must name its function; known: {there}")
        return asked or self.kernels[0]


def read_kernels(
    file: Path, target: Target, asked: str = "", cancellation: Cancellation | None = None
) -> KernelFile:
    """Read a file by its content: a code object is disassembled (the named kernel, or all), a
    listing is taken as it is. Raises ``UserError`` if it is neither, or for another target."""
    processor = amd_hardware(target).processor
    if file.stat().st_size > MOST_BYTES:
        raise UserError(f"{file.name}: larger than the limit of {MOST_BYTES >> 20} MiB")
    with file.open("rb") as opened:
        begin = opened.read(32)
    if begin.startswith(_OBJECTS):
        code_object = reader.read_code_object(
            file, processor, (asked,) if asked else (), cancellation=cancellation
        )
        return KernelFile(file.name, code_object.listing, code_object.kernels)
    try:
        listing = file.read_text("utf-8")
    except UnicodeDecodeError:
        raise UserError(f"{file.name}: neither a code object nor a listing") from None
    kernels = tuple(dict.fromkeys(match[1] for match in _KERNEL.finditer(listing)))
    if not kernels or _CONTROL.search(listing):
        raise UserError(
            f"{file.name}: not a listing of AMD's assembler with a kernel (.amdhsa_kernel)"
        )
    made_for = _TARGET.search(listing)
    if made_for and made_for[1] != processor:
        raise UserError(f"{file.name}: built for {made_for[1]}, not for {processor}")
    return KernelFile(file.name, listing, kernels)


def model_file(
    kernels: KernelFile,
    target: Target,
    board: Board,
    text: LaunchSpec,
    limits: Limits = Limits(),
) -> Report:
    """Model one launch of a kernel of the file on a board. Raises ``UserError``."""
    function = kernels.select_kernel(text.function)
    program = program_of(kernels.listing, function, amd_hardware(target).processor)
    launch, memory = bind_launch(text, program, target)
    return model_kernel(
        kernels.listing,
        target,
        board,
        [launch],
        memory,
        kernel=function,
        sizes=text.sizes,
        limits=limits,
    )
