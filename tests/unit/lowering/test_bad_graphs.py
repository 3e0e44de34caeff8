"""What cannot be lowered says so, with the node and its line in the model, in bounded time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy

from scheduler.errors import UserError
from scheduler.fusion import schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Argument, Graph, GraphInput, InputKind, Ref, SymbolInfo
from scheduler.ir.index.functions import symbol
from scheduler.ir.operations import Extern, Pointwise
from scheduler.ir.values import Load
from scheduler.lowering import lower, verify
from scheduler.lowering.verifier import InconsistentError
from tests.unit.lowering.graphs import GraphBuilder, graph, meta, node
from tests.unit.lowering.running import run_schedule

X = [GraphInput("x", InputKind.USER)]


def test_an_unknown_op_is_an_extern_with_its_reason() -> None:
    tensors = {"x": meta(DType.F32, 4), "y": meta(DType.F32, 4), "z": meta(DType.F32, 4)}
    nodes = [
        node("y", "mylib.frobnicate.default", Ref("x")),
        node("z", "aten.neg.default", Ref("y")),
    ]
    plan = schedule(lower(graph(X, nodes, tensors, ("z",))))
    extern = plan.nodes[0].members[0]
    assert isinstance(extern, Extern)
    assert (extern.op, extern.reason) == ("mylib.frobnicate.default", "unknown op")
    assert [n.kind.value for n in plan.nodes] == ["extern", "pointwise"]


def test_a_use_that_no_rule_covers_is_an_extern_that_says_what() -> None:
    tensors = {"x": meta(DType.F32, 4), "y": meta(DType.F32, 4)}
    nodes = [node("y", "aten.gelu.default", Ref("x"), approximate="cubic")]
    (op,) = lower(graph(X, nodes, tensors, ("y",))).operations
    assert isinstance(op, Extern)
    assert "approximate='cubic'" in op.reason


def test_an_extern_reads_through_views_and_writes_memory() -> None:
    b = GraphBuilder()
    x = b.input(np.arange(12.0).reshape(3, 4), DType.F64)
    turned = b.call("aten.transpose.int", Ref(x), 0, 1)
    found = b.call("aten.flip.default", Ref(turned), (0,))
    made = b.call("aten.igamma.default", Ref(found), Ref(b.input(np.ones(3), DType.F64)))
    last = b.call("aten.mul.Tensor", Ref(made), 2)
    plan = schedule(lower(b.graph(last)))
    assert any(isinstance(member, Extern) for n in plan.nodes for member in n.members)
    inputs = {i.name: b.values[i.name] for i in b.inputs}
    np.testing.assert_array_equal(run_schedule(plan, inputs, {})[last], b.values[last])


@pytest.mark.parametrize(
    ("target", "args", "size", "said"),
    [
        ("aten.view.default", ((3, 5),), (3, 5), "does not have as many elements"),
        ("aten.permute.default", ((1, 0),), (4, 4), "y has shape [4, 4] in the graph"),
    ],
)
def test_shapes_that_contradict_each_other(
    target: str, args: tuple[object, ...], size: tuple[int, ...], said: str
) -> None:
    tensors = {"x": meta(DType.F32, 3, 4), "y": meta(DType.F32, *size)}
    given = graph(X, [node("y", target, Ref("x"), *args)], tensors, ("y",))
    try:
        (op,) = lower(given).operations
    except UserError as error:
        message = str(error)
        assert all(part in message for part in ("y", target, "m.layers.0", "model.py:7"))
    else:
        assert isinstance(op, Extern)
        message = op.reason
    assert said in message


@pytest.mark.parametrize(
    ("target", "args", "named"),
    [
        ("aten.softmax.int", ("x",), "'dim'"),
        ("aten.transpose.int", (0, None), "'dim1'"),
        ("aten.add.Tensor", ("q",), "'other'"),
        ("aten.gt.Scalar", (None,), "'other'"),
        ("aten.permute.default", ((0, 1.5),), "'dims'"),
        ("aten.flip.default", (1,), "'dims'"),
        ("aten.sum.dim_IntList", ((0.5,),), "dimension 0.5"),
    ],
)
def test_an_argument_of_another_kind_is_named(
    target: str, args: tuple[Argument, ...], named: str
) -> None:
    """The file is not trusted: what no torch would write is no crash."""
    tensors = {"x": meta(DType.F32, 3, 4), "y": meta(DType.F32, 3, 4)}
    given = graph(X, [node("y", target, Ref("x"), *args)], tensors, ("y",))
    try:
        (op,) = lower(given).operations
    except UserError as error:
        assert f"y ({target}, m.layers.0, model.py:7)" in str(error)
        assert named in str(error)
    else:
        assert isinstance(op, Extern)
        assert named in op.reason


def test_a_tensor_argument_that_is_no_tensor_is_named() -> None:
    tensors = {"x": meta(DType.F32, 3, 4), "y": meta(DType.F32, 3, 4)}
    given = graph(X, [node("y", "aten.erfinv.default", "text")], tensors, ("y",))
    with pytest.raises(UserError, match="its argument 'self' has the wrong type"):
        lower(given)


def test_a_cycle_is_an_error_that_names_the_value() -> None:
    tensors = {name: meta(DType.F32, 4) for name in ("x", "y", "z")}
    nodes = [node("y", "aten.neg.default", Ref("z")), node("z", "aten.neg.default", Ref("y"))]
    with pytest.raises(UserError, match="'z'"):
        lower(graph(X, nodes, tensors, ("z",)))


def _written_through(target: str, *args: Argument, size: tuple[int, ...]) -> Graph:
    """x is written to through a view of it, and read afterwards."""
    tensors = {"x": meta(DType.F32, 4, 6), "c": meta(DType.F32, 4, 6)}
    tensors |= {name: meta(DType.F32, *size) for name in ("a", "b")}
    nodes = [
        node("a", target, Ref("x"), *args),
        node("b", "aten.add_.Tensor", Ref("a"), 1),
        node("c", "aten.mul.Tensor", Ref("x"), 2),
    ]
    return graph(X, nodes, tensors, ("b", "c"))


@pytest.mark.parametrize(
    ("target", "args", "size", "written"),
    [
        ("aten.select.int", (1, 2), (4,), np.s_[:, 2]),
        ("aten.slice.Tensor", (1, 1, 6, 2), (4, 3), np.s_[:, 1::2]),
        ("aten.transpose.int", (0, 1), (6, 4), np.s_[:]),
        ("aten.view.default", ((24,),), (24,), np.s_[:]),
    ],
)
def test_writing_through_a_view_is_seen_by_the_memory_it_shows(
    target: str, args: tuple[Argument, ...], size: tuple[int, ...], written: object
) -> None:
    x = np.arange(24.0).reshape(4, 6)
    expected = x.copy()
    expected[written] += 1  # type: ignore[index]
    given = _written_through(target, *args, size=size)
    got = run_schedule(schedule(lower(given)), {"x": x}, {})
    np.testing.assert_array_equal(got["c"], 2 * expected)


def test_writing_through_a_view_that_cannot_be_followed_is_an_error() -> None:
    with pytest.raises(UserError, match=r"m.layers.0, model.py:7\): writes to 'a' in place"):
        lower(_written_through("aten.expand.default", (2, 4, 6), size=(2, 4, 6)))


def _chain(length: int, target: str, *others: str) -> Graph:
    names = [f"n{k}" for k in range(length)]
    tensors = {name: meta(DType.F32, 4, 8) for name in ("x", *names)}
    nodes = [
        node(name, target, Ref(before), *(Ref(before) for _ in others))
        for before, name in zip(("x", *names), names, strict=False)
    ]
    return graph(X, nodes, tensors, (names[-1],))


@pytest.mark.full(but=2)
@pytest.mark.parametrize(
    ("target", "others"), [("aten.sin.default", ()), ("aten.mul.Tensor", ("x",))]
)
def test_a_very_long_chain_makes_kernels_of_bounded_size(target: str, others: tuple[str]) -> None:
    """With two uses of each value, trees would double with each op that is put into them."""
    plan = schedule(lower(_chain(1200, target, *others)))
    assert 1200 / 96 <= len(plan.nodes) <= 1200 / 6


def test_the_verifier_names_the_node_of_a_fault() -> None:
    lowered = lower(_chain(2, "aten.neg.default"))
    first, second = lowered.operations
    assert isinstance(second, Pointwise)
    wrong = Load("x", (sympy.Integer(4), sympy.Integer(0)), DType.F32)
    faults = {
        "outside its size": replace(second.store, value=wrong),
        "neither a loop nor a size": replace(second.store, index=(sympy.Symbol("q"),) * 2),
        "not f32": replace(second.store, value=replace(wrong, dtype=DType.F16)),
        "2 dimensions": replace(second.store, index=second.store.index[:1]),
        "which is not a buffer": replace(second.store, buffer="nowhere"),
        "already has a value": replace(second.store, buffer=first.store.buffer),  # type: ignore[union-attr]
    }
    for said, store in faults.items():
        broken = replace(lowered, operations=(first, replace(second, store=store)))
        with pytest.raises(
            InconsistentError, match=r"n1 \(aten.neg.default, m.layers.0, model.py:7\)"
        ) as e:
            verify(broken)
        assert said in str(e.value)
    with pytest.raises(InconsistentError, match="before an operation writes it"):
        verify(replace(lowered, operations=(second, first)))


def test_a_write_that_no_operation_makes_is_a_fault() -> None:
    tensors = {name: meta(DType.F32, 4) for name in ("x", "y", "z")}
    nodes = [node("y", "aten.neg_.default", Ref("x")), node("z", "aten.neg.default", Ref("x"))]
    lowered = lower(graph(X, nodes, tensors, ("z",)))
    operations = tuple(
        op.with_results(op.results, tuple(name for name in op.nodes if name != "y"))
        for op in lowered.operations
    )
    with pytest.raises(InconsistentError, match=r"^y .*: no operation computes what it writes"):
        verify(replace(lowered, operations=operations))


@pytest.mark.parametrize("target", ["aten.hardtanh.default", "aten.threshold.default"])
def test_a_symbolic_number_in_a_formula_is_named(target: str) -> None:
    tensors = {"x": meta(DType.F32, symbol("s0")), "y": meta(DType.F32, symbol("s0"))}
    nodes = [node("y", target, Ref("x"), 0, symbol("s0"))]
    sizes = {"s0": SymbolInfo("s0", 4, 1, 8)}
    with pytest.raises(UserError, match=rf"y \({target}, m.layers.0, model.py:7\)"):
        lower(graph(X, nodes, tensors, ("y",), sizes))
