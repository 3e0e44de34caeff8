"""What operations and fused schedules of a graph give, held against the reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from scheduler.codegen.problem import problem_of
from scheduler.fusion import schedule
from scheduler.ir.graph import Graph
from scheduler.ir.operations import Extern, buffer_size_symbol
from scheduler.ir.ops import NoKernel
from scheduler.lowering import lower
from scheduler.lowering.ops import named_reasons, resolve_op
from tests.unit.lowering.running import run_schedule

# Ops with a kernel, and uses of them that have none: they run through the reference.
WITHOUT = {
    "aten.repeat_interleave.self_Tensor",  # by what another tensor says
    "aten.repeat_interleave.Tensor",
}


def late(extern: Extern) -> bool:
    """Whether it says how large its own results are: kernels are launched after that."""
    return any(map(buffer_size_symbol, extern.outputs))


def assert_lowers(
    graph: Graph,
    values: Mapping[str, Any],
    sizes: Mapping[str, int],
    expected: Mapping[str, Any],
    *,
    tolerance: float = 1e-9,
) -> None:
    """The operations, one by one and fused, give what is expected of these inputs; only uses that
    have a reason are left to the reference."""
    lowered = lower(graph)
    externs = {
        op.op: op.reason for op in lowered.operations if isinstance(op, Extern) and not late(op)
    }
    for op in externs.keys() - WITHOUT:
        assert isinstance(resolve_op(op).op.lowering, NoKernel) or externs[op] in named_reasons(), (
            op
        )
    for fuse in (False, True):
        plan = schedule(lowered, fuse=fuse)
        for node in plan.nodes:
            if node.kind.has_kernel:
                problem_of(node, plan.lowered)  # what a site records of each kernel
        got = run_schedule(plan, values, sizes)
        for name, value in expected.items():
            assert got[name].shape == np.shape(value)
            np.testing.assert_allclose(
                got[name].astype(_wide(value)),
                np.asarray(value, _wide(value)),
                rtol=tolerance,
                atol=tolerance,
            )


def _wide(value: Any) -> type:
    return complex if np.iscomplexobj(value) else float
