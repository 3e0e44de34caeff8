"""What an op without a kernel may be off by: its buffers' roundings, no more."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.benchmark.gate import compare_output
from scheduler.benchmark.verification import graph_tolerance
from scheduler.fusion import schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import GraphInput, InputKind, Ref
from scheduler.lowering import lower
from scheduler.reference import round_to_dtype
from tests.unit.lowering.graphs import graph, meta, node


@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16, DType.F32, DType.F64])
def test_an_extern_alone_may_round_to_its_buffer(dtype: DType) -> None:
    tensors = {"x": meta(dtype, 5, 5), "y": meta(dtype, 5, 5)}
    nodes = [node("y", "aten.linalg_matrix_exp.default", Ref("x"))]
    plan = schedule(lower(graph([GraphInput("x", InputKind.USER)], nodes, tensors, ("y",))))
    assert [one.kind.value for one in plan.nodes] == ["extern"]
    bound = graph_tolerance(plan, {})
    exact = np.random.default_rng(0).standard_normal((5, 5))
    assert compare_output(round_to_dtype(exact, dtype), exact, bound, "y").passed
    assert not compare_output(exact * (1 + 20 * dtype.eps), exact, bound, "y").passed
