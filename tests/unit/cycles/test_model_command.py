"""``python -m scheduler model``: a code object with its launch, a listing, a bundle's kernels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scheduler import pipeline, targets
from scheduler.build.cache import CodeCache
from scheduler.build.model import Toolchain
from scheduler.bundle.writer import write
from scheduler.commands.main import main
from scheduler.cycles.report_json import from_json
from scheduler.errors import UserError
from scheduler.isa.rocm.objects import disassembler
from tests.support.families import product, unary
from tests.support.kernels_of_others import DATA

GEMM = DATA / "gemm-column-major-b-gfx942.hsaco"


@pytest.fixture(scope="module")
def bundle(
    cache: CodeCache, toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """One pointwise kernel, of a size that is bound."""
    target = targets.find("gfx942")
    made = pipeline.generate(unary("aten.tanh.default", dynamic=True), [target])
    builds = pipeline.build_kernels(made.kernels, [target], lambda *_: toolchain, cache)
    out = tmp_path_factory.mktemp("bundles") / "tanh"
    write(out, made.schedule, made.manifest(), made.kernels, builds)
    return out


def small(tmp_path: Path) -> Path:
    """The launch of the product, with a sum of 256."""
    data = json.loads(GEMM.with_suffix(".json").read_text())
    data["arguments"][5] = data["sizes"]["K"] = 256
    file = tmp_path / "launch.json"
    file.write_text(json.dumps(data))
    return file


@pytest.mark.full
def test_a_kernel_of_others_says_its_time_pipes_and_waits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("elftools")
    try:
        disassembler.require()
    except UserError as missing:
        pytest.skip(str(missing))
    given = ["model", str(GEMM), "--target", "gfx942", "--launch", str(small(tmp_path))]
    assert main(given) == 0
    text = capsys.readouterr().out
    assert text.startswith("gemm  (MI300X, M=4096, N=4096, K=256)\n  modelled ")
    assert "loop in lines 32 to 35: 3 iterations" in text
    assert "% busy" in text
    assert "line 33: s_waitcnt" in text
    assert "do not know" not in text
    assert main([*given, "--board", "mi300", "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)["modelled"]
    assert from_json(report).board == "MI300X"
    assert from_json(report).sizes == {"M": 4096, "N": 4096, "K": 256}


def test_kernels_of_a_bundle_are_modelled_at_the_sizes_that_are_bound(
    bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times = []
    for size in (1 << 20, 1 << 24):
        given = ["model", str(bundle), "--target", "gfx942", "--bind", f"s0={size}", "--json"]
        assert main(given) == 0
        (report,) = map(from_json, json.loads(capsys.readouterr().out)["modelled"])
        assert report.sizes == {"s0": size}
        assert report.unknown == {}
        times.append(report.time_us.mid)
    assert times[1] > 4 * times[0]


def test_mistakes_are_one_line(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listing = str(next(bundle.glob("kernels/*/gfx942/kernel.s")))
    launch = tmp_path / "l.json"
    launch.write_text('{"grid": [1], "block": [64], "arguments": [1]}')
    for given, says in (
        ([listing, "--target", "gfx942"], "--launch: required for a code object or a listing"),
        ([str(bundle), "--target", "gfx950"], "the bundle was not built for gfx950"),
        ([str(bundle), "--target", "sm_90"], "sm_90"),
        ([str(bundle), "--target", "gfx942", "--launch", str(launch)], "not allowed with a bundle"),
        ([str(bundle), "--target", "gfx942", "--kernel", "none"], "no kernel none"),
        ([str(bundle), "--target", "gfx942", "--board", "Z"], "unknown board Z for gfx942; known"),
        ([listing, "--target", "gfx942", "--launch", str(launch)], "the kernel takes"),
        ([listing, "--target", "gfx942", "--launch", "absent.json"], "absent.json: No such file"),
        (["absent.s", "--target", "gfx942", "--launch", str(launch)], "absent.s: No such file"),
    ):
        assert main(["model", *given]) == 2, says
        errors = capsys.readouterr().err
        assert says in errors
        assert len(errors.splitlines()) == 1


@pytest.mark.full
def test_a_kernel_that_needs_workspace_is_modelled(
    cache: CodeCache, toolchain: Toolchain, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Its bytes depend on the kernel's own arguments, which have other names than the sizes.
    target = targets.find("gfx942")
    made = pipeline.generate(product(16, 512, 16384), [target])
    assert any(not one.workspace_bytes.is_zero for one in made.kernels)
    builds = pipeline.build_kernels(made.kernels, [target], lambda *_: toolchain, cache)
    write(tmp_path / "product", made.schedule, made.manifest(), made.kernels, builds)
    assert main(["model", str(tmp_path / "product"), "--target", "gfx942", "--json"]) == 0
    (report,) = map(from_json, json.loads(capsys.readouterr().out)["modelled"])
    assert len(report.launches) == 2
    assert report.unknown == {}
