"""The sample models, whole: no extern, valid code for GPUs, right results on emulation."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.benchmark.verification import verify
from scheduler.build.cache import CodeCache
from scheduler.ir.bindings import trial_bindings
from tests.support.whole_models import MACHINES, assert_valid_code, compiled

# One for all GPUs, the others each for two, so that each GPU has models of several kinds: to
# compile all for all takes minutes, and tests/benchmarks/large_models.py (targets) does it.
VERIFIED = {
    "gpt2_2layer": tuple(MACHINES),
    "bert_2layer": ("gfx90a", "gfx1100"),
    "llama_2layer": ("gfx942", "gfx1201"),
    "resnet_small": ("gfx942", "gfx1100"),
    "vit_2layer": ("gfx950", "gfx1201"),
}
# Their whole graphs take the emulation minutes; tests/benchmarks/large_models.py runs them.
COMPILED_ONLY = {"gpt2_124m": ("gfx950",), "llama3_8b_1layer": ("gfx90a",)}


@pytest.mark.long(but=["bert_2layer", "vit_2layer"])
@pytest.mark.full
@pytest.mark.parametrize("model", VERIFIED)
def test_a_model_compiles_for_gpus_and_its_kernels_are_right(
    model: str, cache: CodeCache, tmp_path: Path
) -> None:
    gpus = VERIFIED[model]
    bundle = compiled(model, [*gpus, "cpu"], cache, tmp_path / model)
    assert not bundle.manifest.externs
    assert_valid_code(bundle, gpus)
    for bindings in trial_bindings(bundle.manifest.symbols, bundle.manifest.guards):
        findings = verify(bundle, "cpu", bindings)
        assert all(finding.passed for finding in findings), findings
        assert findings[-1].name == "whole graph"


@pytest.mark.long(but=2)
@pytest.mark.full
@pytest.mark.parametrize("model", COMPILED_ONLY)
def test_a_large_model_compiles(model: str, cache: CodeCache, tmp_path: Path) -> None:
    bundle = compiled(model, COMPILED_ONLY[model], cache, tmp_path / model)
    assert not bundle.manifest.externs
    assert_valid_code(bundle, COMPILED_ONLY[model])


@pytest.mark.long
@pytest.mark.parametrize("target", ["cpu-gfx1100", "cpu-gfx1201", "cpu-gfx1030", "cpu-gfx950"])
def test_other_waves_and_matrix_instructions_give_the_same_results(
    target: str, cache: CodeCache, tmp_path: Path
) -> None:
    bundle = compiled("gpt2_2layer", [target], cache, tmp_path / target)
    findings = verify(bundle, target, {"s70": 19})
    assert all(finding.passed for finding in findings), findings
