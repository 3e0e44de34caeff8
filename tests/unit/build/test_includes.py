"""A build is found again while nothing that its source reads has changed, and only then."""

from __future__ import annotations

import re
import shutil
import subprocess
from os.path import normpath
from pathlib import Path

import pytest

from scheduler import targets
from scheduler.build import includes
from scheduler.build.cuda.toolchains import cuda_compilers
from scheduler.build.flags import DEFAULT_FLAGS
from scheduler.build.includes import included_digest, included_headers
from scheduler.build.model import Toolchain
from scheduler.build.recipe import LibraryRecipe, recipe_of
from scheduler.build.sandbox_paths import HEADER_ROOT
from scheduler.build.toolchains import Search
from tests.support.caches import KEPT

FOLDERS = ("amd", "common")
SOURCE = "#include <hip/hip_runtime.h>\n#include <kiln/reduce.h>\n"
COMMON = sorted(path.name for path in (HEADER_ROOT / "common" / "kiln").glob("*.h"))


@pytest.fixture
def headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of our headers, which takes their place."""
    copy = tmp_path / "headers"
    shutil.copytree(HEADER_ROOT, copy)
    monkeypatch.setattr(includes, "HEADER_ROOT", copy)
    return copy


@pytest.mark.full(but=["gfx942"])
@pytest.mark.parametrize("target", ["gfx942", "sm_90", "cpu"])
def test_what_the_preprocessor_reads_is_found(
    target: str, toolchain: Toolchain, tmp_path: Path
) -> None:
    """Of each header what the compiler itself says that it read, and little more."""
    recipe = recipe_of(targets.find(target))
    assert isinstance(recipe, LibraryRecipe)
    for header in COMMON:
        source = f"#include <hip/hip_runtime.h>\n#include <kiln/{header}>\n"
        read = headers_read(source, target, toolchain, tmp_path / header)
        found = {
            file.relative_to(HEADER_ROOT)
            for file in included_headers(source, recipe.header_folders)
        }
        assert Path("common", "kiln", header) in read
        assert read <= found, header
        assert len(found) <= len(read) + 4, header


def test_a_change_of_what_is_included_is_another_digest(headers: Path) -> None:
    before = included_digest(SOURCE, FOLDERS)
    file = headers / "common/kiln/types.h"  # by way of reduce.h
    file.write_text(f"{file.read_text()}// changed\n")
    assert included_digest(SOURCE, FOLDERS) != before


def test_a_header_that_no_source_includes_changes_nothing(headers: Path) -> None:
    before = included_digest(SOURCE, FOLDERS)
    for name in ("common/kiln/sort.h", "cpu/emulation/fiber.h", "nvidia/nvidia/mma.h"):
        (headers / name).write_text("// nothing\n")
    assert included_digest(SOURCE, FOLDERS) == before


@pytest.mark.parametrize(
    "line",
    [
        '#include "include/common/kiln/sort.h"',
        "#define WHICH <kiln/sort.h>\n#include WHICH",
        "#include_next <kiln/sort.h>",
        "#inc\\\nlude <kiln/sort.h>",
        "%:include <kiln/sort.h>",
        "#/**/include <kiln/sort.h>",
        "#import <kiln/sort.h>",
        "#if __has_include(<kiln/sort.h>)\n#endif",
        'asm(".incbin \\"include/common/kiln/sort.h\\"");',
    ],
)
def test_other_ways_to_read_a_header_are_seen(line: str, headers: Path) -> None:
    source = f"{SOURCE}{line}\n"
    before = included_digest(source, FOLDERS)
    (headers / "common/kiln/sort.h").write_text("// nothing\n")
    assert included_digest(source, FOLDERS) != before


def headers_read(source: str, target: str, toolchain: Toolchain, work: Path) -> set[Path]:
    """Those of ours that the preprocessor's output names."""
    recipe = recipe_of(targets.find(target))
    work.mkdir()
    (work / recipe.source_file).write_text(source)
    recipe.prepare(work, toolchain)
    command = recipe.steps(targets.find(target), _for(target, toolchain), DEFAULT_FLAGS, "go")[
        0
    ].command
    options = [word for word in command if word not in ("-S", "-c")]
    options[options.index("-o") + 1] = "preprocessed"
    subprocess.run([*options, "-E"], cwd=work, check=True)
    markers = re.findall(r'^# \d+ "(.+?)"', (work / "preprocessed").read_text(), re.MULTILINE)
    names = {Path(normpath(name)) for name in markers}
    return {name.relative_to("include") for name in names if name.parts[0] == "include"}


def _for(target: str, toolchain: Toolchain) -> Toolchain:
    """The compiler as the target's recipe has it."""
    found = cuda_compilers(Search(cache=KEPT)) if target.startswith("sm_") else [toolchain]
    return next(one for one in found if isinstance(one, Toolchain))
