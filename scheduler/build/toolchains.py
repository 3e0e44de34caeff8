"""Find the compilers: each backend's, and those bundled with this project.

HIP sources are built by ROCm's clang, a system clang with the AMDGPU target, or the bundled one.

Nothing is read from the environment here: the caller says where to look.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from scheduler.build.cache import CodeCache, digest
from scheduler.build.includes import headers_digest
from scheduler.build.model import AbsentToolchain, Toolchain
from scheduler.build.recipe import recipe_of
from scheduler.build.sandbox_paths import programs_sandbox
from scheduler.errors import MachineError, UserError
from scheduler.files import TRANSIENT_ERRNOS
from scheduler.sandbox.process import Limits, run
from scheduler.targets import Target
from scheduler.targets.registry import backend_of, backends, load_part

ToolchainResult: TypeAlias = Toolchain | AbsentToolchain


class ToolchainFor(Protocol):
    """Selects the compiler of such sources for a target, as ``pick_toolchain`` does among those
    found."""

    def __call__(self, target: Target, source_file: str = "", /) -> Toolchain: ...


TOOL_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
_PROBE_LIMITS = Limits(seconds=10.0)
_VERSION = re.compile(r"^.*clang version (\d+\.\d+\.\d+).*$", re.MULTILINE)


@dataclass(frozen=True)
class Search:
    """Where to look. ``rocm_path`` is ROCm's folder (/opt/rocm) if one is named, ``path`` a list of
    folders as in PATH; ``cache``, if given, stores the versions of unchanged drivers."""

    rocm_path: Path | None = None
    path: str = ""
    cache: CodeCache | None = None


def find_toolchains(search: Search) -> tuple[ToolchainResult, ...]:
    """Return every backend's compilers, in order of preference, or why one is missing."""
    finders = dict.fromkeys(backend.compilers for backend in backends())
    return tuple(
        dict.fromkeys(result for finder in finders for result in load_part(finder)(search))
    )


def find_target_toolchains(target: Target, search: Search) -> tuple[ToolchainResult, ...]:
    """Return the compilers of the target's backend, as ``find_toolchains`` does."""
    results: tuple[ToolchainResult, ...] = load_part(backend_of(target).compilers)(search)
    return results


def clang_compilers(search: Search) -> tuple[ToolchainResult, ...]:
    """Return the compilers of HIP sources: ROCm's before the bundled one, whose clang may be
    newer."""
    return (_find_rocm(search), _find_bundled(search.cache), _find_system(search))


def bundled_clang(cache: CodeCache | None = None) -> Toolchain:
    """Return the clang of the ``ziglang`` package. Raises ``UserError`` if the package is
    damaged."""
    toolchain = _find_bundled(cache)
    if isinstance(toolchain, AbsentToolchain):
        raise UserError(f"the bundled compiler is unusable ({toolchain.reason}): reinstall ziglang")
    return toolchain


def pick_toolchain(
    results: Sequence[ToolchainResult], target: Target, source_file: str = ""
) -> Toolchain:
    """Return the first compiler that builds such sources for the target (see ``recipe_of``). Raises
    ``UserError`` with every reason if none does."""
    recipe, reasons = recipe_of(target, source_file), []
    for toolchain in results:
        if isinstance(toolchain, AbsentToolchain):
            reasons.append(f"{toolchain.name}: {toolchain.reason}")
        elif obstacle := recipe.obstacle(toolchain):
            reasons.append(f"{toolchain.name}: {obstacle}")
        else:
            return toolchain
    raise UserError(f"no compiler for {target.name} ({'; '.join(reasons)}); {recipe.remedy}")


def _find_bundled(cache: CodeCache | None) -> ToolchainResult:
    spec = importlib.util.find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        return AbsentToolchain("bundled", "the Python package ziglang is not installed")
    folder = Path(spec.submodule_search_locations[0])
    zig = folder / "zig"
    version = _version(("bundled", str(zig), "clang"), zig, cache)
    if isinstance(version, AbsentToolchain):
        return version
    return Toolchain(
        name="bundled",
        version=version,
        path_digest=digest("ziglang", headers_digest()),
        clang=(str(zig), "clang"),
        linker=(str(zig), "ld.lld"),
        host=(str(zig), "cc"),
        builtin_headers=str(folder / "lib" / "include"),
    )


