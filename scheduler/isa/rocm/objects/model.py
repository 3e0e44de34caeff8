"""What is found in a code object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ReadLimits:
    """What reading one file may take: of the process that reads it, and of what it finds.

    ``instructions`` are those of all functions that are listed.
    """

    seconds: float = 60.0
    memory_bytes: int = 3 << 30
    file_bytes: int = 64 << 20
    functions: int = 512
    instructions: int = 400_000


@dataclass(frozen=True)
class CodeObject:
    """``listing`` is in the syntax of LLVM's assembler, as compilers write it; ``kernels`` are the
    functions in it that can be launched, in its order. ``left_out`` counts the functions beyond
    those that were asked for."""

    target: str
    listing: str
    kernels: tuple[str, ...]
    left_out: int = 0


@dataclass(frozen=True)
class SourceLocation:
    """Where an address comes from: file (its index in ``Lines.files``), line and column; where it
    was inlined from a header, the line and column of the source's call besides."""

    file: int
    line: int
    column: int
    call: tuple[int, int] | None = None


@dataclass(frozen=True)
class LineTable:
    """Debug lines: the files as (folder, name), the source itself first, and the place from each
    address on."""

    files: tuple[tuple[str, str], ...] = ()
    places: Mapping[int, SourceLocation] = field(default_factory=dict)


@dataclass(frozen=True)
class FunctionCode:
    """A function's bytes; ``descriptor`` is the 64 bytes that a kernel's launch reads, or none."""

    name: str
    address: int
    content: bytes
    descriptor: bytes | None


@dataclass(frozen=True)
class Image:
    """One code object: the processor that it is for, its functions by address, the metadata of
    its kernels (LLVM's ``amdhsa.kernels`` and so on) as read from its note."""

    processor: str
    functions: tuple[FunctionCode, ...]
    metadata: Mapping[str, Any]
    lines: LineTable
