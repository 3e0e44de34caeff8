"""The compiler's command lines, step by step. All names in them are relative and fixed, so that the
output is the same in any folder: ``source.hip``, and ``include`` and ``builtin`` as links."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from pathlib import Path

from scheduler.build.flags import Flags
from scheduler.build.model import Toolchain
from scheduler.codegen.languages import HIP_SOURCE
from scheduler.errors import UserError
from scheduler.targets import Target
from scheduler.targets.amd import amd_hardware

LISTING = "kernel.s"
OBJECT = "kernel.o"
CODE_OBJECT = "kernel.hsaco"
BUNDLE = "kernel.hipfb"
HOST_OBJECT = "kernel.host.o"
LIBRARY = "kernel.so"

_LANGUAGE = ("-std=c++20", "-g1", "-fno-color-diagnostics", "-ffile-compilation-dir=.")
# Only our headers and the compiler's own: the machine's headers would change the output.
_NO_ROCM = ("-nogpuinc", "-nogpulib", "-fuse-cuid=none", "-ffreestanding", "-nostdlibinc")
GPU_HEADERS = ("amd", "common")
EMULATION_HEADERS = ("cpu", "common")
# The oldest C library that the emulation's library runs with: that of RHEL 8, Debian 10.
_GLIBC = "2.28"


def listing(target: Target, toolchain: Toolchain, flags: Flags) -> tuple[str, ...]:
    """Compile device code to assembly: the displayed listing, and the input of the code object."""
    return (
        *_hip_compiler(target, toolchain),
        "--cuda-device-only",
        f"--offload-arch={amd_hardware(target).processor}",
        *flags.values,
        "-S",
        "-o",
        LISTING,
        HIP_SOURCE,
    )


def code_object(target: Target, toolchain: Toolchain) -> tuple[str, ...]:
    """Assemble the listing."""
    machine = ("-target", "amdgcn-amd-amdhsa", f"-mcpu={amd_hardware(target).processor}")
    return (*toolchain.clang, "-x", "assembler", *machine, "-c", LISTING, "-o", OBJECT)


def linked_code_object(toolchain: Toolchain) -> tuple[str, ...]:
    return (*toolchain.linker, "-shared", OBJECT, "-o", CODE_OBJECT)


def host(target: Target, toolchain: Toolchain, flags: Flags) -> tuple[str, ...]:
    """Compile the exported function and the launches, with the offload bundle embedded."""
    return (
        *_hip_compiler(target, toolchain),
        "--cuda-host-only",
        *_architecture_macros(target),
        *flags.host,
        "-fPIC",
        "-fvisibility=hidden",
        *("-Xclang", "-fcuda-include-gpubinary", "-Xclang", BUNDLE),
        *("-c", "-o", HOST_OBJECT, HIP_SOURCE),
    )


def library(toolchain: Toolchain) -> tuple[str, ...]:
    """Link against nothing: the HIP runtime that loads the library provides its symbols."""
    return (*toolchain.linker, "-shared", "-Bsymbolic", HOST_OBJECT, "-o", LIBRARY)


def emulation_listing(target: Target, toolchain: Toolchain, flags: Flags) -> tuple[str, ...]:
    """Compile the same source for this machine, with the emulation's own hip_runtime.h."""
    return (
        *host_compiler(toolchain, flags),
        # The C library's headers appear with their full paths: keep them out of the listing.
        f"-ffile-prefix-map={Path(toolchain.host[0]).parent}=ziglang",
        *("-x", "c++", *_LANGUAGE, "-nostdinc++", "-fno-exceptions", "-fno-rtti"),
        *(*includes(EMULATION_HEADERS), f"-DKILN_WAVE_SIZE={target.wavefront}"),
        *_architecture_macros(target),
        # Round f16 arithmetic at every step, as the GPU does.
        *("-Xclang", "-ffloat16-excess-precision=none"),
        # An emulated thread's stack ends in a guard page, which a large frame must not skip.
        "-fstack-clash-protection",
        *("-fvisibility=hidden", "-S", "-o", LISTING, HIP_SOURCE),
    )


def emulation_library(toolchain: Toolchain, flags: Flags) -> tuple[str, ...]:
    """Link the emulation's library; undefined symbols are errors here, not when it is opened."""
    linker = ("-shared", "-Wl,-Bsymbolic", "-Wl,-z,defs")
    return (*host_compiler(toolchain, flags), *linker, LISTING, "-o", LIBRARY)


def includes(folders: Sequence[str]) -> Iterator[str]:
    """Yield compiler arguments for folders of our headers."""
    return (f"-Iinclude/{folder}" for folder in folders)


def host_machine() -> str:
    """Return x86_64 or aarch64: the host part's architecture. Raises ``UserError`` on any other."""
    machine = platform.machine()
    if machine not in _EMULATION_CPU:
        raise UserError(f"this machine is {machine}; Kiln builds on x86_64 and aarch64 only")
    return machine


# A fixed processor, not this machine's own: a build is the same on every machine.
_EMULATION_CPU = {"x86_64": "-march=x86_64_v3", "aarch64": "-mcpu=generic"}


def host_compiler(toolchain: Toolchain, flags: Flags) -> tuple[str, ...]:
    """Return the toolchain's compiler for host code, which sets itself up once per command
    prefix."""
    machine = host_machine()
    triple = f"{machine}-linux-gnu.{_GLIBC}"
    return (
        *(*toolchain.host, "-target", triple, _EMULATION_CPU[machine]),
        *(*flags.host, "-fPIC"),
    )


def _hip_compiler(target: Target, toolchain: Toolchain) -> tuple[str, ...]:
    builtin = ("-Xclang", "-internal-isystem", "-Xclang", "builtin")
    return (
        *(*toolchain.clang, "-x", "hip", f"--target={host_machine()}-unknown-linux-gnu"),
        *(*_LANGUAGE, *_NO_ROCM, *(builtin if toolchain.builtin_headers else ())),
        *(*includes(GPU_HEADERS), f"-DKILN_WAVE_SIZE={target.wavefront}"),
    )


def _architecture_macros(target: Target) -> tuple[str, ...]:
    """Return the device pass's architecture macros; with them the host pass sees the same text."""
    return tuple(f"-D{macro}=1" for macro in amd_hardware(target).macros)
