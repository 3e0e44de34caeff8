"""The compilers for NVIDIA GPUs: the bundled clang as far as PTX, and NVIDIA's own assembler and
disassembler, of the extra ``nvidia`` (packages nvidia-cuda-nvcc and nvidia-cuda-nvdisasm) or of a
CUDA toolkit in PATH. Without them the driver assembles the PTX when a kernel is loaded."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from scheduler.build.model import AbsentToolchain, Toolchain
from scheduler.build.toolchains import Search, ToolchainResult, bundled_clang, query_driver
from scheduler.errors import UserError

NAME = "bundled+ptxas"
EXTRA = "run pip install 'kiln[nvidia]'"
_VERSION = re.compile(r"\bV(\d+\.\d+\.\d+)\b")


@dataclass(frozen=True)
class CudaToolchain(Toolchain):
    """A clang that compiles to PTX, and the programs that assemble it: empty if missing."""

    ptxas: tuple[str, ...] = ()
    nvdisasm: tuple[str, ...] = ()

    @property
    def programs(self) -> tuple[str, ...]:
        nvidia_programs = (command[0] for command in (self.ptxas, self.nvdisasm) if command)
        return (*super().programs, *nvidia_programs)

    def without_paths(self) -> CudaToolchain:
        relative = super().without_paths()
        assert isinstance(relative, CudaToolchain)
        return replace(
            relative,
            ptxas=("ptxas",) if self.ptxas else (),
            nvdisasm=("nvdisasm",) if self.nvdisasm else (),
        )


def cuda_compilers(search: Search) -> tuple[ToolchainResult, ...]:
    """Return the compiler with NVIDIA's assembler, or why it is missing; then the one that stops at
    PTX."""
    try:
        clang = bundled_clang(search.cache)
    except UserError as error:
        return (AbsentToolchain("bundled", str(error)),)
    return (_with_assembler(clang, search), _cuda_clang(clang))


def _cuda_clang(clang: Toolchain) -> CudaToolchain:
    return CudaToolchain(
        name=clang.name,
        version=clang.version,
        path_digest=clang.path_digest,
        clang=clang.clang,
        linker=clang.linker,
        builtin_headers=clang.builtin_headers,
    )


def _with_assembler(clang: Toolchain, search: Search) -> ToolchainResult:
    programs = {}
    for program in ("ptxas", "nvdisasm"):
        path = nvidia_program(program, search)
        if path is None:
            return AbsentToolchain(NAME, f"{program} is not installed: {EXTRA}")
        programs[program] = path
    answer = query_driver(NAME, programs["ptxas"], "--version", search.cache)
    if isinstance(answer, AbsentToolchain):
        return answer
    version = _VERSION.search(answer)
    if version is None:
        return AbsentToolchain(NAME, f"{programs['ptxas']} --version prints no version")
    return replace(
        _cuda_clang(clang),
        name=NAME,
        version=f"{clang.version}, ptxas {version[1]}",
        ptxas=(str(programs["ptxas"]),),
        nvdisasm=(str(programs["nvdisasm"]),),
    )


def nvidia_program(name: str, search: Search) -> Path | None:
    """Return the path of one of NVIDIA's programs: from a wheel, else from PATH."""
    # NVIDIA's wheels share the folder ``nvidia/cu13``.
    in_wheel = newest_in_package("nvidia", f"cu*/bin/{name}")
    path = in_wheel or shutil.which(name, path=search.path or os.defpath)
    return Path(path) if path else None


def newest_in_package(package: str, pattern: str) -> Path | None:
    """Return the last file of an installed package that matches the pattern."""
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations if spec is not None else None) or ():
        for path in sorted(Path(folder).glob(pattern), reverse=True):
            return path
    return None
