"""The command lines of an NVIDIA build, step by step. All names in them are relative and fixed, so
that the output is the same in any folder."""

from __future__ import annotations

from scheduler.build.cuda.toolchains import CudaToolchain
from scheduler.build.flags import Flags
from scheduler.build.rocm.commands import host_machine, includes
from scheduler.codegen.languages import HIP_SOURCE
from scheduler.targets import Target
from scheduler.targets.nvidia import nvidia_hardware

PTX = "kernel.ptx"
CUBIN = "kernel.cubin"
LISTING = "kernel.s"
IMAGE = "kernel.image"
USAGE = "kernel.usage"
HOST_OBJECT = "kernel.host.o"
LIBRARY = "kernel.so"

HEADERS = ("nvidia", "common")

# The assembler makes names absolute: a fixed, fictitious folder keeps them the same everywhere.
_LANGUAGE = ("-std=c++20", "-g1", "-fno-color-diagnostics", "-ffile-compilation-dir=/kiln")
# The CUDA version decides how the compiler writes launches: as since CUDA 10.
_NO_CUDA = (
    *("-nogpuinc", "-nogpulib", "-nocudainc", "-nocudalib", "-ffreestanding", "-nostdlibinc"),
    *("-Wno-unknown-cuda-version", "-Xclang", "-target-sdk-version=12.8"),
)
# HIP's setting. CUDA's default fuses multiplies and adds even where a function forbids it, and
# NVIDIA's assembler fuses whatever is not marked as separately rounded.
_FP_CONTRACT = ("-ffp-contract=fast-honor-pragmas",)


def ptx(target: Target, toolchain: CudaToolchain, flags: Flags) -> tuple[str, ...]:
    """Compile device code to PTX, of the first version that has the target: older drivers accept
    it."""
    gpu = nvidia_hardware(target)
    version = f"+ptx{gpu.ptx_version}"
    return (
        *_cuda_compiler(target, toolchain),
        *("--cuda-device-only", f"--cuda-gpu-arch={gpu.processor}"),
        *("-Xclang", "-target-feature", "-Xclang", version),
        *flags.host,
        *("-S", "-o", PTX, HIP_SOURCE),
    )


def cubin(target: Target, toolchain: CudaToolchain) -> tuple[str, ...]:
    """Assemble the PTX; prints each kernel's resource usage."""
    processor = nvidia_hardware(target).processor
    return (*toolchain.ptxas, f"-arch={processor}", "-v", "-lineinfo", PTX, "-o", CUBIN)


def sass(toolchain: CudaToolchain) -> tuple[str, ...]:
    """Disassemble the cubin, with source lines between the instructions."""
    return (*toolchain.nvdisasm, "-g", "-c", CUBIN)


def host(target: Target, toolchain: CudaToolchain, flags: Flags) -> tuple[str, ...]:
    """Compile the exported function and the launches, with the device code embedded."""
    return (
        *_cuda_compiler(target, toolchain),
        "--cuda-host-only",
        *flags.host,
        *("-fPIC", "-fvisibility=hidden"),
        *("-Xclang", "-fcuda-include-gpubinary", "-Xclang", IMAGE),
        *("-c", "-o", HOST_OBJECT, HIP_SOURCE),
    )


def library(toolchain: CudaToolchain) -> tuple[str, ...]:
    """Link against nothing: the loading process has opened the driver, which provides its
    symbols."""
    return (*toolchain.linker, "-shared", "-Bsymbolic", HOST_OBJECT, "-o", LIBRARY)


def _cuda_compiler(target: Target, toolchain: CudaToolchain) -> tuple[str, ...]:
    builtin = ("-Xclang", "-internal-isystem", "-Xclang", "builtin")
    return (
        *(*toolchain.clang, "-x", "cuda", f"--target={host_machine()}-unknown-linux-gnu"),
        *(*_LANGUAGE, *_NO_CUDA, *(builtin if toolchain.builtin_headers else ())),
        *(*includes(HEADERS), f"-DKILN_WAVE_SIZE={target.wavefront}"),
        *_FP_CONTRACT,
        f"-D__{nvidia_hardware(target).processor}__=1",
    )
