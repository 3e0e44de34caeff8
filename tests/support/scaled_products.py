"""Products of elements of 8 bits with their scales, in every way that torch has them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from scheduler.fusion import schedule
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import GraphInput, InputKind, Node, Ref
from scheduler.lowering import lower
from tests.support.narrow import NARROW, converted_weight, narrow_product
from tests.unit.lowering.graphs import graph, meta, node

FLOATS_8 = (DType.F8E4M3FN, DType.F8E5M2)
OUTPUTS = (DType.F32, DType.BF16, DType.F16)
_BLOCK = 32  # elements of an MX scale (OCP Microscaling Formats 1.0)


def by_lines(m: int, n: int, k: int, dtype: DType, out: DType) -> Schedule:
    """``_scaled_mm`` with a scale for each row of the first and each column of the second."""
    tensors = {"x": meta(dtype, m, k), "w": meta(dtype, n, k), "y": meta(out, m, n)}
    tensors |= {"wt": meta(dtype, k, n, stride=(1, k))}
    tensors |= {"sx": meta(DType.F32, m, 1), "sw": meta(DType.F32, 1, n)}
    args = (*(Ref(name) for name in ("x", "wt", "sx", "sw")), None, None, out)
    nodes = [
        node("wt", "aten.t.default", Ref("w")),
        node("y", "aten._scaled_mm.default", *args),  # type: ignore[arg-type]
    ]
    return _plan(nodes, tensors, ("x", "w", "sx", "sw"))


def dequantized(m: int, n: int, k: int, weight: DType, dtype: DType) -> Schedule:
    """``y = x @ (w.to(dtype) * s).T`` with ``w`` [n, k] of 8 bits and a scale for each row."""
    tensors = {"x": meta(dtype, m, k), "w": meta(weight, n, k), "s": meta(dtype, n, 1)}
    tensors |= {"wide": meta(dtype, n, k), "scaled": meta(dtype, n, k), "y": meta(dtype, m, n)}
    nodes = [
        node("wide", "aten._to_copy.default", Ref("w"), dtype=dtype),
        node("scaled", "aten.mul.Tensor", Ref("wide"), Ref("s")),
        node("y", "aten.linear.default", Ref("x"), Ref("scaled")),
    ]
    return _plan(nodes, tensors, ("x", "w", "s"))


def by_blocks(m: int, n: int, k: int, weight: DType, dtype: DType) -> Schedule:
    """The same with a scale for each 32 neighbours along k, as MX formats have it."""
    blocks = k // _BLOCK
    tensors = {"x": meta(dtype, m, k), "w": meta(weight, n, k), "s": meta(dtype, n, blocks, 1)}
    tensors |= {"wide": meta(dtype, n, k), "parts": meta(dtype, n, blocks, _BLOCK)}
    tensors |= {"scaled": meta(dtype, n, blocks, _BLOCK), "whole": meta(dtype, n, k)}
    tensors |= {"y": meta(dtype, m, n)}
    nodes = [
        node("wide", "aten._to_copy.default", Ref("w"), dtype=dtype),
        node("parts", "aten.view.default", Ref("wide"), (n, blocks, _BLOCK)),
        node("scaled", "aten.mul.Tensor", Ref("parts"), Ref("s")),
        node("whole", "aten.view.default", Ref("scaled"), (n, k)),
        node("y", "aten.linear.default", Ref("x"), Ref("whole")),
    ]
    return _plan(nodes, tensors, ("x", "w", "s"))


def _plan(nodes: list[Node], tensors: dict[str, object], inputs: tuple[str, ...]) -> Schedule:
    given = [GraphInput(name, InputKind.USER) for name in inputs]
    return schedule(lower(graph(given, nodes, tensors, (nodes[-1].name,))))  # type: ignore[arg-type]


def scaled_products(m: int = 40, n: int = 48) -> Iterator[tuple[str, Schedule]]:
    """Each with a name; short and long sums."""
    for k in (64, 1024):
        size = (m, n, k)
        for dtype, out in product(FLOATS_8, OUTPUTS):
            label = f"{dtype.label} to {out.label}, k={k}"
            yield f"scaled by one, {label}", narrow_product(*size, dtype, out=out)
            yield f"scaled by lines, {label}", by_lines(*size, dtype, out)
        for weight, dtype in product(NARROW, OUTPUTS):
            label = f"{weight.label} as {dtype.label}, k={k}"
            yield f"converted, {label}", converted_weight(*size, weight, dtype)
            yield f"dequantized, {label}", dequantized(*size, weight, dtype)
            yield f"dequantized by blocks, {label}", by_blocks(*size, weight, dtype)
