"""Graphs as JSON: exact both ways, stable, and refused with the part named."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.errors import UserError
from scheduler.frontends.pt2 import read
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import (
    Argument,
    ConstantOutput,
    Frame,
    Graph,
    GraphInput,
    InputKind,
    Node,
    Origin,
    Ref,
    SymbolInfo,
    TensorMeta,
)
from scheduler.ir.index.functions import FloorDiv, as_expr, symbol
from scheduler.ir.serialize import graph_from_json, graph_to_json, with_digest
from scheduler.lowering.ops import resolve_op

SAMPLES = Path(__file__).parents[2] / "scheduler" / "samples" / "graphs"
N = symbol("n")

_scalars: st.SearchStrategy[Argument] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=10),
    st.sampled_from(list(DType)),
    st.sampled_from([Ref("x"), Ref("y")]),
    st.sampled_from([2 * N, N + 1, FloorDiv(N, as_expr(2))]),
)
_arguments = st.recursive(_scalars, lambda parts: st.lists(parts, max_size=3).map(tuple))


def _constants(outputs: int) -> st.SearchStrategy[tuple[ConstantOutput, ...]]:
    """Up to three among so many other outputs."""
    values = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False),
        st.text(max_size=10),
    )
    return st.lists(values, max_size=3).flatmap(
        lambda drawn: (
            st.lists(
                st.integers(0, outputs + len(drawn) - 1),
                min_size=len(drawn),
                max_size=len(drawn),
                unique=True,
            ).map(lambda places: tuple(map(ConstantOutput, places, drawn)))
            if drawn
            else st.just(())
        )
    )


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Chains of nodes with any arguments."""
    metas = st.tuples(st.sampled_from(list(DType)), st.lists(st.integers(0, 9), max_size=3))
    tensors = {}
    for name in ("x", "y"):
        dtype, sizes = draw(metas)
        tensors[name] = TensorMeta(dtype, (N, *map(as_expr, sizes)), tuple([N] * (len(sizes) + 1)))
    nodes = []
    for index in range(draw(st.integers(0, 4))):
        output = f"v{index}"
        dtype, sizes = draw(metas)
        tensors[output] = TensorMeta(dtype, tuple(map(as_expr, sizes)), tuple(map(as_expr, sizes)))
        frames = (Frame("a.py", index, "f", draw(st.text(max_size=5))),)
        nodes.append(
            Node(
                f"node{index}",
                "aten.add.Tensor",
                tuple(draw(st.lists(_arguments, max_size=3))),
                draw(st.dictionaries(st.text(max_size=5), _arguments, max_size=2)),
                (output,),
                Origin(frames, "layer.0", "torch.nn.Linear", "f"),
            )
        )
        count = len(nodes[-1].args)
        labels = st.lists(st.text(max_size=5), min_size=count, max_size=count)
        nodes[-1] = replace(nodes[-1], labels=tuple(draw(st.one_of(st.just([]), labels))))
    inputs = (GraphInput("x", InputKind.USER), GraphInput("y", InputKind.PARAMETER, "w"))
    symbols = {"n": SymbolInfo("n", 8, 2, draw(st.sampled_from([None, 64])))}
    graph = Graph(
        "g",
        "",
        symbols,
        inputs,
        tuple(n.outputs[0] for n in nodes),
        tuple(nodes),
        tensors,
        {"m": N},
        constant_outputs=draw(_constants(len(nodes))),
    )
    return with_digest(graph)


@pytest.mark.full
@settings(deadline=None, max_examples=60)
@given(graphs())
def test_any_graph_comes_back_as_it_was(graph: Graph) -> None:
    text = json.dumps(graph_to_json(graph), allow_nan=False)
    back = graph_from_json(json.loads(text))
    assert back == graph
    assert json.dumps(graph_to_json(back)) == text
    assert with_digest(back).digest == graph.digest


def test_a_graph_without_labels_is_read_as_before_and_is_the_same_graph() -> None:
    """Bundles from before the names of positional arguments were kept."""
    graph = read(SAMPLES / "gpt2_2layer.pt2")
    data = graph_to_json(graph)
    for node in data["nodes"]:
        assert len(node.pop("labels", ())) == len(node["args"])
    old = graph_from_json(data)
    assert [resolve_op(n.target).bind(n) for n in old.nodes] == [
        resolve_op(n.target).bind(n) for n in graph.nodes
    ]
    assert with_digest(old).digest == graph.digest


def test_types_of_arguments_survive() -> None:
    """1, 1.0 and True are equal in Python, and not the same argument."""
    node = Node("a", "aten.relu.default", (1, 1.0, True, float("inf")), {}, ())
    graph = Graph("g", "", {}, (), (), (node,), {}, {})
    (back,) = graph_from_json(json.loads(json.dumps(graph_to_json(graph)))).nodes
    assert [type(arg) for arg in back.args] == [int, float, bool, float]


