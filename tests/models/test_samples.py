"""The sample models, whole: no extern, valid code for every GPU, right results on emulation."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from scheduler import pipeline, samples
from scheduler.benchmark.verification import verify
from scheduler.build.cache import CodeCache
from scheduler.build.elf import dynamic_symbols
from scheduler.build.model import Build
from scheduler.build.toolchains import bundled
from scheduler.bundle import reader, writer
from scheduler.ir.bindings import trial_bindings
from scheduler.targets import find

# EF_AMDGPU_MACH of LLVM's AMDGPU usage guide: what a loader checks before it takes the code.
MACHINES = {"gfx90a": 0x3F, "gfx942": 0x4C, "gfx950": 0x4F, "gfx1100": 0x41, "gfx1201": 0x4E}
EM_AMDGPU = 224
VERIFIED = ("bert_2layer", "gpt2_2layer", "llama_2layer", "resnet_small", "vit_2layer")
# Their whole graphs take the emulation minutes; tests/benchmarks/large_models.py runs them.
COMPILED_ONLY = ("gpt2_124m", "llama3_8b_1layer")


def compiled(model: str, targets: list[str], cache: CodeCache, out: Path) -> reader.Bundle:
    """The model's bundle for these targets."""
    plan = pipeline.schedule(pipeline.lower(pipeline.load(samples.path(model))))
    wanted = [find(name) for name in targets]
    generated = pipeline.generate(plan, wanted)
    toolchain = bundled(cache)
    results = pipeline.build_kernels(generated.kernels, wanted, lambda *_: toolchain, cache)
    builds = {key: one for key, one in results.items() if isinstance(one, Build)}
    missing = {key: one for key, one in results.items() if key not in builds}
    assert not missing, missing
    writer.write(out, plan, generated.manifest(), generated.kernels, builds)
    return reader.read(out)


def assert_valid_code(bundle: reader.Bundle) -> None:
    """Every kernel has, for every GPU, a code object of that GPU with the functions launched."""
    for name, kernel in bundle.manifest.kernels.items():
        for target, machine in MACHINES.items():
            code = (bundle.folder / "kernels" / name / target / "kernel.hsaco").read_bytes()
            assert code[:4] == b"\x7fELF"
            assert struct.unpack_from("<H", code, 18)[0] == EM_AMDGPU
            assert struct.unpack_from("<I", code, 48)[0] & 0xFF == machine
            for launch in kernel.launches:
                assert f"{launch.function}.kd".encode() + b"\0" in code, (name, target)
            library = bundle.library(name, target).read_bytes()
            assert kernel.symbol in dynamic_symbols(library).defined


@pytest.mark.parametrize("model", VERIFIED)
def test_a_model_compiles_for_every_gpu_and_its_kernels_are_right(
    model: str, cache: CodeCache, tmp_path: Path
) -> None:
    bundle = compiled(model, [*MACHINES, "cpu"], cache, tmp_path / model)
    assert not bundle.manifest.externs
    assert_valid_code(bundle)
    for bindings in trial_bindings(bundle.manifest.symbols):
        findings = verify(bundle, "cpu", bindings)
        assert all(finding.passed for finding in findings), findings
        assert findings[-1].name == "whole graph"


@pytest.mark.parametrize("model", COMPILED_ONLY)
def test_a_large_model_compiles_for_every_gpu(model: str, cache: CodeCache, tmp_path: Path) -> None:
    bundle = compiled(model, list(MACHINES), cache, tmp_path / model)
    assert not bundle.manifest.externs
    assert_valid_code(bundle)


@pytest.mark.parametrize("target", ["cpu-gfx1100", "cpu-gfx1201", "cpu-gfx1030", "cpu-gfx950"])
def test_other_waves_and_matrix_instructions_give_the_same_results(
    target: str, cache: CodeCache, tmp_path: Path
) -> None:
    bundle = compiled("gpt2_2layer", [target], cache, tmp_path / target)
    findings = verify(bundle, target, {"s70": 19})
    assert all(finding.passed for finding in findings), findings
