"""``rngprims.philox_rand``: the numbers that torch draws on an NVIDIA GPU.

``philox_rand.json`` holds what torch 2.11 drew on an H100, a few elements of each tensor: the
values of ``torch.ops.rngprims.philox_rand(size, torch.tensor(seed), torch.tensor(offset), None,
device=torch.device("cuda"), dtype=…)`` there, as ``float.hex`` of them in float64.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch._prims import rng_prims  # noqa: E402, F401 - registers the op

from scheduler.fusion import schedule  # noqa: E402
from scheduler.ir.graph import Graph  # noqa: E402
from scheduler.ir.operations import Extern  # noqa: E402
from scheduler.ir.random import BLOCKS  # noqa: E402
from scheduler.lowering import lower  # noqa: E402
from scheduler.reference import run  # noqa: E402
from tests.support.exported_kernels import outputs_of  # noqa: E402
from tests.unit.lowering.running import run_schedule  # noqa: E402
from tests.unit.test_random import KNOWN  # noqa: E402
from tests.unit.torch_export import as_module, export  # noqa: E402

CASES = json.loads(Path(__file__).with_name("philox_rand.json").read_text())["cases"]
TYPES = ("float16", "bfloat16", "float32", "float64")


def drawn(size: list[int], dtype: str, folder: Path) -> Graph:
    def f(key: Any, offset: Any) -> Any:
        return torch.ops.rngprims.philox_rand(
            size, key, offset, None, device=torch.device("cpu"), dtype=getattr(torch, dtype)
        )

    return export(as_module(f), (torch.tensor(0), torch.tensor(0)), folder)[1]


def given(graph: Graph, seed: int, offset: int) -> dict[str, Any]:
    names = [one.name for one in graph.inputs]
    return dict(zip(names, (np.int64(seed), np.int64(offset)), strict=True))


def check(graph: Graph, got: Mapping[str, Any], case: Mapping[str, Any]) -> None:
    values, consumed = (got[name] for name in graph.outputs)
    assert int(consumed) == case["consumed"]
    assert list(values.shape) == case["size"]
    flat = np.asarray(values, np.float64).reshape(-1)
    for place, text in case["values"].items():
        assert flat[int(place)] == float.fromhex(text), (case["dtype"], case["seed"], place)


@pytest.mark.long(but=3)
@pytest.mark.full
@pytest.mark.parametrize("dtype", TYPES)
def test_what_torch_drew_on_a_gpu(dtype: str, tmp_path: Path) -> None:
    """Bit by bit: by the reference, by operations and by compiled kernels; tensors within a block,
    over all of the GPU's blocks, and over several rounds of them."""
    graphs: dict[str, Graph] = {}
    mine = [case for case in CASES if case["dtype"] == dtype]
    assert {len(case["size"]) for case in mine} == {1, 3}
    for case in mine:
        key = str(case["size"])
        if key not in graphs:
            (tmp_path / key).mkdir()
            graphs[key] = drawn(case["size"], dtype, tmp_path / key)
        graph = graphs[key]
        values = given(graph, case["seed"], case["offset"])
        check(graph, run(graph, values, {}), case)
        if case["seed"] == -5 or len(graphs) == 1:
            check(graph, outputs_of(graph, values), case)
        if case["seed"] == -5 and case["size"] != [3000000]:
            lowered = lower(graph)
            assert not [op for op in lowered.operations if isinstance(op, Extern)]
            check(graph, run_schedule(schedule(lowered), values, {BLOCKS: 1056}), case)


def test_the_generators_own_known_answer_begins_the_sequence(tmp_path: Path) -> None:
    """Random123's first vector: counter and key 0. Its words are the first numbers of thread 0,
    which takes them a round of the blocks apart."""
    words = [int(word, 16) for word in KNOWN[0][2].split()]
    graph = drawn([3 * 256 + 1], "float32", tmp_path)
    values = given(graph, 0, 0)
    for got in (
        run(graph, values, {BLOCKS: 1}),
        run_schedule(schedule(lower(graph)), values, {BLOCKS: 1}),
        outputs_of(replace(graph, symbols=with_blocks(graph, 1)), values),
    ):
        numbers = np.asarray(got[graph.outputs[0]], np.float32)[::256]
        expected = [np.float32(np.float32(word) * 2.0**-32 + 2.0**-33) for word in words]
        assert numbers.tolist() == expected
        assert int(got[graph.outputs[1]]) == 4


def with_blocks(graph: Graph, blocks: int) -> dict[str, Any]:
    return {**graph.symbols, BLOCKS: replace(graph.symbols[BLOCKS], hint=blocks)}


def test_how_many_blocks_a_gpu_has_counts_beyond_them_alone(tmp_path: Path) -> None:
    graph = drawn([1000], "float32", tmp_path)
    name = graph.outputs[0]
    values = given(graph, 9, 4)
    some = {blocks: run(graph, values, {BLOCKS: blocks})[name] for blocks in (1, 3, 4, 1056)}
    assert (some[4] == some[1056]).all()
    assert (some[1][:256] == some[4][:256]).all() and (some[1][256:] != some[4][256:]).any()
    assert (some[3][:768] == some[4][:768]).all() and (some[3][768:] != some[4][768:]).any()


def test_nothing_is_drawn_for_an_empty_tensor(tmp_path: Path) -> None:
    graph = drawn([0, 4], "float32", tmp_path)
    values = given(graph, 1, 4)
    for got in (run(graph, values, {}), outputs_of(graph, values)):
        drawn_values, consumed = (got[name] for name in graph.outputs)
        assert drawn_values.shape == (0, 4) and int(consumed) == 0


def test_other_types_are_left_out_by_name(tmp_path: Path) -> None:
    graph = drawn([3], "complex64", tmp_path)
    (extern,) = [op for op in lower(graph).operations if isinstance(op, Extern)]
    assert "torch's uniform random numbers of type c64" in extern.reason
