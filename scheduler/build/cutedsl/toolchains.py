"""CuteDSL's compiler: the package nvidia-cutlass-dsl under this interpreter, NVIDIA's disassembler,
and the bundled clang and linker for the exported function, from the extra ``cutedsl``."""

from __future__ import annotations

import importlib.util
import platform
import sys
import sysconfig
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

from scheduler.build.cache import digest
from scheduler.build.cuda.toolchains import cuda_compilers, newest_in_package, nvidia_program
from scheduler.build.includes import headers_digest
from scheduler.build.model import AbsentToolchain, Toolchain
from scheduler.build.toolchains import Search, ToolchainResult, bundled_clang
from scheduler.errors import UserError
from scheduler.sandbox.model import SYSTEM_FILES

NAME = "cutedsl"
RUNTIME = "libcute_dsl_runtime.so"
EXTRA = "run pip install 'kiln[cutedsl]'"
CHILD = Path(__file__).with_name("child.py")
_PACKAGE = "nvidia-cutlass-dsl"


@dataclass(frozen=True)
class CuteDSLToolchain(Toolchain):
    """The programs that build a library from a CuteDSL source. ``python`` is the interpreter that
    has the package."""

    python: tuple[str, ...] = ()
    nvdisasm: tuple[str, ...] = ()
    runtime: str = ""  # what libraries are linked against

    @property
    def programs(self) -> tuple[str, ...]:
        extra_programs = (command[0] for command in (self.python, self.nvdisasm) if command)
        return (*super().programs, *extra_programs)

    @property
    def extra_read_paths(self) -> tuple[Path, ...]:
        folders = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib")]
        folders += [Path(entry) for entry in sys.path if Path(entry).name.endswith("-packages")]
        environment = Path(sys.prefix) / "pyvenv.cfg"  # names the folders of a virtual environment
        runtime = Path(self.runtime)
        return (CHILD, runtime, *dict.fromkeys(folders), environment, *SYSTEM_FILES)

    def without_paths(self) -> CuteDSLToolchain:
        relative = super().without_paths()
        assert isinstance(relative, CuteDSLToolchain)
        return replace(relative, python=("python",), nvdisasm=("nvdisasm",), runtime=RUNTIME)


def nvidia_compilers(search: Search) -> tuple[ToolchainResult, ...]:
    """Return the compilers of HIP sources, then CuteDSL's: each recipe uses its own."""
    return (*cuda_compilers(search), _cutedsl(search))


def _cutedsl(search: Search) -> ToolchainResult:
    try:
        version = metadata.version(_PACKAGE)
    except metadata.PackageNotFoundError:
        return AbsentToolchain(NAME, f"{_PACKAGE} is not installed: {EXTRA}")
    runtime = runtime_library()
    if importlib.util.find_spec("cutlass") is None or runtime is None:
        return AbsentToolchain(NAME, f"{_PACKAGE} {version} is incomplete: {EXTRA}")
    nvdisasm = nvidia_program("nvdisasm", search)
    if nvdisasm is None:
        return AbsentToolchain(NAME, f"nvdisasm is not installed: {EXTRA}")
    try:
        clang = bundled_clang(search.cache)
    except UserError as error:
        return AbsentToolchain(NAME, str(error))
    python = ".".join(platform.python_version_tuple()[:2])
    return CuteDSLToolchain(
        name=NAME,
        version=f"{_PACKAGE} {version}, Python {python}, {clang.version}",
        path_digest=digest("cutedsl", headers_digest(), CHILD.read_bytes()),
        clang=clang.clang,
        linker=clang.linker,
        builtin_headers=clang.builtin_headers,
        python=(sys.executable,),
        nvdisasm=(str(nvdisasm),),
        runtime=str(runtime),
    )


def runtime_library() -> Path | None:
    """Return the package's runtime library, which every library built with it needs; its only
    dependency is the driver. None if the package is not installed."""
    return newest_in_package("nvidia_cutlass_dsl", f"cu*/lib/{RUNTIME}")
