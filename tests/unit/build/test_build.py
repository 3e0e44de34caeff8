"""One source becomes a listing, a code object and a library, the same everywhere, or a reason."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from scheduler import targets
from scheduler.build import cache as code_cache
from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.elf import dynamic_symbols
from scheduler.build.flags import Flags, parse_flags
from scheduler.build.model import Build, Toolchain
from scheduler.build.recipe import recipe_of
from scheduler.build.rocm import offload_bundle
from scheduler.errors import Rejected, Stage, UserError
from scheduler.sandbox.process import Limits
from scheduler.targets import generations
from tests.support.caches import empty_cache
from tests.unit.build.sources import ADD, GEMM

GPUS = [gpu.name for gpu in generations.AMD_TARGETS]


def made(result: Build | Rejected) -> Build:
    assert isinstance(result, Build), f"{result.reason}\n{result.detail}"
    return result


def rejection(result: Build | Rejected) -> Rejected:
    assert isinstance(result, Rejected)
    assert result.stage is Stage.COMPILE
    return result


@pytest.mark.parametrize("name", GPUS)
def test_a_gpu_build_is_one_code_object_in_a_library_that_needs_only_the_hip_runtime(
    name: str, toolchain: Toolchain, cache: CodeCache
) -> None:
    result = made(build(ADD, "add_one", targets.find(name), toolchain, cache))
    code = (result.directory / "kernel.hsaco").read_bytes()
    library = (result.directory / "kernel.so").read_bytes()
    assert result.code_digest == hashlib.sha256(code).hexdigest()
    assert offload_bundle.pack({name: code}) in library
    assert f"-mcpu={name}" not in result.log
    symbols = dynamic_symbols(library)
    assert "add_one" in symbols.defined
    foreign = {each for each in symbols.undefined if not each.startswith(("hip", "__hip"))}
    assert foreign <= {"__cxa_atexit", "__cxa_finalize"}
    assert (result.directory / "kernel.s").read_text().count("s_endpgm") == 1
    (resources,) = result.resources.values()
    assert resources["wavefront"] == targets.find(name).wavefront
    assert 0 < resources["vgpr"] < 32
    assert resources["scratch_bytes"] == 0
    assert resources["code_bytes"] > 40


@pytest.mark.parametrize("name", ["gfx942", "cpu"])
def test_the_same_source_gives_the_same_bytes_in_any_folder(
    name: str, toolchain: Toolchain, tmp_path: Path
) -> None:
    """And no folder of this machine is in them."""
    folders = []
    for where in ("a", "quite/another/and longer one"):
        cache = CodeCache(empty_cache(tmp_path / where))
        folders.append(made(build(ADD, "add_one", targets.find(name), toolchain, cache)).directory)
    names = sorted(path.name for path in folders[0].iterdir() if path.name != "entry.json")
    assert {"kernel.s", "kernel.so"} <= set(names)
    for file in names:
        one, other = ((folder / file).read_bytes() for folder in folders)
        assert one == other, file
        for secret in (str(tmp_path), sys.prefix, str(Path(__file__).parents[3]), "/tmp"):
            assert secret.encode() + b"/" not in one, (file, secret)


def test_the_second_build_compiles_nothing(toolchain: Toolchain, cache: CodeCache) -> None:
    target = targets.find("gfx1100")
    first = made(build(ADD, "add_one", target, toolchain, cache))
    broken = replace(toolchain, clang=("/nowhere/clang",), linker=("/nowhere/ld.lld",))
    second = made(build(ADD, "add_one", target, broken, cache))
    assert not first.cached
    assert second.cached
    assert replace(second, cached=False, toolchain=toolchain) == first
    assert second.to_json() == first.to_json()


@pytest.mark.full(but=["source"])
@pytest.mark.parametrize("changed", ["source", "name", "target", "flags", "version", "driver"])
def test_whatever_decides_the_output_is_in_the_key(
    changed: str, toolchain: Toolchain, cache: CodeCache
) -> None:
    made(build(ADD, "add_one", targets.find("gfx1100"), toolchain, cache))
    source = ADD.replace("1.0f", "2.0f") if changed == "source" else ADD
    name = "add_one" if changed != "name" else "add_two"
    target = targets.find("gfx1201" if changed == "target" else "gfx1100")
    flags = Flags(("-O2",)) if changed == "flags" else Flags()
    if changed == "version":
        toolchain = replace(toolchain, version="clang 99.0.0")
    if changed == "driver":
        toolchain = replace(toolchain, driver_digest="0" * 64)
    result = build(source, name, target, toolchain, cache, flags)
    if changed == "name":
        assert rejection(result).reason == "the source does not export add_two"
    else:
        assert not made(result).cached


def test_an_entry_that_was_damaged_is_built_again(toolchain: Toolchain, cache: CodeCache) -> None:
    target = targets.find("gfx1100")
    first = made(build(ADD, "add_one", target, toolchain, cache))
    for damage in ("kernel.hsaco", "kernel.so", "entry.json"):
        whole = (first.directory / damage).read_bytes()
        (first.directory / damage).write_bytes(whole[:-1])
        again = made(build(ADD, "add_one", target, toolchain, cache))
        assert not again.cached
        if damage != "entry.json":  # that one has the time it took
            assert (again.directory / damage).read_bytes() == whole
    (first.directory / "kernel.s").unlink()
    assert not made(build(ADD, "add_one", target, toolchain, cache)).cached
    assert not list((cache.root / "tmp").iterdir())


def test_an_error_points_at_its_line_and_is_remembered(
    toolchain: Toolchain, cache: CodeCache
) -> None:
    source = ADD.replace("y[i] = x[i]", "y[i] = z[i]")
    target = targets.find("gfx942")
    first = rejection(build(source, "add_one", target, toolchain, cache))
    assert first.reason == "line 5: use of undeclared identifier 'z'"
    errors = [
        each for each in recipe_of(target).diagnostics(first.detail) if each.severity == "error"
    ]
    assert [(each.line, each.column) for each in errors] == [(5, 21)]
    broken = replace(toolchain, clang=("/nowhere/clang",))
    assert build(source, "add_one", target, broken, cache) == first


def test_a_warning_is_kept_once_though_two_passes_give_it(
    toolchain: Toolchain, cache: CodeCache
) -> None:
    source = ADD.replace("int i =", '\n#warning "mind"\nint i =')
    target = targets.find("gfx942")
    result = made(build(source, "add_one", target, toolchain, cache))
    (warning,) = recipe_of(target).diagnostics(result.log)
    assert (warning.severity, warning.line) == ("warning", 5)
    assert "mind" in warning.message


def test_a_function_that_nothing_offers_is_found_before_loading(
    toolchain: Toolchain, cache: CodeCache
) -> None:
    source = 'extern "C" int elsewhere();\n' + ADD.replace("if (n == 0) return 0;", "elsewhere();")
    result = rejection(build(source, "add_one", targets.find("gfx942"), toolchain, cache))
    assert "elsewhere" in result.reason


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (Limits(seconds=0.01), "the compiler was stopped after 0.01 s"),
        (Limits(memory_bytes=64 << 20), r"the compiler was killed by SIG|.* command failed"),
    ],
)
def test_a_compiler_over_its_limits_is_a_loss_that_is_not_remembered(
    limits: Limits, reason: str, toolchain: Toolchain, cache: CodeCache
) -> None:
    target = targets.find("gfx942")
    lost = rejection(build(GEMM, "product", target, toolchain, cache, limits=limits))
    assert re.match(reason, lost.reason)
    assert not made(build(GEMM, "product", target, toolchain, cache)).cached


def test_a_crash_of_the_compiler_is_not_remembered(toolchain: Toolchain, cache: CodeCache) -> None:
    """It may have been for want of memory."""
    source = f"#pragma clang __debug crash\n{ADD}"
    for _ in range(2):
        lost = rejection(build(source, "add_one", targets.find("gfx942"), toolchain, cache))
        assert "command failed" in lost.reason, lost
    assert not any(cache.root.rglob("entry.json"))


def test_a_toolchain_without_a_host_c_library_does_not_build_the_emulation(
    toolchain: Toolchain, cache: CodeCache
) -> None:
    result = build(ADD, "add_one", targets.find("cpu"), replace(toolchain, host=()), cache)
    assert "no C library" in rejection(result).reason


def test_flags_are_a_closed_list() -> None:
    assert parse_flags("-ffast-math").values == ("-O3", "-ffast-math")
    assert parse_flags("-O1 -mcumode").host == ("-O1",)
    for bad in ("-o/etc/passwd", "-fplugin=x.so", "-O3 -include/etc/passwd", "-mllvm=-stats", "-v"):
        with pytest.raises(UserError, match="not allowed"):
            parse_flags(bad)
    with pytest.raises(UserError, match="cannot be read"):
        parse_flags("-O3 'x")


def test_cumode_reaches_the_device_code_alone(toolchain: Toolchain, cache: CodeCache) -> None:
    flags = parse_flags("-O2 -mcumode")
    result = made(build(ADD, "add_one", targets.find("gfx1100"), toolchain, cache, flags))
    assert result.flags == ("-O2", "-mcumode")
    listing = (result.directory / "kernel.s").read_text()
    assert ".workgroup_processor_mode: 0" in listing


def test_a_full_cache_says_so(
    toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "mkdir", full)
    with pytest.raises(UserError, match=r"no space left for the code cache in .*: free some"):
        build(ADD, "add_one", targets.find("gfx942"), toolchain, CodeCache(tmp_path))


def test_a_bundle_unpacks_to_what_was_packed() -> None:
    objects = {"gfx942": b"one" * 5000, "gfx1100": b"", "gfx90a:xnack-": b"\0" * 4096}
    packed = offload_bundle.pack(objects)
    assert offload_bundle.unpack(packed) == objects
    for cut in (0, 10, 40, len(packed) - 1):
        with pytest.raises(UserError, match="offload bundle"):
            offload_bundle.unpack(packed[:cut])


def test_the_gemm_uses_matrix_cores_and_spills_nothing(
    toolchain: Toolchain, cache: CodeCache
) -> None:
    for name, instruction in (
        ("gfx90a", "v_mfma_"),
        ("gfx1100", "v_wmma_"),
        ("gfx1151", "v_wmma_"),
        ("gfx1201", "v_wmma_"),
    ):
        result = made(build(GEMM, "product", targets.find(name), toolchain, cache))
        assert instruction in (result.directory / "kernel.s").read_text()
        (resources,) = result.resources.values()
        assert resources["lds_bytes"] > 8192
        assert resources["vgpr_spills"] == resources["sgpr_spills"] == 0


def test_nothing_is_left_of_builds_that_failed(toolchain: Toolchain, cache: CodeCache) -> None:
    build("nonsense", "x", targets.find("gfx942"), toolchain, cache)
    assert not list((cache.root / "tmp").iterdir())
    shutil.rmtree(cache.root)


def test_what_compilers_keep_is_not_used_after_a_reboot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody brought it to the disk. What of other boots is old goes; another host may be alive."""
    boot = tmp_path / "boot_id"
    monkeypatch.setattr(code_cache, "_BOOT_ID", boot)
    cache = CodeCache(tmp_path / "cache")
    folders = []
    for number in range(3):
        boot.write_text(f"boot-{number}\n")
        folders.append(cache.compiler_cache())
        assert cache.compiler_cache() == folders[-1]
        if number == 0:
            os.utime(folders[0], (0, 0))
    assert len(set(folders)) == 3
    assert [folder.is_dir() for folder in folders] == [False, True, True]
    boot.unlink()
    assert cache.compiler_cache().is_dir()
