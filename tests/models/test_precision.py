"""``--float32-matmul-precision`` from the command line to a verified bundle."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scheduler import pipeline
from scheduler.build.cache import CodeCache
from scheduler.bundle.reader import open_bundle
from scheduler.errors import UserError
from scheduler.ir.graph import MatmulPrecision
from scheduler.ir.serialize import graph_from_json, graph_to_json, with_digest
from scheduler.samples import path
from tests.models.test_command_line import scheduler

MODEL = str(path("resnet_small"))  # convolutions and a product of f32
HIGH = ("--float32-matmul-precision", "high")


def compiled(cache: CodeCache, out: Path, *options: str) -> Path:
    status, _, errors = scheduler(
        *("compile", MODEL, "--target", "cpu", *options),
        *("--cache", str(cache.root), "--out", str(out)),
    )
    assert status == 0, errors
    return out


@pytest.mark.long
def test_high_is_in_the_bundle_and_its_results_are_held_to_it(
    cache: CodeCache, tmp_path: Path
) -> None:
    bundle = compiled(cache, tmp_path / "high", *HIGH)
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert manifest["float32_matmul_precision"] == "high"
    rounded = [name for name, k in manifest["kernels"].items() if "ALLOW_TF32" in k["config"]]
    assert rounded
    for name in rounded:
        text = (bundle / manifest["kernels"][name]["source"]).read_text()
        assert 'float32_matmul_precision "high"' in text
    assert open_bundle(bundle).graph.float32_matmul_precision is MatmulPrecision.HIGH
    status, said, errors = scheduler("verify", str(bundle), "--device", "cpu", "--json")
    assert status == 0, errors
    findings = json.loads(said)["findings"]
    assert any(one["name"] == "whole graph" for one in findings)


@pytest.mark.long
def test_without_it_nothing_says_so(cache: CodeCache, tmp_path: Path) -> None:
    """What is written is what was written before there was the option, and asking for the default
    is asking for nothing."""
    plain = compiled(cache, tmp_path / "plain")
    asked = compiled(cache, tmp_path / "asked", "--float32-matmul-precision", "highest")
    for name in ("manifest.json", "graph.json", "wrapper.py"):
        text = (plain / name).read_text()
        assert text == (asked / name).read_text()
        assert "precision" not in text and "TF32" not in text


def test_another_word_is_a_mistake(tmp_path: Path) -> None:
    status, _, errors = scheduler(
        *("compile", MODEL, "--target", "cpu", "--out", str(tmp_path / "x")),
        *("--float32-matmul-precision", "medium"),
    )
    assert status == 2
    assert "medium" in errors and "highest" in errors


def test_another_graph_by_its_digest_and_the_same_in_json() -> None:
    graph = pipeline.load(Path(MODEL))
    high = pipeline.with_precision(graph, MatmulPrecision.HIGH)
    assert high.digest != graph.digest == with_digest(graph).digest
    assert graph_from_json(graph_to_json(high)) == high
    assert pipeline.with_precision(high, MatmulPrecision.HIGHEST) == graph
    assert pipeline.with_precision(graph, MatmulPrecision.HIGHEST) is graph
    with pytest.raises(UserError, match="'medium' is not a valid MatmulPrecision"):
        graph_from_json(graph_to_json(high) | {"float32_matmul_precision": "medium"})
