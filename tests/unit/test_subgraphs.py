"""Graphs among a node's arguments: written, read back, checked, and named in comments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import sympy

from scheduler.codegen.comment import MetadataComment
from scheduler.errors import UserError
from scheduler.fusion import schedule
from scheduler.ir.check import check_graph, subgraphs
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Graph, GraphInput, InputKind, Node, Ref, Subgraph, TensorMeta
from scheduler.ir.serialize import graph_from_json, graph_to_json, with_digest
from scheduler.lowering import lower

FOUR = TensorMeta(DType.F32, (sympy.Integer(4),), (sympy.Integer(1),))
ONE = TensorMeta(DType.BOOL, (), ())


def branch(name: str, target: str) -> Subgraph:
    node = Node(f"{name}_node", target, (Ref(f"{name}_x"),), {}, (f"{name}_y",))
    return Subgraph(name, (f"{name}_x",), (f"{name}_y",), (node,))


def example() -> Graph:
    """``cond`` of two branches over four floats."""
    yes, no = branch("yes", "aten.sin.default"), branch("no", "aten.cos.default")
    node = Node("cond", "higher_order.cond", (Ref("p"), yes, no, (Ref("x"),)), {}, ("out",))
    names = ("x", "out", "yes_x", "yes_y", "no_x", "no_y")
    return Graph(
        name="cond",
        digest="",
        symbols={},
        inputs=(GraphInput("p", InputKind.USER), GraphInput("x", InputKind.USER)),
        outputs=("out",),
        nodes=(node,),
        tensors={"p": ONE, **dict.fromkeys(names, FOUR)},
        sym_ints={},
    )


def test_inner_graphs_are_written_and_read_back_exactly() -> None:
    graph = with_digest(example())
    assert graph_from_json(graph_to_json(graph)) == graph
    (node,) = graph.nodes
    assert [part.name for part in subgraphs(node)] == ["yes", "no"]
    other = replace(node, args=(node.args[0], node.args[2], node.args[1], node.args[3]))
    assert with_digest(replace(graph, nodes=(other,))).digest != graph.digest


def changed(**fields: Any) -> Callable[[Graph], Graph]:
    """The example with its first branch changed."""

    def change(graph: Graph) -> Graph:
        (node,) = graph.nodes
        first = node.args[1]
        assert isinstance(first, Subgraph)
        args = (node.args[0], replace(first, **fields), *node.args[2:])
        return replace(graph, nodes=(replace(node, args=args),))

    return change


LEAKING = Node("yes_node", "aten.sin.default", (Ref("x"),), {}, ("yes_y",))
TWICE = Node("no_node", "aten.sin.default", (Ref("yes_x"),), {}, ("yes_y",))


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (changed(outputs=("x",)), "none of its nodes computes its output 'x'"),
        (changed(inputs=("x",)), "its input 'x' already exists"),
        (changed(inputs=("nowhere",)), "its input 'nowhere' has no tensor meta"),
        (changed(nodes=(LEAKING,)), "node 'yes_node' uses 'x' as its argument '0', but no node"),
        (changed(nodes=(TWICE,)), "two nodes have the name 'no_node'"),
        (lambda g: replace(g, outputs=("yes_y",)), "no node computes the output 'yes_y'"),
    ],
)
def test_an_inner_graph_that_does_not_fit_is_refused(
    change: Callable[[Graph], Graph], line: str
) -> None:
    check_graph(example())
    with pytest.raises(UserError, match=line):
        check_graph(change(example()))


def test_graphs_in_graphs_end_somewhere() -> None:
    data = graph_to_json(example())
    inner: Any = data["nodes"][0]
    for _ in range(40):
        inner["args"][1] = {"graph": {**inner["args"][1]["graph"], "nodes": [dict(inner)]}}
        inner = {**inner, "args": list(inner["args"])}
        data["nodes"][0] = inner
    with pytest.raises(UserError):
        graph_from_json(data)


def test_comments_name_inner_graphs() -> None:
    lowered = lower(example())
    (group,) = schedule(lowered).nodes
    assert group.nodes == ("cond",)
    text = MetadataComment(lowered, "k.hip")(group, "k")
    assert "higher_order.cond](args = (%p, yes, no, [%x])" in text
