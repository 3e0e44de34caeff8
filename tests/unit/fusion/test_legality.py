"""What is fused, what is not, and why: small graphs with one question each."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.fusion import schedule
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Ref
from scheduler.ir.operations import Attention, Contraction, GroupKind, Reduction, Scan
from scheduler.ir.values import Load, loads
from scheduler.lowering import lower
from tests.unit.lowering.graphs import GraphBuilder
from tests.unit.lowering.running import run_schedule


class Model(GraphBuilder):
    """A graph in f32 whose fused schedule is checked against the reference when it is made."""

    def array(self, *size: int) -> str:
        rng = np.random.default_rng(len(self.inputs))
        return self.input(rng.standard_normal(size), DType.F32)

    def op(self, target: str, *args: object, **kwargs: object) -> str:
        given = tuple(Ref(a) if isinstance(a, str) and a in self.tensors else a for a in args)
        return self.call(f"aten.{target}", *given, dtype=DType.F32, **kwargs)

    def plan(self, *outputs: str) -> Schedule:
        plan = schedule(lower(self.graph(*outputs)))
        inputs = {i.name: self.values[i.name] for i in self.inputs}
        for name, value in run_schedule(plan, inputs, {}).items():
            np.testing.assert_allclose(value, self.values[name], rtol=1e-9, atol=1e-9)
        return plan


def kinds(plan: Schedule) -> list[GroupKind]:
    return [node.kind for node in plan.nodes]


def reasons(plan: Schedule) -> set[str]:
    return {decision.reason for decision in plan.decisions if not decision.fused}


@pytest.fixture
def m() -> Model:
    return Model()


@pytest.mark.parametrize("bias", [(6,), (5, 6), (5, 1), (1, 6), (1, 1)])
def test_bias_of_any_broadcast_activation_and_residual_join_a_gemm(
    m: Model, bias: tuple[int, ...]
) -> None:
    product = m.op("mm.default", m.array(5, 4), m.array(4, 6))
    biased = m.op("add.Tensor", product, m.array(*bias))
    active = m.op("gelu.default", biased)
    plan = m.plan(m.op("add.Tensor", active, m.array(5, 6)))
    assert kinds(plan) == [GroupKind.GEMM]
    (main,) = plan.nodes[0].members
    assert isinstance(main, Contraction)
    assert len(main.stores) == 1


def test_an_epilogue_follows_its_gemm_through_a_view_and_a_transposition(m: Model) -> None:
    product = m.op("mm.default", m.array(6, 4), m.array(4, 8))
    split = m.op("permute.default", m.op("view.default", product, (2, 3, 8)), (2, 0, 1))
    plan = m.plan(m.op("tanh.default", split))
    assert kinds(plan) == [GroupKind.GEMM]


def test_both_stores_are_kept_where_both_are_needed(m: Model) -> None:
    product = m.op("mm.default", m.array(5, 4), m.array(4, 6))
    active = m.op("relu.default", product)
    plan = m.plan(product, active)
    assert kinds(plan) == [GroupKind.GEMM]
    assert len(plan.nodes[0].writes) == 2


def test_what_reads_another_row_cannot_join(m: Model) -> None:
    product = m.op("mm.default", m.array(5, 4), m.array(4, 6))
    plan = m.plan(m.op("add.Tensor", product, m.op("flip.default", product, (0,))))
    assert kinds(plan) == [GroupKind.GEMM, GroupKind.POINTWISE]
    assert "it reads the producer's result at other points than it computes" in reasons(plan)


def test_a_cycle_is_rejected(m: Model) -> None:
    """The sum needs the product and its row sums, which need the product themselves."""
    product = m.op("mm.default", m.array(5, 4), m.array(4, 6))
    rows = m.op("sum.dim_IntList", product, (1,), True)
    plan = m.plan(m.op("sub.Tensor", product, rows))
    assert kinds(plan) == [GroupKind.GEMM, GroupKind.REDUCTION]
    assert "another of its inputs depends on the group: fusion would create a cycle" in reasons(
        plan
    )


@pytest.mark.parametrize("target", ["layer_norm.default", "softmax.int"])
def test_a_normalisation_with_what_comes_before_and_after_is_one_kernel(
    m: Model, target: str
) -> None:
    total = m.op("add.Tensor", m.array(5, 8), m.array(5, 8))
    normal = m.op(target, total, (8,) if target.startswith("layer") else 1)
    plan = m.plan(m.op("mul.Tensor", normal, m.array(8)), total)
    assert kinds(plan) == [GroupKind.REDUCTION]
    assert sum(isinstance(member, Reduction) for member in plan.nodes[0].members) == 2


def test_a_normalisation_over_the_first_dimension_and_by_groups(m: Model) -> None:
    x = m.array(2, 6, 3, 4)
    first = m.plan(m.op("softmax.int", x, 0))
    assert kinds(first) == [GroupKind.REDUCTION]
    again = Model()
    made = again.op(
        "group_norm.default", again.array(2, 6, 3, 4), 3, again.array(6), again.array(6)
    )
    assert kinds(again.plan(made)) == [GroupKind.REDUCTION]


def test_reductions_of_the_same_rows_share_a_kernel(m: Model) -> None:
    x = m.array(5, 8)
    plan = m.plan(m.op("sum.dim_IntList", x, (1,)), m.op("amax.default", x, (1,)))
    assert kinds(plan) == [GroupKind.REDUCTION]
    other = m.plan(m.op("sum.dim_IntList", x, (1,)), m.op("amax.default", x, (0,)))
    assert kinds(other) == [GroupKind.REDUCTION] * 2


def test_multiplications_of_the_same_rows_share_a_kernel(m: Model) -> None:
    x = m.array(5, 4)
    q, k, v = (m.op("linear.default", x, m.array(n, 4), m.array(n)) for n in (6, 2, 2))
    plan = m.plan(q, m.op("relu.default", k), v)
    assert kinds(plan) == [GroupKind.GEMM]
    assert [len(member.stores) for member in plan.nodes[0].members] == [1, 1, 1]  # type: ignore[union-attr]


def test_multiplications_that_need_each_other_do_not(m: Model) -> None:
    x = m.array(5, 4)
    gate = m.op("silu.default", m.op("linear.default", x, m.array(6, 4)))
    up = m.op("linear.default", x, m.array(6, 4))
    plan = m.plan(m.op("mul.Tensor", gate, up))
    assert kinds(plan) == [GroupKind.GEMM, GroupKind.GEMM]
    assert "it needs the result of the other product" in reasons(plan)


def test_a_cheap_prologue_is_computed_where_a_gemm_reads_it(m: Model) -> None:
    scaled = m.op("mul.Tensor", m.array(5, 4), m.array(4))
    plan = m.plan(m.op("mm.default", scaled, m.array(4, 6)))
    assert kinds(plan) == [GroupKind.GEMM]


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("add.Tensor", "every block of the template would read more bytes"),
        ("atan2.default", "every block of the template would recompute it"),
    ],
)
def test_a_dear_prologue_is_not(m: Model, target: str, reason: str) -> None:
    made = m.op(target, m.array(5, 4), m.array(5, 4))
    plan = m.plan(m.op("mm.default", made, m.array(4, 6)))
    assert kinds(plan) == [GroupKind.POINTWISE, GroupKind.GEMM]
    assert reason in reasons(plan)


def test_attention_computes_its_queries_but_not_its_keys(m: Model) -> None:
    q, k = m.op("mul.Tensor", m.array(2, 3, 5, 4), 2.0), m.op("tanh.default", m.array(2, 3, 7, 4))
    made = m.op("scaled_dot_product_attention.default", q, k, m.array(2, 3, 7, 4))
    plan = m.plan(m.op("mul.Tensor", made, 0.5))
    assert kinds(plan) == [GroupKind.POINTWISE, GroupKind.ATTENTION]
    (main,) = plan.nodes[1].members
    assert isinstance(main, Attention)
    assert isinstance(main.k, Load)
    assert "every block of rows would recompute it" in reasons(plan)


def test_a_convolution_takes_its_normalisation_residual_and_activation(m: Model) -> None:
    x = m.array(2, 3, 8, 8)
    made = m.op("conv2d.default", x, m.array(4, 3, 3, 3), None, (2, 2), (1, 1))
    variance = m.input(np.full(4, 0.5), DType.F32)
    normal = m.op(
        "batch_norm.default",
        made,
        m.array(4),
        m.array(4),
        m.array(4),
        variance,
        False,
        0.1,
        1e-5,
        True,
    )
    total = m.op("add.Tensor", normal, m.array(2, 4, 4, 4))
    assert kinds(m.plan(m.op("relu.default", total))) == [GroupKind.CONVOLUTION]


def test_a_depthwise_convolution_is_a_kernel_with_its_epilogue(m: Model) -> None:
    made = m.op(
        "conv2d.default",
        m.array(1, 4, 6, 6),
        m.array(4, 1, 3, 3),
        m.array(4),
        (1, 1),
        (1, 1),
        (1, 1),
        4,
    )
    assert kinds(m.plan(m.op("relu.default", made))) == [GroupKind.DEPTHWISE]


def test_a_scan_stores_what_its_reader_makes_of_it(m: Model) -> None:
    running = m.op("cumsum.default", m.array(5, 8), 1)
    plan = m.plan(m.op("mul.Tensor", running, 2.0))
    assert kinds(plan) == [GroupKind.SCAN]
    assert isinstance(plan.nodes[0].members[0], Scan)
    both = m.plan(running, m.op("neg.default", running))
    assert kinds(both) == [GroupKind.SCAN, GroupKind.POINTWISE]


def test_a_conversion_that_several_read_costs_no_kernel(m: Model) -> None:
    x = m.array(5, 8)
    wide = m.call("aten.to.dtype", Ref(x), DType.F64, dtype=DType.F64)
    square = m.call("aten.mul.Tensor", Ref(wide), Ref(wide), dtype=DType.F64)
    mean = m.call("aten.mean.dim", Ref(square), (1,), True, dtype=DType.F64)
    plan = m.plan(m.call("aten.sub.Tensor", Ref(wide), Ref(mean), dtype=DType.F64))
    assert kinds(plan) == [GroupKind.REDUCTION]
    assert plan.nodes[0].reads == (x,)


def test_one_long_row_does_not_take_pointwise_work_from_the_device(m: Model) -> None:
    x = m.array(400, 400)
    made = m.op("exp.default", x)
    plan = m.plan(m.op("sum.default", made), made)
    assert kinds(plan) == [GroupKind.POINTWISE, GroupKind.REDUCTION]
    assert any("1 rows would leave" in reason for reason in reasons(plan))


def test_fused_kernels_keep_every_graph_node_that_they_compute(m: Model) -> None:
    product = m.op("mm.default", m.array(5, 4), m.array(4, 6))
    split = m.op("view.default", product, (30,))
    last = m.op("neg.default", m.op("relu.default", split))
    plan = m.plan(last)
    assert plan.nodes[0].nodes == tuple(node.name for node in m.nodes)
    (main,) = plan.nodes[0].members
    assert isinstance(main, Contraction)
    assert {load.buffer for load in loads(main.stores[0].value)} == set()


@pytest.mark.parametrize("fuse", [True, False])
def test_a_schedule_says_whether_operations_were_fused(m: Model, fuse: bool) -> None:
    lowered = lower(m.graph(m.op("relu.default", m.op("mm.default", m.array(5, 4), m.array(4, 6)))))
    plan = schedule(lowered, fuse=fuse)
    assert plan.fused is fuse
    assert len(plan.nodes) == (1 if fuse else 2)


def test_a_window_is_read_as_it_lies(m: Model) -> None:
    """An activation before a convolution would make it read element by element, each nine times."""
    positive = m.op("relu.default", m.array(2, 8, 9, 9))
    made = m.op("conv2d.default", positive, m.array(4, 8, 3, 3), None, (1, 1), (1, 1))
    plan = m.plan(made)
    assert kinds(plan) == [GroupKind.POINTWISE, GroupKind.CONVOLUTION]
    assert any("loads windows in vectors" in reason for reason in reasons(plan))


def test_what_reads_a_rows_value_once_it_computes_more_itself_joins_the_row(m: Model) -> None:
    total = m.op("sum.dim_IntList", m.array(1, 1, 4), (2,), True)
    both = m.call("aten.cat.default", (Ref(total), Ref(m.op("neg.default", total))), 1)
    four = m.call("aten.cat.default", (Ref(both), Ref(both)), 1)
    plan = m.plan(m.op("neg.default", four))
    assert kinds(plan) == [GroupKind.REDUCTION]


@pytest.mark.parametrize("target", ["argmax.default", "argmin.default"])
def test_a_place_in_a_row_is_counted_in_the_rows_own_order(m: Model, target: str) -> None:
    """A sum may walk the elements as the other does, but not the other as the sum does."""
    x = m.array(4, 5)
    turned = m.op("view.default", m.op("permute.default", x, (1, 0)), (20,))
    total = m.op("sum.default", x)
    place = m.call(f"aten.{target}", Ref(turned))
    assert m.values[place] != m.values[m.call(f"aten.{target}", Ref(x))]
    assert kinds(m.plan(total, place)) == [GroupKind.REDUCTION] * 2
    assert kinds(m.plan(m.call(f"aten.{target}", Ref(turned)), m.op("sum.default", x))) == [
        GroupKind.REDUCTION
    ]


@pytest.mark.parametrize("part", [(0, 2), (2, 4), (0, 3)])
def test_what_reads_a_part_of_a_value_does_not_run_over_all_of_it(
    m: Model, part: tuple[int, int]
) -> None:
    """It has fewer points than the kernel that makes the value, each of them once."""
    made = m.op("relu.default", m.array(4, 6))
    some = m.op("slice.Tensor", made, 0, *part)
    plan = m.plan(made, m.op("mul.Tensor", some, 2.0))
    assert kinds(plan) == [GroupKind.POINTWISE] * 2
    rows = m.op("sum.dim_IntList", m.op("slice.Tensor", made, 0, *part), (1,))
    assert kinds(m.plan(made, rows)) == [GroupKind.POINTWISE, GroupKind.REDUCTION]
