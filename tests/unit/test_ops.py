"""The op table: arguments by name whichever way they were passed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from scheduler.errors import UserError
from scheduler.frontends.pt2 import read
from scheduler.ir.graph import Argument, Node, Ref
from scheduler.ir.ops import UnsupportedOpError, functional_target
from scheduler.lowering.ops import resolve_op

SAMPLES = Path(__file__).parents[2] / "scheduler" / "samples" / "graphs"


def bind(node: Node) -> Mapping[str, Argument]:
    return resolve_op(node.target).bind(node)


def _node(target: str, *args: object, **kwargs: object) -> Node:
    return Node("n", target, args, kwargs, ("n",))  # type: ignore[arg-type]


def test_position_and_keyword_are_the_same() -> None:
    by_position = bind(_node("aten.addmm.default", Ref("b"), Ref("x"), Ref("y")))
    by_keyword = bind(_node("aten.addmm.default", Ref("b"), mat2=Ref("y"), mat1=Ref("x"), beta=1))
    assert by_position == by_keyword
    assert list(by_position) == ["self", "mat1", "mat2", "beta", "alpha"]


def test_labels_go_before_positions() -> None:
    """The names that the file gives its arguments tell which they are, not their order."""
    node = _node("aten.addmm.default", Ref("y"), 2, Ref("b"), Ref("x"))
    labelled = replace(node, labels=("mat2", "beta", "self", "mat1"))
    assert bind(labelled) == bind(_node("aten.addmm.default", Ref("b"), Ref("x"), Ref("y"), beta=2))


@pytest.mark.parametrize(
    ("node", "named"),
    [
        (_node("aten.mm.default", Ref("a")), "is missing its argument 'mat2'"),
        (_node("aten.relu.default", Ref("a"), 1), "takes 1 positional arguments, not 2"),
        (_node("aten.addmm.default", 1, 2, 3, 4), "takes 3 positional arguments, not 4"),
        (_node("aten.relu.default", Ref("a"), self=Ref("b")), "duplicate argument 'self'"),
        (_node("aten.relu.default", Ref("a"), what=1), "duplicate argument 'what'"),
        (replace(_node("aten.relu.default", 1), labels=("what",)), "duplicate argument 'what'"),
        (replace(_node("aten.mm.default", 1), labels=("mat2",)), "is missing its argument 'self'"),
    ],
)
def test_arguments_that_do_not_fit_are_named(node: Node, named: str) -> None:
    with pytest.raises(UserError, match=named):
        bind(node)


@pytest.mark.parametrize(
    "target", ["aten.nonesuch.default", "mylib.attend.default", "aten", "", "aten.mm.grad_input"]
)
def test_unknown_ops_say_so(target: str) -> None:
    with pytest.raises(UnsupportedOpError) as caught:
        resolve_op(target)
    assert caught.value.reason == "unknown op"
    assert caught.value.target == target


@pytest.mark.parametrize(
    ("target", "functional", "mutates"),
    [
        ("aten.add_.Tensor", "aten.add.Tensor", "self"),
        ("aten.relu_.default", "aten.relu.default", "self"),
        ("aten.dropout_.default", "aten.dropout.default", "input"),
        ("aten.pow_.Scalar", "aten.pow.Tensor_Scalar", "self"),
        ("aten.__iand__.Tensor", "aten.__and__.Tensor", "self"),
        ("aten.__and__.Tensor", "aten.__and__.Tensor", ""),
        ("aten.add.Tensor", "aten.add.Tensor", ""),
        ("aten.detach_.default", "aten.detach.default", ""),
    ],
)
def test_in_place_forms_have_a_functional_one(target: str, functional: str, mutates: str) -> None:
    assert functional_target(target) == functional
    assert resolve_op(target).mutates == mutates
    assert resolve_op(target).op == resolve_op(functional).op


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.pt2")), ids=lambda path: path.stem)
def test_every_node_of_the_samples_binds(path: Path) -> None:
    for node in read(path).nodes:
        given = dict(node.kwargs)
        bound = bind(node)
        assert [bound[name] for name in given] == list(given.values())
        assert list(bound.values())[: len(node.args)] == list(node.args)