def test_types_of_constants_survive_and_are_part_of_the_digest() -> None:
    digests = set()
    for value in (1, 1.0, True, None, "1", float("-inf"), float("nan")):
        graph = with_digest(Graph("g", "", {}, (), (), (), {}, {}))
        graph = with_digest(replace(graph, constant_outputs=(ConstantOutput(0, value),)))
        (back,) = graph_from_json(json.loads(json.dumps(graph_to_json(graph)))).constant_outputs
        assert (type(back.value), repr(back.value)) == (type(value), repr(value))
        digests.add(graph.digest)
    assert len(digests) == 7


@pytest.mark.parametrize("name", ["gpt2_2layer", "resnet_small"])
def test_samples_come_back_as_they_were(name: str) -> None:
    graph = read(SAMPLES / f"{name}.pt2")
    assert graph_from_json(json.loads(json.dumps(graph_to_json(graph)))) == graph


@pytest.mark.full
def test_digest_does_not_depend_on_process_or_name() -> None:
    program = (
        "import sys; from pathlib import Path; from scheduler.frontends.pt2 import read;"
        "print(read(Path(sys.argv[1]), sys.argv[2]).digest)"
    )
    path = str(SAMPLES / "gpt2_2layer.pt2")
    digests = {
        subprocess.run(
            [sys.executable, "-c", program, path, name],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, name in (("1", "one"), ("2", "two"))
    }
    assert len(digests) == 1


def _first(data: dict[str, Any]) -> dict[str, Any]:
    return data["nodes"][0]  # type: ignore[no-any-return]


def _constant(data: dict[str, Any], *constants: dict[str, Any]) -> None:
    data["constant_outputs"] = list(constants)


def _nested(depth: int) -> Any:
    """A number in so many lists."""
    return [_nested(depth - 1)] if depth else 1


DAMAGES: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (lambda d: d.update(schema=2), "schema 1"),
    (lambda d: d.pop("nodes"), "required field missing @ $.nodes"),
    (lambda d: _first(d).pop("target"), "required field missing @ $.nodes[0].target"),
    (
        lambda d: _first(d).update(args=[{"ref": "ghost"}], labels=["self"]),
        "uses 'ghost' as its argument 'self', but no node computes it",
    ),
    (lambda d: _first(d).update(labels=["self"]), "names 1 of its 2 arguments"),
    (lambda d: _first(d).update(labels=[1, 2]), "'1' is not a str @ $.nodes[0].labels[0]"),
    (
        lambda d: _first(d).update(args=[{"what": 1}]),
        "an argument of unknown form @ $.nodes[0].args[0]",
    ),
    (lambda d: _first(d).update(args=[{"expr": "exec('1')"}]), "nodes[0]"),
    (
        lambda d: _first(d).update(args=[{"dtype": "f8"}]),
        "'f8' is not an element type @ $.nodes[0].args[0]",
    ),
    (lambda d: _first(d)["origin"].update(frames=[[1, 2]]), "a frame is"),
    (
        lambda d: d["tensors"]["linear"].update(size=["2", "2"]),
        "'linear' has 2 sizes but 3 strides",
    ),
    (lambda d: d["tensors"]["linear"].update(dtype="f8"), "@ $.tensors['linear'].dtype"),
    (lambda d: d["symbols"]["s70"].update(hint="a"), "'a' is not an int @ $.symbols['s70'].hint"),
    (lambda d: d["symbols"].pop("s70"), "the unknown symbol 's70'"),
    (
        lambda d: d["inputs"][0].update(kind="secret"),
        "'secret' is not a valid InputKind @ $.inputs[0].kind",
    ),
    (lambda d: d.update(outputs=[3]), "'3' is not a str @ $.outputs[0]"),
    (lambda d: d.update(outputs="ab"), "'ab' is not a list @ $.outputs"),
    (lambda d: d.update(tensors=[]), "expected a mapping @ $.tensors"),
    (lambda d: _first(d).update(args=[_nested(17)]), "an argument of unknown form"),
    (lambda d: _constant(d, {"place": 9, "value": 1}), "output 9 of a model that returns 2"),
    (lambda d: _constant(d, *[{"place": 0, "value": 1}] * 2), "two constants are output 0"),
    (lambda d: _constant(d, {"place": 0}), "required field missing @ $.constant_outputs[0].value"),
    (
        lambda d: _constant(d, {"place": True, "value": 1}),
        "'True' is not an int @ $.constant_outputs[0].place",
    ),
    (lambda d: _constant(d, {"place": 0, "value": [1]}), "a constant must be a number"),
    (lambda d: _constant(d, {"place": 0, "value": {"ref": "a"}}), "a constant must be a number"),
]


@pytest.mark.full(but=6)
@pytest.mark.parametrize(("damage", "named"), DAMAGES)
def test_damage_is_one_clear_line(damage: Callable[[dict[str, Any]], object], named: str) -> None:
    data = copy.deepcopy(graph_to_json(read(SAMPLES / "gpt2_2layer.pt2")))
    damage(data)
    with pytest.raises(UserError) as caught:
        graph_from_json(data)
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)
