"""Which tensors lie with their channels innermost, and that nothing else changes by it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scheduler.fusion import schedule
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Graph, GraphInput, InputKind, Node, Ref, SymbolInfo
from scheduler.ir.index.functions import symbol
from scheduler.lowering import lower
from scheduler.reference import random_inputs, run
from tests.unit.lowering.graphs import graph, meta, node
from tests.unit.lowering.running import run_schedule

F16 = DType.F16
PADDED: tuple[Any, ...] = ((1, 1), (1, 1), (1, 1), 1)


def images(
    nodes: list[Node],
    sizes: dict[str, tuple[Any, ...]],
    outputs: tuple[str, ...],
    symbols: dict[str, SymbolInfo] | None = None,
) -> Graph:
    """A graph of row-major tensors; what no node makes is an input."""
    made = {name for one in nodes for name in one.outputs}
    inputs = [GraphInput(name, InputKind.USER) for name in sizes if name not in made]
    tensors = {name: meta(F16, *size) for name, size in sizes.items()}
    return graph(inputs, nodes, tensors, outputs, symbols)


def chain(batch: Any = 2, symbols: dict[str, SymbolInfo] | None = None) -> Graph:
    """conv, relu, conv, add of the first's result, of [batch, 16, 16, 16]."""
    size, weight = (batch, 16, 16, 16), (16, 16, 3, 3)
    nodes = [
        node("c", "aten.conv2d.default", Ref("x"), Ref("w"), None, *PADDED),
        node("r", "aten.relu.default", Ref("c")),
        node("d", "aten.conv2d.default", Ref("r"), Ref("v"), None, *PADDED),
        node("y", "aten.add.Tensor", Ref("d"), Ref("r")),
    ]
    sizes = {"x": size, "w": weight, "v": weight, **dict.fromkeys("crdy", size)}
    return images(nodes, sizes, ("y",), symbols)


def stride_of(plan: Schedule, name: str) -> tuple[int, ...]:
    return tuple(int(step) for step in plan.lowered.buffers[name].stride)


def test_between_convolutions_nothing_is_copied_and_channels_are_innermost() -> None:
    plan = schedule(lower(chain()))
    kinds = [one.kind.name for one in plan.nodes]
    # x and the weights before, and the result into the model's order behind
    assert sorted(kinds) == ["CONVOLUTION"] * 2 + ["POINTWISE"] * 4
    first = next(one for one in plan.nodes if one.kind.name == "CONVOLUTION")
    (between,) = first.writes
    assert stride_of(plan, between) == (16 * 16 * 16, 1, 16 * 16, 16)


def test_the_model_s_own_outputs_stay_as_it_has_them() -> None:
    plan = schedule(lower(chain()))
    (output,) = plan.lowered.outputs
    assert stride_of(plan, output) == (16 * 16 * 16, 16 * 16, 16, 1)


def test_an_output_that_is_another_name_of_a_value_between_is_in_the_model_s_order() -> None:
    size, weight = (2, 16, 16, 16), (16, 16, 3, 3)
    nodes = [
        node("c", "aten.conv2d.default", Ref("x"), Ref("w"), None, *PADDED),
        node("a", "aten.alias.default", Ref("c")),
        node("d", "aten.conv2d.default", Ref("c"), Ref("w"), None, *PADDED),
    ]
    sizes = {"x": size, "w": weight, **dict.fromkeys("cad", size)}
    plan = schedule(lower(images(nodes, sizes, ("a", "d"))))
    for output in plan.lowered.outputs:
        assert stride_of(plan, output) == (16 * 16 * 16, 16 * 16, 16, 1)


@pytest.mark.parametrize(
    ("weight", "side"),
    [((16, 3, 3, 3), 16), ((16, 16, 1, 1), 16), ((16, 16, 3, 3), 8), ((16, 12, 3, 3), 16)],
    ids=["no pack of channels", "one tap", "few positions", "packs that are not full"],
)
def test_what_gains_nothing_stays(weight: tuple[int, ...], side: int) -> None:
    padding = (weight[2] // 2, weight[3] // 2)
    conv = node("y", "aten.conv2d.default", Ref("x"), Ref("w"), None, (1, 1), padding, (1, 1), 1)
    sizes = {"x": (2, weight[1], side, side), "w": weight, "y": (2, 16, side, side)}
    assert [one.kind.name for one in schedule(lower(images([conv], sizes, ("y",)))).nodes] == [
        "CONVOLUTION"
    ]


def grouped(groups: int) -> Graph:
    """Two convolutions of 32 channels in so many groups, one behind the other."""
    size, weight = (2, 32, 16, 16), (32, 32 // groups, 3, 3)
    rest = ((1, 1), (1, 1), (1, 1), groups)
    nodes = [
        node("c", "aten.conv2d.default", Ref("x"), Ref("w"), None, *rest),
        node("y", "aten.conv2d.default", Ref("c"), Ref("w"), None, *rest),
    ]
    return images(nodes, {"x": size, "w": weight, "c": size, "y": size}, ("y",))


@pytest.mark.parametrize(("groups", "innermost"), [(2, True), (8, True), (16, False), (32, False)])
def test_groups_of_whole_packs_take_the_order_between_them(groups: int, innermost: bool) -> None:
    """Of 4 channels of f16 at least; depthwise ones have a kernel for the model's order."""
    lowered = lower(grouped(groups))
    size = (2, 32, 16, 16)
    made = [buffer for buffer in lowered.buffers.values() if tuple(buffer.size) == size]
    orders = {tuple(map(int, one.stride)) for one in made}
    assert ((32 * 16 * 16, 1, 32 * 16, 32) in orders) == innermost


@pytest.mark.parametrize("groups", [2, 8, 16])
def test_groups_are_the_reference_s(groups: int) -> None:
    made = grouped(groups)
    inputs = random_inputs(made, {}, np.random.default_rng(groups))
    expected = run(made, inputs, {})
    found = run_schedule(schedule(lower(made)), inputs, {})
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_the_result_is_the_reference_s_at_every_batch(batch: int) -> None:
    made = chain(symbol("s0"), {"s0": SymbolInfo("s0", 2, 1, 64)})
    sizes = {"s0": batch}
    inputs = random_inputs(made, sizes, np.random.default_rng(batch))
    expected = run(made, inputs, sizes)
    found = run_schedule(schedule(lower(made)), inputs, sizes)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-9)


def test_a_pooling_between_walks_memory_in_its_order() -> None:
    """Neighbouring results of a reduction are neighbours in memory."""
    size, weight = (2, 16, 16, 16), (16, 16, 3, 3)
    nodes = [
        node("c", "aten.conv2d.default", Ref("x"), Ref("w"), None, *PADDED),
        node("p", "aten.max_pool2d.default", Ref("c"), (3, 3), (1, 1), (1, 1)),
        node("d", "aten.conv2d.default", Ref("p"), Ref("w"), None, *PADDED),
    ]
    sizes = {"x": size, "w": weight, **dict.fromkeys("cpd", size)}
    made = images(nodes, sizes, ("d",))
    plan = schedule(lower(made))
    (pooled,) = (one for one in plan.nodes if one.kind.name == "REDUCTION")
    (buffer,) = pooled.writes
    assert stride_of(plan, buffer) == (16 * 16 * 16, 1, 16 * 16, 16)
    inputs = random_inputs(made, {}, np.random.default_rng(0))
    found = run_schedule(plan, inputs, {})
    for name, value in run(made, inputs, {}).items():
        np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-9)
