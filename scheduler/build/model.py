"""What a build gives: the code object, the listing, the shared library, and how they were made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Toolchain:
    """A compiler: ``name`` (rocm, system, bundled, nvcc), its version, and the digest of what
    decides its output besides: our headers' content, and the driver's resolved path, except for
    the bundled one, whose version says it all wherever it is installed.

    ``host`` compiles C++ for this machine against a C library of its own; empty where the
    toolchain has none, and then it cannot build CPU emulation. ``builtin_headers`` is the folder
    of stddef.h and the like where the driver does not find it by itself.
    """

    name: str
    version: str
    path_digest: str
    clang: tuple[str, ...]  # command that is the clang driver
    linker: tuple[str, ...]  # command that is ld.lld
    host: tuple[str, ...] = ()
    builtin_headers: str = ""


@dataclass(frozen=True)
class AbsentToolchain:
    """A compiler that is not here, and why."""

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
class Resources:
    """What one device function takes, as the compiler says (units in the names).

    ``vgpr`` is what is allocated (on gfx90a and later architectural plus accumulation), of which
    ``agpr`` are accumulation registers.
    """

    vgpr: int
    agpr: int
    sgpr: int
    lds_bytes: int
    scratch_bytes: int
    vgpr_spills: int
    sgpr_spills: int
    code_bytes: int
    wavefront: int
    occupancy_waves_per_simd: int
    limiter: str


@dataclass(frozen=True)
class Build:
    """One source built for one target, as it lies in the code cache.

    ``directory`` holds kernel.s (the listing), kernel.hsaco (GPU targets) and kernel.so.
    ``resources`` has an entry a device function; empty for CPU emulation. ``cached`` says that
    nothing was compiled for this call.
    """

    target: str
    toolchain: Toolchain
    flags: tuple[str, ...]
    source_digest: str
    code_digest: str
    duration_s: float
    log: str
    directory: Path
    resources: dict[str, Resources]
    cached: bool
