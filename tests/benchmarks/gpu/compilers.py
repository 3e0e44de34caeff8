"""The C compiler that torch.compile needs: Triton builds a launcher for each kernel with it."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

NONE = (
    "torch.compile is left out: Triton needs a C compiler, and there is no $CC, no gcc, no clang "
    "and no package ziglang here"
)


@dataclass(frozen=True)
class CCompiler:
    """``command`` is what goes into $CC; ``title`` says it to people."""

    command: str
    title: str


def c_compiler(environment: Mapping[str, str], folder: Path) -> CCompiler | None:
    """What $CC names, else gcc or clang in PATH, else Kiln's own bundled compiler through a script
    that is written into ``folder``. None where there is none of them."""
    if named := environment.get("CC"):
        return CCompiler(named, named)
    for name in ("gcc", "clang"):
        if found := shutil.which(name, path=environment.get("PATH", "")):
            return CCompiler(found, found)
    zig = _zig()
    if zig is None:
        return None
    script = folder / "cc"
    script.write_text(f'#!/bin/sh\nexec "{zig}" cc "$@"\n')
    script.chmod(0o755)
    return CCompiler(str(script), "the bundled clang (zig cc)")


def _zig() -> Path | None:
    spec = importlib.util.find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        return None
    zig = Path(spec.submodule_search_locations[0], "zig")
    return zig if zig.is_file() else None
