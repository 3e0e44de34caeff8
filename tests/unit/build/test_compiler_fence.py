"""A compiler reads its own files and ours, and writes into its own folder: nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scheduler import targets
from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.model import Build, Toolchain
from scheduler.errors import Rejected
from tests.unit.build.sources import ADD

SECRET = "kept_by_somebody_else"

# Ways of a source to a file; FILE is a full path, UP one that climbs out of the folder.
WAYS = {
    "include": '#include "FILE"',
    "angle": "#include <FILE>",
    "relative": '#include "UP"',
    "import": '#import "FILE"',
    "include_next": '#include_next "FILE"',
    "macro": '#define WHERE "FILE"\n#include WHERE',
    "embed": 'static const char kept[] = {\n#embed "FILE"\n, 0};\nstatic_assert(sizeof(kept) > 2);',
    "has_include": '#if __has_include("FILE")\n#error is there\n#endif\nint x = nothing;',
    "incbin": 'asm(".incbin \\"FILE\\"");',
    "assembler": 'asm(".include \\"FILE\\"");',
    "line": '#line 1 "FILE"\nint x = nothing;',
    "library": '#pragma comment(lib, "FILE")\nint x = nothing;',
}
BODY = """
extern "C" __attribute__((visibility("default"))) int f() { return 0; }
"""


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A file that is none of the compiler's business: valid C++ that tells its content."""
    file = tmp_path / "kept"
    file.write_text(f"#error {SECRET}\nint {SECRET};\n")
    return file


@pytest.mark.parametrize("target", ["gfx942", "cpu"])
@pytest.mark.parametrize("way", WAYS)
def test_no_source_sees_a_file_that_is_not_ours(
    way: str, target: str, kept: Path, toolchain: Toolchain, tmp_path: Path
) -> None:
    cache = CodeCache(tmp_path / "cache")
    up = os.path.relpath(kept, cache.root / "tmp" / "folder")
    source = WAYS[way].replace("FILE", str(kept)).replace("UP", up) + BODY
    result = build(source, "f", targets.find(target), toolchain, cache)
    assert isinstance(result, Rejected)
    assert SECRET not in result.reason + result.detail
    assert "is there" not in result.detail


@pytest.mark.parametrize("header", ["stdint.h", "hip/hip_runtime.h", "kiln/math.h"])
def test_our_headers_and_the_compilers_are_found(
    header: str, toolchain: Toolchain, cache: CodeCache
) -> None:
    for target in ("gfx942", "cpu"):
        source = f"#include <{header}>\n{ADD}"
        result = build(source, "add_one", targets.find(target), toolchain, cache)
        assert isinstance(result, Build), result


@pytest.mark.parametrize("header", ["pwd.h", "linux/kvm.h", "python3.11/Python.h"])
def test_headers_of_this_machine_are_not_found(
    header: str, toolchain: Toolchain, cache: CodeCache
) -> None:
    source = f"#include <{header}>\n{BODY}"
    result = build(source, "f", targets.find("gfx942"), toolchain, cache)
    assert isinstance(result, Rejected)
    assert "file not found" in result.reason
