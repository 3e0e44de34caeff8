"""Numbers inside the divisions of an index have 64 bits where some size of the model needs it."""

from __future__ import annotations

import pytest
import sympy

from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.fusion import schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import GraphInput, InputKind, Ref, SymbolInfo
from scheduler.ir.operations import GroupKind
from scheduler.lowering import lower
from scheduler.targets import find
from tests.unit.lowering.graphs import graph, meta, node

ROWS = sympy.Symbol("s0", positive=True, integer=True)


@pytest.mark.parametrize(
    ("most", "type_"), [(64, "i32"), (2**31 // 30 - 1, "i32"), (2**27, "i64"), (None, "i64")]
)
def test_a_product_of_regrouped_rows(most: int | None, type_: str) -> None:
    """x[s0, 6, 4] turned and read as rows of four: no strides say where an element lies."""
    tensors = {"x": meta(DType.F32, ROWS, 6, 4), "turned": meta(DType.F32, ROWS, 4, 6)}
    tensors |= {"rows": meta(DType.F32, 6 * ROWS, 4), "w": meta(DType.F32, 4, 5)}
    tensors["y"] = meta(DType.F32, 6 * ROWS, 5)
    nodes = [
        node("turned", "aten.permute.default", Ref("x"), (0, 2, 1)),
        node("rows", "aten.reshape.default", Ref("turned"), (6 * ROWS, 4)),
        node("y", "aten.mm.default", Ref("rows"), Ref("w")),
    ]
    inputs = [GraphInput(name, InputKind.USER) for name in "xw"]
    symbols = {"s0": SymbolInfo("s0", 8, 1, most)}
    plan = schedule(lower(graph(inputs, nodes, tensors, ("y",), symbols)))
    gemm = next(one for one in plan.nodes if one.kind is GroupKind.GEMM)
    kernel = ROCmCPPScheduling(plan, (find("gfx942"),)).default(gemm).kernel
    inside = {arg.type for arg in kernel.args if arg.name.startswith("c")}
    assert inside, "the index has no numbers of its own: this is not the case that was meant"
    assert type_ in inside
    if type_ == "i64":
        assert inside == {"i64"}