def _find_rocm(search: Search) -> ToolchainResult:
    folders = []
    if search.rocm_path is not None:
        root = search.rocm_path
        folders = [root / "llvm" / "bin", root / "lib" / "llvm" / "bin", root / "bin"]
    for folder in folders:
        for name in ("amdclang++", "clang++", "clang"):
            if (folder / name).is_file():
                return _probe_driver("rocm", folder / name, search)
    driver = shutil.which("amdclang++", path=search.path) if search.path else None
    if driver:
        return _probe_driver("rocm", Path(driver), search)
    searched = f"no amdclang++ under {search.rocm_path} or" if search.rocm_path else "no amdclang++"
    return AbsentToolchain("rocm", f"{searched} in PATH")


def _find_system(search: Search) -> ToolchainResult:
    driver = shutil.which("clang++", path=search.path) if search.path else None
    if not driver:
        return AbsentToolchain("system", "no clang++ in PATH")
    toolchain = _probe_driver("system", Path(driver), search)
    if isinstance(toolchain, AbsentToolchain):
        return toolchain
    targets = query_driver("system", Path(driver), "--print-targets", search.cache)
    if isinstance(targets, AbsentToolchain):
        return targets
    if "amdgcn" not in targets:
        return AbsentToolchain("system", f"{driver} was built without the AMDGPU target")
    return toolchain


def _probe_driver(name: str, driver: Path, search: Search) -> ToolchainResult:
    """Return a compiler of the machine: the driver, and the ld.lld next to it or in PATH."""
    resolved = driver.resolve()
    linkers = [folder / "ld.lld" for folder in (driver.parent, resolved.parent)]
    linker = next((str(path) for path in linkers if path.is_file()), None)
    linker = linker or (shutil.which("ld.lld", path=search.path) if search.path else None)
    if linker is None:
        return AbsentToolchain(name, f"{driver} has no ld.lld next to it or in PATH")
    version = _version((name, str(driver)), resolved, search.cache)
    if isinstance(version, AbsentToolchain):
        return version
    driver_digest = digest(str(resolved), str(resolved.stat().st_size))
    return Toolchain(
        name=name,
        version=version,
        path_digest=digest(driver_digest, headers_digest()),
        driver_digest=driver_digest,
        clang=(str(driver),),
        linker=(linker,),
    )


def _version(
    command: tuple[str, ...], file: Path, cache: CodeCache | None
) -> str | AbsentToolchain:
    """Return ``22.1.8``, and its source line if that says more (ROCm's release and commit)."""
    name, *driver = command
    answer = query_driver(name, file, "--version", cache, tuple(driver))
    if isinstance(answer, AbsentToolchain):
        return answer
    match = _VERSION.search(answer)
    if not match:
        return AbsentToolchain(name, f"{driver[0]} --version: the output is not that of clang")
    return match.group(0).strip() if name != "bundled" else f"clang {match.group(1)}"


def query_driver(
    name: str, file: Path, question: str, cache: CodeCache | None, driver: tuple[str, ...] = ()
) -> str | AbsentToolchain:
    """Return the driver's output, run with limits; cached by path, size and modification time.

    Raises ``MachineError`` if it cannot be run now, which says nothing about the compiler.
    """
    try:
        stat = file.stat()
    except OSError:
        return AbsentToolchain(name, f"{file} does not exist")
    key = digest(str(file), str(stat.st_size), str(stat.st_mtime_ns), question)
    cached = cache.note(key) if cache else None
    if cached is not None:
        return cached
    try:
        with tempfile.TemporaryDirectory() as folder:
            command = [*(driver or (str(file),)), question]
            policy = programs_sandbox((Path(command[0]),), Path(folder))
            process = run(command, Path(folder), TOOL_ENVIRONMENT, _PROBE_LIMITS, policy=policy)
    except OSError as error:
        if error.errno in TRANSIENT_ERRNOS:
            raise MachineError(f"{file} cannot be started now: {error.strerror}") from error
        return AbsentToolchain(name, f"{file} cannot be run: {error.strerror}")
    if process.interrupted:
        raise MachineError(f"{file} {question} was {process.failure}")
    if not process.ok:
        why = process.failure or f"exit status {process.returncode}"
        return AbsentToolchain(name, f"{file} {question} failed: {why}")
    if cache:
        with suppress(MachineError):  # the driver is queried again
            cache.write_note(key, process.output)
    return process.output
