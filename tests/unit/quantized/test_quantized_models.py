"""Models quantized by torchao (``make.py`` made the files), as exported and as decomposed: right by
the reference and by their kernels, and dequantized within the products that read the weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler import pipeline
from scheduler.benchmark.verification import verify
from scheduler.fusion.nodes import Schedule
from scheduler.ir.graph import Graph
from scheduler.ir.operations import GroupKind
from scheduler.reference import run
from tests.support.exported_kernels import bundle_of, outputs_of

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in HERE.glob("*.pt2"))
EACH = pytest.mark.parametrize("name", NAMES)
# Of products of whole numbers: they are sums, with the scales and what follows in the same kernel.
WHOLE = ["int8_dynamic_activations", "int8_dynamic_activations_core"]


def model(name: str) -> tuple[Graph, dict[str, Any], Any]:
    """The graph, its inputs as the reference takes them, and what torch gave."""
    graph = pipeline.load(HERE / f"{name}.pt2")
    with np.load(HERE / f"{name}.npz") as arrays:
        values = {
            given.name: arrays[given.name].astype(graph.tensors[given.name].dtype.reference_numpy)
            for given in graph.inputs
        }
        return graph, values, arrays["expected"]


def assert_close(got: Any, expected: Any, name: str) -> None:
    """Where activations are rounded to whole numbers, one that lies halfway may go either way."""
    off = np.abs(got - expected) / np.abs(expected).max()
    assert np.median(off) < 1e-6
    assert off.max() < (1e-2 if "dynamic" in name else 1e-5)


def schedule(graph: Graph) -> Schedule:
    return pipeline.schedule(pipeline.lower(graph))


@EACH
def test_the_reference_gives_what_torch_gives(name: str) -> None:
    graph, values, expected = model(name)
    (got,) = run(graph, values, {}).values()
    assert_close(got, expected, name)


@pytest.mark.long(but=3)
@pytest.mark.full(but=["float8_weight_only"])
@EACH
def test_kernels_give_what_torch_gives(name: str) -> None:
    graph, values, expected = model(name)
    (got,) = outputs_of(graph, values).values()
    assert_close(got, expected, name)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in WHOLE])
def test_weights_are_dequantized_where_a_product_reads_them(name: str) -> None:
    nodes = schedule(model(name)[0]).nodes
    kinds = [node.kind for node in nodes]
    assert GroupKind.EXTERN not in kinds
    products = [node for node in nodes if node.kind is GroupKind.GEMM]
    assert len(products) == 2
    # Beside them at most the activations' scales: no kernel writes a weight.
    assert set(kinds) <= {GroupKind.GEMM, GroupKind.REDUCTION}
    weights = {given.name for given in model(name)[0].inputs if "weight" in given.source_name}
    assert all(weights & set(node.reads) for node in products)


@pytest.mark.parametrize("name", WHOLE)
def test_products_of_whole_numbers_are_kernels(name: str) -> None:
    kinds = {node.kind for node in schedule(model(name)[0]).nodes}
    assert GroupKind.EXTERN not in kinds


def test_the_tensors_inside_a_quantized_parameter_are_inputs() -> None:
    graph, _, _ = model("int4_weight_only")
    sources = {given.source_name for given in graph.inputs}
    inside = {f"first.weight.{part}" for part in ("qdata", "scale", "zero_point")}
    assert inside < sources
    assert "first.weight" not in sources


@pytest.mark.full
@pytest.mark.parametrize("name", ["int4_weight_only", "int8_dynamic_activations"])
def test_a_bundle_of_one_is_verified(name: str, tmp_path: Path) -> None:
    findings = verify(bundle_of(model(name)[0], tmp_path / "bundle"), "cpu", {})
    assert [finding for finding in findings if not finding.passed] == []
