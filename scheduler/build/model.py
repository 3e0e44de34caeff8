"""The result of a build: the code object, the listing, the shared library, and how they were
made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cattrs import Converter


@dataclass(frozen=True)
class Toolchain:
    """A compiler: ``name`` (rocm, system, bundled, nvcc), its version, and the digest of everything
    else that decides its output: the content of our headers, and the driver's resolved path, except
    for the bundled one, whose version identifies it wherever it is installed. ``driver_digest``
    excludes the headers: the code cache checks only the headers that a source includes.

    ``host`` compiles C++ for this machine against the C library that it brings; it is empty if the
    toolchain has none, and then it cannot build CPU emulation. ``builtin_headers`` is the folder of
    stddef.h and similar headers if the driver does not find it by itself. A backend with compilers
    of another kind has a subclass.
    """

    name: str
    version: str
    path_digest: str
    clang: tuple[str, ...] = ()  # command that is the clang driver
    linker: tuple[str, ...] = ()  # command that is ld.lld
    host: tuple[str, ...] = ()
    builtin_headers: str = ""
    driver_digest: str = ""

    @property
    def extra_read_paths(self) -> tuple[Path, ...]:
        """Return files and folders that its programs read in addition to their own."""
        return ()

    @property
    def programs(self) -> tuple[str, ...]:
        """Return the paths of all programs that it runs."""
        commands = (self.clang, self.linker, self.host)
        return tuple(command[0] for command in commands if command)

    def without_paths(self) -> Toolchain:
        """Return the toolchain with relative commands: equal ones produce the same output wherever
        they are installed."""
        host = ("bin/cc",) if self.host else ()
        return replace(self, clang=("clang",), linker=("ld.lld",), host=host)


@dataclass(frozen=True)
class AbsentToolchain:
    """A compiler that is not available here, and the reason."""

    name: str
    reason: str


@dataclass(frozen=True)
class Diagnostic:
    """One error or warning of the compiler, at a line of the kernel's source."""

    severity: str
    line: int
    column: int
    message: str


@dataclass(frozen=True)
class Build:
    """One source built for one target, as stored in the code cache.

    ``directory`` holds the files that the target's recipe names. ``resources`` has an entry per
    device function, in the vendor's own terms; it is empty if nothing is known. ``cached``: nothing
    was compiled for this call. ``source_file`` tells the source's language ("": that of the
    target's base scheduling).
    """

    target: str
    toolchain: Toolchain
    flags: tuple[str, ...]
    source_digest: str
    code_digest: str
    duration_s: float
    log: str
    directory: Path
    resources: Mapping[str, Mapping[str, Any]]
    cached: bool
    source_file: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the content of build.json, without local paths and compiler commands."""
        record: dict[str, Any] = _codec().unstructure(self)
        return record


@cache
def _codec() -> Converter:
    # Rendering does not need it, and its import takes as long as that of all templates.
    from scheduler.ir.codec import make_codec, rename_fields  # noqa: PLC0415

    codec = make_codec()
    rename_fields(
        codec, Toolchain, omitted=("clang", "linker", "host", "builtin_headers", "driver_digest")
    )
    rename_fields(codec, Build, omitted=("target", "directory", "cached", "source_file"))
    return codec
