"""What operations say of themselves: true of those of the samples and of random models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest
import sympy

from scheduler import pipeline, samples
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import GraphInput, InputKind, Ref
from scheduler.ir.index.functions import evaluate, symbol
from scheduler.ir.operations import (
    Attention,
    Axis,
    Extern,
    GroupKind,
    Operation,
    Pointwise,
    Scan,
    Sort,
    Store,
)
from scheduler.ir.values import Accumulator, Const, IndexValue, Load, Value, rebuild, walk
from scheduler.tuning.footprint import elements_read
from tests.support.random_models import random_model
from tests.unit.lowering.graphs import graph, meta, node
from tests.unit.matrix.contractions import matmul
from tests.unit.matrix.convolution_graphs import Convolution


def found() -> Iterator[Operation]:
    """Operations before and after fusion, of each kind at least one."""
    for name in samples.names():
        plan = pipeline.schedule(pipeline.lower(pipeline.load(samples.path(name))))
        yield from plan.lowered.operations
        yield from (member for node in plan.nodes for member in node.members)
    for seed in range(12):
        yield from pipeline.lower(random_model(Random(seed), 12).graph()).operations
    convolution = Convolution((1, 4, 5, 5), (4, 1, 3, 3), padding=1, groups=4)
    yield from (member for each in convolution.schedule().nodes for member in each.members)
    yield attention(causal=False)
    yield extern()
    yield sort()


def axis(name: str, size: int) -> Axis:
    return Axis(symbol(name), sympy.Integer(size))


def load(buffer: str, *axes: Axis) -> Load:
    return Load(buffer, tuple(one.var for one in axes), DType.F16)


def attention(*, causal: bool, rows: int = 5, columns: int = 7) -> Attention:
    """Two heads of depth 4 with values of depth 3 and an additive mask."""
    b, r, c, d, v = (axis(*one) for one in zip("brcdv", (2, rows, columns, 4, 3), strict=True))
    return Attention(
        name="op",
        batch=(b,),
        row=r,
        column=c,
        depth=d,
        value_depth=v,
        q=load("q", b, r, d),
        k=load("k", b, c, d),
        v=load("v", b, c, v),
        mask=load("mask", b, r, c),
        causal=causal,
        scale=1.0,
        stores=(Store("out", (b.var, r.var, v.var), Accumulator(DType.F32)),),
        nodes=("attention",),
    )


def sort() -> Sort:
    """The first two of five, and where they were."""
    i, r, p = (axis(*one) for one in zip("irp", (3, 5, 2), strict=True))
    stores = (
        Store("values", (i.var, p.var), Accumulator(DType.F32)),
        Store("places", (i.var, p.var), Accumulator(DType.I64, Sort.INDEX)),
    )
    return Sort("op", (i,), r, p, load("x", i, r), True, stores, ("sort",))


def extern() -> Extern:
    """What has no kernel, reading through a view."""
    tensors = {"x": meta(DType.F32, 4, 3), "t": meta(DType.F32, 3, 4), "y": meta(DType.F32, 3, 4)}
    nodes = [
        node("t", "aten.transpose.int", Ref("x"), 0, 1),
        node("y", "mylib.frobnicate.default", Ref("t")),
    ]
    inputs = [GraphInput("x", InputKind.USER)]
    (operation,) = pipeline.lower(graph(inputs, nodes, tensors, ("y",))).operations
    assert isinstance(operation, Extern)
    return operation


def moved(value: Value) -> Value:
    """The tree reading other buffers."""

    def change(part: Value) -> Value | None:
        if not isinstance(part, Load):
            return None
        places = tuple(replace(one, value=moved(one.value)) for one in part.indirect)
        return replace(part, buffer=f"{part.buffer}'", indirect=places)

    return rebuild(value, change)


def used(value: Value) -> set[sympy.Symbol]:
    """Every symbol in a tree's indices; not those that indirect reads bring along."""
    symbols: set[sympy.Symbol] = set()
    brought: set[sympy.Symbol] = set()
    for part in walk(value):
        if isinstance(part, IndexValue):
            symbols |= part.expr.free_symbols
        if isinstance(part, Load):
            brought |= {indirect.symbol for indirect in part.indirect}
            symbols |= {s for index in part.index for s in index.free_symbols}
    return symbols - brought


