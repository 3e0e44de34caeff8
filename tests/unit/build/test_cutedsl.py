"""CuteDSL sources are built without a GPU, behind the fence, to the same bytes everywhere."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

import pytest

from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.cutedsl.toolchains import RUNTIME, CuteDSLToolchain
from scheduler.build.elf import dynamic_symbols
from scheduler.build.model import Build, Toolchain
from scheduler.build.recipe import can_build, library_of, recipe_of
from scheduler.build.toolchains import Search, find_target_toolchains, pick_toolchain
from scheduler.codegen.languages import CUTEDSL_SOURCE
from scheduler.errors import Rejected, UserError
from scheduler.isa.reader import reader_of
from scheduler.runtime import cuda
from scheduler.runtime.cuda import open_library
from scheduler.runtime.device import DeviceError
from scheduler.runtime.library import ExportedKernel, Library
from scheduler.sandbox.process import Limits
from scheduler.targets import find
from tests.support.cutedsl_sources import ADD, TWO, named

SM_90 = find("sm_90")


@pytest.fixture
def toolchain() -> Toolchain:
    return pick_toolchain(find_target_toolchains(SM_90, Search()), SM_90, CUTEDSL_SOURCE)


def built(source: str, toolchain: Toolchain, cache: CodeCache) -> Build | Rejected:
    return build(named(source, "go"), "go", SM_90, toolchain, cache, source_file=CUTEDSL_SOURCE)


@pytest.mark.full
def test_a_source_becomes_a_library_with_its_listing_and_resources(
    toolchain: Toolchain, shared_cache: CodeCache
) -> None:
    made = built(ADD, toolchain, shared_cache)
    assert isinstance(made, Build), made
    library = library_of(made)
    symbols = dynamic_symbols(library.read_bytes())
    assert symbols.defined == {"go"}, "nothing else of it can meet another library's"
    assert all(re.fullmatch(r"_cu\w+", name) for name in symbols.undefined)
    assert RUNTIME.encode() in library.read_bytes(), "the loader is told what it needs"
    assert (made.directory / "kernel.cubin").read_bytes()[:4] == b"\x7fELF"
    ptx = (made.directory / "kernel.ptx").read_text()
    assert ".target sm_90a" in ptx and ".entry go_kernel_0(" in ptx
    (name, facts), *others = made.resources.items()
    assert (name, others) == ("go_kernel_0", [])
    assert facts["threads"] == 256 and 8 <= facts["registers"] <= 32
    assert (facts["shared_bytes"], facts["spill_store_bytes"]) == (0, 0)
    assert facts["occupancy_warps_per_sm"] == 64


def test_instructions_belong_to_lines_of_the_source(
    toolchain: Toolchain, shared_cache: CodeCache
) -> None:
    made = built(ADD, toolchain, shared_cache)
    assert isinstance(made, Build), made
    listing = (made.directory / "kernel.s").read_text()
    (function,) = reader_of(SM_90).parse(listing).functions
    lines = named(ADD, "go").splitlines()
    adding = 1 + next(n for n, line in enumerate(lines) if "x[i] + y[i]" in line)
    of_line = [one.mnemonic for one in function.instructions if one.source_line == adding]
    assert "FADD" in of_line
    assert sum(mnemonic.startswith("LDG") for mnemonic in of_line) == 2
    assert "nvdisasm warning" not in listing


@pytest.mark.full
def test_two_kernels_and_the_shared_memory_that_a_launch_asks_for(
    toolchain: Toolchain, shared_cache: CodeCache
) -> None:
    made = built(TWO, toolchain, shared_cache)
    assert isinstance(made, Build), made
    assert set(made.resources) == {"go_first_0", "go_second_1"}
    assert made.resources["go_first_0"]["shared_bytes"] == 512
    assert made.resources["go_second_1"]["shared_bytes"] == 0


@pytest.mark.full
def test_a_kernel_that_spills_has_its_resources_too(
    toolchain: Toolchain, shared_cache: CodeCache
) -> None:
    """The compiler words that as a remark of its own."""
    keeps = (
        "values = [x[i + j] for j in range(120)]\n"
        "        total = values[0]\n"
        "        for j in cutlass.range_constexpr(1, 120):\n"
        "            total += values[j]\n"
        "        for j in cutlass.range_constexpr(120):\n"
        "            out[i + j] = values[j] * total"
    )
    source = ADD.replace("out[i] = x[i] + y[i]", keeps).replace("256", "1024")
    made = built(source, toolchain, shared_cache)
    assert isinstance(made, Build), made
    facts = made.resources["go_kernel_0"]
    assert (facts["threads"], facts["registers"]) == (1024, 64)
    assert facts["spill_store_bytes"] > 0 and facts["spill_load_bytes"] > 0


@pytest.mark.long
def test_equal_sources_give_equal_bytes_in_any_folder(toolchain: Toolchain, tmp_path: Path) -> None:
    once, again = (
        built(TWO, toolchain, CodeCache(tmp_path / folder)) for folder in ("a", "a longer name")
    )
    assert isinstance(once, Build) and isinstance(again, Build)
    assert not again.cached
    for file in recipe_of(SM_90, CUTEDSL_SOURCE).files:
        assert (once.directory / file).read_bytes() == (again.directory / file).read_bytes(), file


@pytest.mark.long(but=3)
@pytest.mark.full
@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("x[i] + y[i]", "x[i].nothing", r"line 19: AttributeError: .*nothing"),
        ("x[i] + y[i]", "x[i] +", r"line 19: SyntaxError"),
        ('POINTS = "n"\n', "", "the source has no POINTS"),
        ('POINTS = "n"', 'POINTS = "n; f()"', "not an expression of the sizes"),
        ('"x": "n", ', "", "ELEMENTS and the pointers differ in x"),
        ("import cutlass\n", "import cutlass\nopen('/etc/passwd')\n", "Permission denied"),
    ],
)
def test_a_source_that_does_not_compile_is_rejected_at_its_line(
    old: str, new: str, reason: str, toolchain: Toolchain, shared_cache: CodeCache
) -> None:
    assert old in ADD
    made = built(ADD.replace(old, new, 1), toolchain, shared_cache)
    assert isinstance(made, Rejected)
    assert re.search(reason, made.reason), made


@pytest.mark.full
def test_a_source_that_takes_too_long_is_stopped(toolchain: Toolchain, cache: CodeCache) -> None:
    endless = ADD.replace("import cutlass\n", "while True:\n    pass\n", 1)
    made = build(
        named(endless, "go"), "go", SM_90, toolchain, cache,
        limits=Limits(seconds=2.0), source_file=CUTEDSL_SOURCE,
    )  # fmt: skip
    assert isinstance(made, Rejected)
    assert made.reason == "the compiler was stopped after 2 s"


def test_each_compiler_builds_sources_of_its_own_language() -> None:
    found = find_target_toolchains(SM_90, Search())
    assert isinstance(pick_toolchain(found, SM_90, CUTEDSL_SOURCE), CuteDSLToolchain)
    assert not isinstance(pick_toolchain(found, SM_90), CuteDSLToolchain)
    assert can_build(SM_90, CUTEDSL_SOURCE) and not can_build(find("gfx942"), CUTEDSL_SOURCE)
    with pytest.raises(UserError, match=r"source\.py cannot be built for gfx942"):
        recipe_of(find("gfx942"), CUTEDSL_SOURCE)


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = metadata.version

    def version(name: str) -> str:
        if name == "nvidia-cutlass-dsl":
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "version", version)
    with pytest.raises(UserError, match=r"is not installed: run pip install 'kiln\[cutedsl\]'"):
        pick_toolchain(find_target_toolchains(SM_90, Search()), SM_90, CUTEDSL_SOURCE)
    assert pick_toolchain(find_target_toolchains(SM_90, Search()), SM_90)


def test_its_library_opens_with_the_packages_runtime_and_checks_what_it_is_given(
    toolchain: Toolchain, shared_cache: CodeCache
) -> None:
    """All that needs no GPU: the workspace's bytes, nothing to do, pointers that are none."""
    made = built(TWO, toolchain, shared_cache)
    assert isinstance(made, Build), made
    opened = open_library(library_of(made))
    status: list[int] = []
    go = ExportedKernel(opened.function("go"), ["ptr", "ptr", "i32"], 0, status.append)
    assert go.workspace_bytes([0, 0, 1000]) == 4000
    for args in ([0, 0, 0], [0, 256, 8], [256, 256 + 4, 8], [256, 256, 8]):
        go(args)
    assert status == [0, 0, 1, 1, 1], "the last of them lacks its workspace"


def test_a_library_without_that_runtime_says_what_to_install(
    toolchain: Toolchain, shared_cache: CodeCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = built(TWO, toolchain, shared_cache)
    assert isinstance(made, Build), made
    reason = f"{RUNTIME}: cannot open shared object file"

    def lacking(path: Path, status: str) -> Library:
        raise DeviceError(status, reason)

    monkeypatch.setattr(cuda, "Library", lacking)
    monkeypatch.setattr(cuda, "runtime_library", lambda: None)
    with pytest.raises(DeviceError, match=r"needs libcute_dsl_runtime\.so: .*kiln\[cutedsl\]"):
        open_library(library_of(made))
