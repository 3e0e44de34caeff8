"""Which language serves on NVIDIA's GPUs where nothing was measured, and any is allowed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scheduler import pipeline
from scheduler.build.model import Toolchain
from scheduler.build.toolchains import Search, find_target_toolchains
from scheduler.codegen.languages import language_of
from scheduler.commands.main import main
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.targets import find
from tests.support.caches import KEPT
from tests.support.exported import Json, Model, write
from tests.support.families import attention, convolution, linear, unary
from tests.support.narrow import narrow_product

CUTEDSL = "CuteDSL"
F16 = 6  # torch's number of it in an export


def languages(plan: Schedule, *targets: str, any_language: bool = True) -> list[str]:
    """Of each kernel of the plan."""
    made = pipeline.generate(plan, [find(one) for one in targets], any_language=any_language)
    return [language_of(kernel.source_file) for kernel in made.kernels]


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (linear(4096, 768, 768), CUTEDSL),
        (linear(65, 768, 768), CUTEDSL),
        (linear(64, 768, 768), "HIP"),
        (attention(1, 2, 256, 64), CUTEDSL),
        (attention(1, 2, 4096, 64, queries=1), CUTEDSL),
        (convolution(2, 64, 14), CUTEDSL),
        (unary("aten.gelu.default"), "HIP"),
        (unary("aten.softmax.int", -1), "HIP"),
        # What CuteDSL's templates do not serve.
        (narrow_product(4096, 768, 768, DType.I8), "HIP"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_the_faster_language_serves_where_any_is_allowed(plan: Schedule, expected: str) -> None:
    assert languages(plan, "sm_90") == [expected]
    assert languages(plan, "sm_90", any_language=False) == ["HIP"]


@pytest.mark.parametrize("targets", [("sm_80",), ("sm_90", "sm_100"), ("gfx942",)], ids=str)
def test_what_other_targets_cannot_run_does_not_serve(targets: tuple[str, ...]) -> None:
    assert languages(linear(4096, 768, 768), *targets) == ["HIP"]


@pytest.mark.full
def test_the_command_compiles_each_kernel_in_its_language(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = find_target_toolchains(find("sm_90"), Search(cache=KEPT))
    if not any(isinstance(one, Toolchain) and one.name == "cutedsl" for one in known):
        pytest.skip("nothing here builds kernels in CuteDSL")
    out, model = tmp_path / "bundle", tmp_path / "model.pt2"
    write(model, product_and_softmax())
    options = ["--target", "sm_90", "--cache", str(KEPT.root), "--out", str(out), "--json"]
    assert main(["compile", str(model), "--language", "any", *options]) == 0
    assert json.loads(capsys.readouterr().out)["failures"] == []
    kernels = json.loads((out / "manifest.json").read_text())["kernels"]
    assert sorted(Path(one["source"]).name for one in kernels.values()) == [
        "source.hip",
        "source.py",
    ]


def product_and_softmax() -> Json:
    """softmax(linear(x[128, 64], w[64, 64], b[64]), -1) of f16."""
    model = Model(x=(128, 64), w=(64, 64), b=(64,))
    product = model.node("linear.default", (128, 64), "x", "w", "b")
    document = model.document(model.node("softmax.int", (128, 64), product, -1))
    for meta in document["graph_module"]["graph"]["tensor_values"].values():
        meta["dtype"] = F16
    return document
