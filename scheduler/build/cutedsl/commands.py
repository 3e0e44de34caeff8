"""The command lines that build a library from a CuteDSL source, step by step. All names in them are
relative and fixed, so that the output is the same in any folder."""

from __future__ import annotations

from scheduler.build.cutedsl import child
from scheduler.build.cutedsl.toolchains import RUNTIME, CuteDSLToolchain
from scheduler.build.flags import Flags
from scheduler.build.rocm.commands import host_machine, includes
from scheduler.targets import Target
from scheduler.targets.nvidia import nvidia_hardware

SCRIPT = "compile.py"
LISTING = "kernel.s"
HOST_OBJECT = "kernel.host.o"
LIBRARY = "kernel.so"
HEADERS = ("nvidia",)


def architecture(target: Target) -> str:
    """Return the DSL's target architecture: since Hopper the architecture-specific one, whose
    machine code runs only on GPUs of exactly this compute capability."""
    return nvidia_hardware(target).specific


def compile_dsl(
    target: Target, toolchain: CuteDSLToolchain, flags: Flags, symbol: str
) -> tuple[str, ...]:
    """Compile to PTX, cubin and the host's object, with the DSL's own compiler."""
    level = next((flag[2:] for flag in reversed(flags.values) if flag[:2] == "-O"), "3")
    level = level if level in "0123" else "2"  # it has no levels for size
    # Isolated: neither the user's settings nor the working folder is searched.
    return (*toolchain.python, "-I", "-B", SCRIPT, symbol, architecture(target), level)


def sass(toolchain: CuteDSLToolchain) -> tuple[str, ...]:
    """Disassemble the cubin, with source lines between the instructions."""
    return (*toolchain.nvdisasm, "-g", "-c", child.CUBIN)


def host(toolchain: CuteDSLToolchain, flags: Flags) -> tuple[str, ...]:
    """Compile the exported function and the functions that the object calls."""
    builtin = ("-isystem", "builtin") if toolchain.builtin_headers else ()
    return (
        *(*toolchain.clang, "-x", "c", f"--target={host_machine()}-unknown-linux-gnu"),
        *("-std=c11", "-ffreestanding", "-nostdlibinc", *builtin, *includes(HEADERS)),
        *("-fno-color-diagnostics", "-ffile-compilation-dir=/kiln", "-fPIC", *flags.host),
        *("-c", "-o", HOST_OBJECT, child.HOST),
    )


def library(toolchain: CuteDSLToolchain) -> tuple[str, ...]:
    """Link against CuteDSL's own runtime only, which is found when the library is loaded."""
    return (
        *(*toolchain.linker, "-shared", "-Bsymbolic", f"--version-script={child.EXPORTS}"),
        *(HOST_OBJECT, f"{child.OBJECT}.o", RUNTIME, "-o", LIBRARY),
    )