def assert_describes_itself(operation: Operation) -> None:
    loops, points = set(operation.loops), set(operation.points)
    variables = {one.var for one in loops}
    assert points <= loops
    for scope in operation.operands:
        inside = {one.var for one in scope.axes}
        assert used(scope.value) & variables <= inside
    for store in operation.results:
        at = {s for index in store.index for s in index.free_symbols}
        assert (used(store.value) | at) & variables <= {one.var for one in points}
    assert operation.reads == tuple(
        dict.fromkeys(p.buffer for t in operation.trees for p in walk(t) if isinstance(p, Load))
    )
    assert set(operation.matrix_operands) <= {scope.value for scope in operation.operands}
    assert operation.type_fault() == ""


def test_every_operation_describes_itself() -> None:
    seen: dict[GroupKind, int] = {}
    for operation in found():
        assert_describes_itself(operation)
        seen[operation.group_kind] = seen.get(operation.group_kind, 0) + 1
    assert set(seen) == set(GroupKind) - {GroupKind.LOOP}  # marks have no trees: see test_loops


def test_an_operation_with_its_trees_changed_is_the_same_but_for_what_it_reads() -> None:
    for operation in found():
        assert operation.map_trees(lambda tree: tree) == operation
        changed = operation.map_trees(moved)
        assert changed.reads == tuple(f"{name}'" for name in operation.reads)
        assert changed.writes == operation.writes
        assert (changed.points, changed.loops) == (operation.points, operation.loops)


@pytest.mark.full
def test_nodes_come_first_and_once() -> None:
    for operation in found():
        more = operation.with_nodes(("a", *operation.nodes[:1]))
        rest = [name for name in operation.nodes if name not in operation.nodes[:1]]
        assert more.nodes == ("a", *operation.nodes[:1], *rest)
        assert all(store.nodes[0] == "a" for store in more.results)


def test_stores_and_trees_are_exchanged_one_for_one() -> None:
    one = axis("i", 4)
    store = Store("out", (one.var,), load("x", one))
    pointwise = Pointwise("op", (one,), store, ())
    assert pointwise.with_results([replace(store, buffer="y")], ("n",)).writes == ("y",)
    for operation in (pointwise, extern()):
        with pytest.raises(ValueError):
            operation.with_results([store] * 2, ())
        with pytest.raises(ValueError):
            operation.with_operands([Const(0, DType.F32)] * 2)


def test_a_contractions_products_are_all_its_loops() -> None:
    (node,) = matmul(6, 5, 4, DType.BF16).nodes
    (main,) = node.contractions
    assert main.products.multiply_adds == 6 * 5 * 4
    assert main.products.dtype is DType.BF16
    assert main.accumulation_length == 4
    assert main.nest == (main.points, ())


@pytest.mark.parametrize(("rows", "columns"), [(5, 7), (7, 5), (6, 6), (1, 3)])
def test_causal_attention_multiplies_only_what_may_be_seen(rows: int, columns: int) -> None:
    pairs = sum(column <= row for row in range(rows) for column in range(columns))
    causal = attention(causal=True, rows=rows, columns=columns)
    assert evaluate(causal.products.multiply_adds, {}) == 2 * pairs * (4 + 3)
    whole = attention(causal=False, rows=rows, columns=columns)
    assert evaluate(whole.products.multiply_adds, {}) == 2 * rows * columns * (4 + 3)
    assert whole.accumulation_length == 4 + columns
    assert whole.averaged_operand == whole.v


@pytest.mark.parametrize(("rows", "columns"), [(5, 7), (7, 5)])
def test_causal_attention_reads_no_column_that_no_row_sees(rows: int, columns: int) -> None:
    lowered = matmul(2, 2, 2, DType.F16).lowered  # no condition, no buffer: not looked into
    causal = attention(causal=True, rows=rows, columns=columns)
    seen = min(rows, columns)
    assert elements_read(causal, lowered, {}) == {
        "q": 2 * rows * 4,
        "k": 2 * seen * 4,
        "v": 2 * seen * 3,
        "mask": 2 * rows * seen,
    }
    whole = attention(causal=False, rows=rows, columns=columns)
    assert elements_read(whole, lowered, {})["k"] == 2 * columns * 4


def test_a_scan_stores_at_every_step() -> None:
    scan = next(one for one in found() if isinstance(one, Scan))
    outer, inner = scan.nest
    assert scan.points == scan.loops == (*outer, *inner)
    assert scan.accumulation_length == inner[0].size


def test_operands_of_different_types_are_a_fault() -> None:
    (node,) = matmul(6, 5, 4, DType.F16).nodes
    (main,) = node.contractions
    wrong = replace(main, a=Const(1.0, DType.F32))
    assert wrong.type_fault() == "multiplies f32 by f16"
    assert "different types" in replace(attention(causal=True), q=wrong.a).type_fault()
