"""The files that a compiler may use: its own, our headers, and one folder for its output."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

from scheduler.build.model import Toolchain
from scheduler.sandbox import Sandbox
from scheduler.sandbox.model import SYSTEM_LIBRARIES

HEADERS = Path(__file__).parent / "headers"
_SMALL_PROGRAMS = (Path("/bin"), Path("/usr/bin"))
_SHARED_PREFIXES = frozenset(map(Path, ("/", "/usr", "/usr/local", "/opt", "/home", "/root")))
_SCRIPT_BYTES = 1 << 16


def toolchain_sandbox(toolchain: Toolchain, *folders: Path) -> Sandbox:
    """Return the sandbox of a toolchain's programs, working in these folders."""
    programs = dict.fromkeys(map(Path, toolchain.programs))
    headers = Path(toolchain.builtin_headers) if toolchain.builtin_headers else HEADERS
    own = programs_sandbox(tuple(programs), *folders)
    read = (*own.read, HEADERS, headers, *toolchain.extra_read_paths)
    return Sandbox(read=read, write=own.write, execute=own.execute)


def programs_sandbox(programs: tuple[Path, ...], *folders: Path) -> Sandbox:
    """Return the sandbox of compilers alone: their programs, libraries and headers.

    A driver that is a script may start the programs that it names, and the machine's basic
    utilities.
    """
    executables = tuple(
        dict.fromkeys(path for program in programs for path in _resolve_program(program))
    )
    wheel = _ziglang_folder()
    bundled = tuple(path for path in executables if wheel in path.parents)
    others = tuple(path for path in executables if path not in bundled)
    read = (wheel / "lib",) if wheel is not None and bundled else ()
    if not others:  # it needs nothing of the machine
        return Sandbox(read=read, write=folders, execute=executables)
    homes = tuple(path.parent.parent for path in others)
    installed = (
        home / name for home in homes if home not in _SHARED_PREFIXES for name in ("bin", "lib")
    )
    utilities = _SMALL_PROGRAMS if any(map(_is_script, others)) else ()
    return Sandbox(
        read=read,
        write=folders,
        execute=(*executables, *installed, *SYSTEM_LIBRARIES, *utilities),
    )


def _resolve_program(program: Path) -> tuple[Path, ...]:
    """Return the program, its link target, and for a script the full paths that it names."""
    real = program.resolve()
    named: tuple[Path, ...] = ()
    if _is_script(real):
        words = real.read_bytes()[:_SCRIPT_BYTES].decode(errors="replace").split()
        paths = (Path(word.strip("'\"")) for word in words if word.strip("'\"").startswith("/"))
        named = tuple(path for path in paths if path.is_file())
    return (program, real, *named)


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
