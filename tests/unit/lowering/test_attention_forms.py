"""Attention of every depth has kernels: one where its tiles fit every target and are large enough,
else three."""

from __future__ import annotations

import pytest
import sympy

from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.codegen.scheduling import targets_sharing_source
from scheduler.fusion import schedule
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import GraphInput, InputKind, Ref, SymbolInfo
from scheduler.ir.operations import GroupKind
from scheduler.lowering import lower
from scheduler.targets import find
from tests.unit.lowering.graphs import graph, meta, node

TARGETS = targets_sharing_source(find("gfx942"))
DEPTH = sympy.Symbol("s0", positive=True, integer=True)


def attention(dtype: DType, depth: object, value_depth: object, length: int = 40) -> Schedule:
    tensors = {name: meta(dtype, 2, 3, length, depth) for name in "qk"}
    tensors |= {name: meta(dtype, 2, 3, length, value_depth) for name in "vo"}
    inputs = [GraphInput(name, InputKind.USER) for name in "qkv"]
    op = node("o", "aten.scaled_dot_product_attention.default", *(Ref(name) for name in "qkv"))
    symbols = {"s0": SymbolInfo("s0", 64, 2, 512)}
    return schedule(lower(graph(inputs, [op], tensors, ("o",), symbols)))


@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16, DType.F32, DType.F64])
def test_the_deepest_head_that_lowering_gives_to_the_template_fits_every_target(
    dtype: DType,
) -> None:
    deepest = 512 // dtype.itemsize
    for depth, value_depth in ((deepest, deepest), (deepest, 8), (8, deepest), (1, 1)):
        plan = attention(dtype, depth, value_depth)
        assert [one.kind for one in plan.nodes] == [GroupKind.ATTENTION]
        assert ROCmCPPScheduling(plan, TARGETS).default(plan.nodes[0]).kernel.source


@pytest.mark.parametrize(
    ("dtype", "depth", "value_depth"),
    [
        (DType.F16, 264, 64),
        (DType.F32, 64, 136),
        (DType.F64, 128, 128),
        (DType.F32, DEPTH, 64),
        (DType.F32, 64, DEPTH),
    ],
)
def test_a_head_that_fits_no_tile_is_two_products_and_a_softmax(
    dtype: DType, depth: object, value_depth: object
) -> None:
    plan = attention(dtype, depth, value_depth)
    kinds = [one.kind for one in plan.nodes]
    assert kinds == [GroupKind.GEMM, GroupKind.REDUCTION, GroupKind.GEMM]
    backend = ROCmCPPScheduling(plan, TARGETS)
    assert all(backend.default(one).kernel.source for one in plan.nodes)


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64])
def test_scores_that_would_take_gibibytes_are_in_no_memory(dtype: DType) -> None:
    deepest = 1024 // dtype.itemsize
    for depth, value_depth in ((deepest, deepest), (deepest, 8), (8, deepest)):
        plan = attention(dtype, depth, value_depth, length=10_000)
        assert [one.kind for one in plan.nodes] == [GroupKind.ATTENTION]
        assert ROCmCPPScheduling(plan, TARGETS).default(plan.nodes[0]).kernel.source
    (first, *_) = attention(dtype, deepest + 8, 64, length=10_000).nodes
    assert first.kind is GroupKind.GEMM
