"""The files that a compiler may use: its own, our headers, and one folder for its output."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

from scheduler.build.model import Toolchain
from scheduler.sandbox import Sandbox
from scheduler.sandbox.model import SYSTEM_LIBRARIES

HEADER_ROOT = Path(__file__).parent / "headers"
_UTILITY_FOLDERS = (Path("/bin"), Path("/usr/bin"))
_SHARED_PREFIXES = frozenset(map(Path, ("/", "/usr", "/usr/local", "/opt", "/home", "/root")))
_MAX_SCRIPT_BYTES = 1 << 16


def toolchain_sandbox(toolchain: Toolchain, *folders: Path) -> Sandbox:
    """Return the sandbox of a toolchain's programs, working in these folders."""
    programs = dict.fromkeys(map(Path, toolchain.programs))
    headers = Path(toolchain.builtin_headers) if toolchain.builtin_headers else HEADER_ROOT
    base = programs_sandbox(tuple(programs), *folders)
    read = (*base.read, HEADER_ROOT, headers, *toolchain.extra_read_paths)
    return Sandbox(read=read, write=base.write, execute=base.execute)


def programs_sandbox(programs: tuple[Path, ...], *folders: Path) -> Sandbox:
    """Return the sandbox of compilers alone: their programs, libraries and headers.

    A driver that is a script may start the programs that it names, and the machine's basic
    utilities.
    """
    executables = tuple(
        dict.fromkeys(path for program in programs for path in _resolve_program(program))
    )
    ziglang = _ziglang_folder()
    bundled = tuple(path for path in executables if ziglang in path.parents)
    machine_programs = tuple(path for path in executables if path not in bundled)
    read = (ziglang / "lib",) if ziglang is not None and bundled else ()
    if not machine_programs:  # it needs nothing of the machine
        return Sandbox(read=read, write=folders, execute=executables)
    install_folders = tuple(path.parent.parent for path in machine_programs)
    compiler_folders = (
        install_folder / name
        for install_folder in install_folders
        if install_folder not in _SHARED_PREFIXES
        for name in ("bin", "lib")
    )
    utilities = _UTILITY_FOLDERS if any(map(_is_script, machine_programs)) else ()
    return Sandbox(
        read=read,
        write=folders,
        execute=(*executables, *compiler_folders, *SYSTEM_LIBRARIES, *utilities),
    )


def _resolve_program(program: Path) -> tuple[Path, ...]:
    """Return the program, its link target, and for a script the full paths that it names."""
    real = program.resolve()
    named_files: tuple[Path, ...] = ()
    if _is_script(real):
        words = real.read_bytes()[:_MAX_SCRIPT_BYTES].decode(errors="replace").split()
        paths = (Path(word.strip("'\"")) for word in words if word.strip("'\"").startswith("/"))
        named_files = tuple(path for path in paths if path.is_file())
    return (program, real, *named_files)


def _is_script(program: Path) -> bool:
    try:
        with program.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


@cache
def _ziglang_folder() -> Path | None:
    """Return the folder of the bundled compiler."""
    spec = importlib.util.find_spec("ziglang")
    folders = spec.submodule_search_locations if spec is not None else None
    return Path(folders[0]) if folders else None
