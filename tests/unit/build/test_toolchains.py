"""Compilers are found where the caller says, described by what they print, and never trusted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scheduler import targets
from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.model import AbsentToolchain, Build, Toolchain
from scheduler.build.toolchains import Search, bundled_clang, clang_compilers, pick_toolchain
from scheduler.errors import UserError
from scheduler.targets import emulation, generations
from tests.unit.build.sources import ADD

AMD_VERSION = "AMD clang version 19.0.0git (roc-6.4.0 25133 c7fe45cf4b819c5991fe208aaa96edf)"


def driver(folder: Path, name: str, prints: str) -> Path:
    """A program that prints a version; ``$$`` in it is the number of its process."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\ncat <<END\n{prints}\nEND\n")
    path.chmod(0o755)
    return path


def found(search: Search, name: str) -> Toolchain | AbsentToolchain:
    return next(one for one in clang_compilers(search) if one.name == name)


def present(one: Toolchain | AbsentToolchain) -> Toolchain:
    assert isinstance(one, Toolchain), one
    return one


def reason(one: Toolchain | AbsentToolchain) -> str:
    assert isinstance(one, AbsentToolchain), one
    return one.reason


def test_nothing_but_the_bundled_compiler() -> None:
    rocm, own, system = clang_compilers(Search())
    assert reason(rocm) == "no amdclang++ in PATH"
    assert reason(system) == "no clang++ in PATH"
    assert present(own).version == "clang 22.1.8"
    for target in (*generations.AMD_TARGETS, *emulation.EMULATIONS):
        assert pick_toolchain((rocm, own, system), target) == own


@pytest.mark.parametrize("folder", ["llvm/bin", "lib/llvm/bin", "bin"])
def test_rocm_is_found_and_preferred_for_gpus(folder: str, tmp_path: Path) -> None:
    rocm_path = tmp_path / "rocm"
    driver(rocm_path / folder, "amdclang++", AMD_VERSION)
    driver(rocm_path / folder, "ld.lld", "LLD 19")
    everything = clang_compilers(Search(rocm_path=rocm_path))
    rocm = present(everything[0])
    assert rocm.version == AMD_VERSION
    assert rocm.clang == (str(rocm_path / folder / "amdclang++"),)
    assert rocm.linker == (str(rocm_path / folder / "ld.lld"),)
    assert pick_toolchain(everything, targets.find("gfx942")) == rocm
    assert pick_toolchain(everything, targets.find("cpu")).name == "bundled"


def test_rocm_is_found_in_path(tmp_path: Path) -> None:
    driver(tmp_path / "bin", "amdclang++", AMD_VERSION)
    driver(tmp_path / "other", "ld.lld", "LLD 19")
    search = Search(path=os.pathsep.join([str(tmp_path / "bin"), str(tmp_path / "other")]))
    assert present(found(search, "rocm")).linker == (str(tmp_path / "other" / "ld.lld"),)


@pytest.mark.parametrize(
    ("prints", "linker", "why"),
    [
        ("gcc (Debian 12.2.0) 12.2.0", True, "the output is not that of clang"),
        (AMD_VERSION, False, "has no ld.lld"),
    ],
)
def test_a_rocm_that_cannot_serve_says_why(
    prints: str, linker: bool, why: str, tmp_path: Path
) -> None:
    driver(tmp_path / "bin", "amdclang++", prints)
    if linker:
        driver(tmp_path / "bin", "ld.lld", "LLD 19")
    assert why in reason(found(Search(rocm_path=tmp_path), "rocm"))


def test_a_driver_that_fails_or_cannot_run_is_absent(tmp_path: Path) -> None:
    path = driver(tmp_path / "bin", "amdclang++", AMD_VERSION)
    driver(tmp_path / "bin", "ld.lld", "LLD 19")
    path.write_text("#!/bin/sh\nexit 3\n")
    assert "exit status 3" in reason(found(Search(rocm_path=tmp_path), "rocm"))
    path.write_text("#!/nowhere/sh\n")
    assert "cannot be run" in reason(found(Search(rocm_path=tmp_path), "rocm"))


@pytest.mark.parametrize("has_target", [True, False])
def test_a_system_clang_needs_the_amdgpu_target(has_target: bool, tmp_path: Path) -> None:
    prints = "Debian clang version 19.1.7 (3)\n" + ("amdgcn - AMD GCN" if has_target else "x86")
    driver(tmp_path, "clang++", prints)
    driver(tmp_path, "ld.lld", "LLD 19")
    one = found(Search(path=str(tmp_path)), "system")
    if has_target:
        assert present(one).version == "Debian clang version 19.1.7 (3)"
    else:
        assert "without the AMDGPU target" in reason(one)


def test_a_version_is_asked_for_once_until_the_driver_changes(
    tmp_path: Path, cache: CodeCache
) -> None:
    path = driver(tmp_path / "bin", "amdclang++", f"{AMD_VERSION} run $$")
    driver(tmp_path / "bin", "ld.lld", "LLD 19")
    search = Search(rocm_path=tmp_path, cache=cache)
    first = present(found(search, "rocm"))
    assert present(found(search, "rocm")) == first
    path.write_text(path.read_text().replace("19.0.0", "19.1.0"))
    os.utime(path, ns=(1, 1))
    other = present(found(search, "rocm"))
    assert "19.1.0" in other.version
    assert first.version.partition(" run ")[2] != other.version.partition(" run ")[2]
    assert present(found(search, "rocm")) == other


def test_an_installed_clang_builds_what_the_bundled_one_builds(
    tmp_path: Path, cache: CodeCache
) -> None:
    """The same compiler behind the names of an installation, which finds its own headers."""
    own = bundled_clang(cache)
    headers = f"-Xclang -internal-isystem -Xclang {own.builtin_headers}"
    for name, command in (("clang++", f"clang {headers}"), ("ld.lld", "ld.lld")):
        driver(tmp_path, name, "")
        (tmp_path / name).write_text(
            f"#!/bin/sh\ncase $1 in --*) exec {own.clang[0]} clang $1; esac\n"
            f'exec {own.clang[0]} {command} "$@"\n'
        )
    system = present(found(Search(path=str(tmp_path), cache=cache), "system"))
    assert system.version.endswith("22.1.8")
    target = targets.find("gfx942")
    one = build(ADD, "add_one", target, own, cache)
    other = build(ADD, "add_one", target, system, cache)
    assert isinstance(one, Build)
    assert isinstance(other, Build), other
    assert not other.cached
    for file in ("kernel.s", "kernel.hsaco", "kernel.so"):
        assert (one.directory / file).read_bytes() == (other.directory / file).read_bytes()


def test_two_installations_have_different_digests_and_the_bundled_one_is_the_same_anywhere(
    tmp_path: Path,
) -> None:
    digests = set()
    for name in ("one", "two"):
        driver(tmp_path / name / "bin", "amdclang++", AMD_VERSION)
        driver(tmp_path / name / "bin", "ld.lld", "LLD 19")
        digests.add(present(found(Search(rocm_path=tmp_path / name), "rocm")).path_digest)
    assert len(digests) == 2
    assert bundled_clang().path_digest == bundled_clang(CodeCache(tmp_path / "cache")).path_digest


def test_without_any_compiler_the_reasons_are_reported() -> None:
    absent = (AbsentToolchain("rocm", "no amdclang++ in PATH"),)
    with pytest.raises(UserError, match=r"gfx942 \(rocm: no amdclang\+\+ in PATH\)"):
        pick_toolchain(absent, targets.find("gfx942"))
