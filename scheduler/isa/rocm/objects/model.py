"""The contents of a code object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ReadLimits:
    """Limits for reading one file: of the process that reads it, and of the contents.

    ``instructions`` counts those of all listed functions.
    """

    seconds: float = 60.0
    memory_bytes: int = 3 << 30
    file_bytes: int = 64 << 20
    functions: int = 512
    instructions: int = 400_000


@dataclass(frozen=True)
class CodeObject:
    """``listing`` is in LLVM's assembler syntax, as compilers write it; ``kernels`` are its
    launchable functions, in order. ``left_out`` counts the functions that were not requested."""

    target: str
    listing: str
    kernels: tuple[str, ...]
    left_out: int = 0


@dataclass(frozen=True)
class SourceLocation:
    """The source of an address: file (its index in ``LineTable.files``), line and column; if it was
    inlined from a header, also the line and column of the call in the source."""

    file: int
    line: int
    column: int
    call: tuple[int, int] | None = None


@dataclass(frozen=True)
class LineTable:
    """Debug lines: the files as (folder, name), the source itself first, and the location from each
    address on."""

    files: tuple[tuple[str, str], ...] = ()
    places: Mapping[int, SourceLocation] = field(default_factory=dict)


@dataclass(frozen=True)
class FunctionCode:
    """A function's bytes; ``descriptor`` is the 64 bytes that a kernel's launch reads, or empty."""

    name: str
    address: int
    content: bytes
    descriptor: bytes | None


@dataclass(frozen=True)
class Image:
    """One code object: its processor, its functions by address, and the metadata of its kernels
    (LLVM's ``amdhsa.kernels`` and so on) as read from its note."""

    processor: str
    functions: tuple[FunctionCode, ...]
    metadata: Mapping[str, Any]
    lines: LineTable
