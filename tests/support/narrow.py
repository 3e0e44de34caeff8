"""Products of elements of 8 bits, as torch's ops ask for them."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.fusion import schedule
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import GraphInput, InputKind, Node, Ref, SymbolInfo
from scheduler.lowering import lower
from tests.unit.lowering.graphs import graph, meta, node
from tests.unit.matrix.contractions import Size

NARROW = (DType.I8, DType.F8E4M3FN, DType.F8E5M2)


def narrow_product(
    m: Size,
    n: Size,
    k: Size,
    dtype: DType,
    *,
    row_major: bool = False,
    second: DType | None = None,
    out: DType = DType.F32,
    symbols: Mapping[str, SymbolInfo] | None = None,
) -> Schedule:
    """``y = x @ w``: [m, k] by [k, n], with ``row_major``, or by [n, k]. Integers as i32; floats as
    ``out``, times the numbers ``sx`` and ``sw``; ``second`` is another type of ``w``."""
    other = second or dtype
    tensors = {"x": meta(dtype, m, k), "w": meta(other, *((k, n) if row_major else (n, k)))}
    nodes: list[Node] = []
    if not row_major:
        tensors["wt"] = meta(other, k, n, stride=(1, k))
        nodes.append(node("wt", "aten.t.default", Ref("w")))
    operands = Ref("x"), Ref("w" if row_major else "wt")
    if dtype is DType.I8:
        tensors["y"] = meta(DType.I32, m, n)
        nodes.append(node("y", "aten._int_mm.default", *operands))
    else:
        tensors |= {"sx": meta(DType.F32), "sw": meta(DType.F32), "y": meta(out, m, n)}
        nodes.append(
            node("y", "aten._scaled_mm.default", *operands, Ref("sx"), Ref("sw"), None, None, None)
        )
    names = [name for name in ("x", "w", "sx", "sw") if name in tensors]
    inputs = [GraphInput(name, InputKind.USER) for name in names]
    known = dict(symbols) if symbols else None
    return schedule(lower(graph(inputs, nodes, tensors, ("y",), known)))


def converted_weight(m: int, n: int, k: int, weight: DType, dtype: DType) -> Schedule:
    """``y = x @ w.to(dtype).T`` with ``w`` [n, k] of 8 bits."""
    tensors = {"x": meta(dtype, m, k), "w": meta(weight, n, k), "wide": meta(dtype, n, k)}
    tensors["y"] = meta(dtype, m, n)
    nodes = [
        node("wide", "aten._to_copy.default", Ref("w"), dtype=dtype),
        node("y", "aten.linear.default", Ref("x"), Ref("wide")),
    ]
    inputs = [GraphInput(name, InputKind.USER) for name in ("x", "w")]
    return schedule(lower(graph(inputs, nodes, tensors, ("y",))))
