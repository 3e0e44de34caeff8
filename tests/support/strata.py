"""One problem for every stratum of configurations: a template, a layout of its operands, a type,
and sizes that are fixed or not. What the rules let through differs from one to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import sympy

from scheduler.fusion import schedule
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import GraphInput, InputKind, Node, Ref, SymbolInfo
from scheduler.ir.index.functions import symbol
from scheduler.lowering import lower
from tests.support.narrow import NARROW, narrow_product
from tests.support.tf32 import linear, row_major
from tests.unit.lowering.graphs import graph, meta, node
from tests.unit.matrix.contractions import Size, convolution, matmul

FLOATS = (DType.F16, DType.BF16, DType.F32, DType.F64)
ROWS = symbol("s0")
SYMBOLS = {"s0": SymbolInfo("s0", 296, 1, None)}


@dataclass(frozen=True)
class Stratum:
    """A problem of one node."""

    name: str
    dtype: DType
    plan: Schedule

    @property
    def title(self) -> str:
        return f"{self.name}, {self.dtype.label}"


def strata() -> Iterator[Stratum]:
    """All of them."""
    for layouts in (LOOPS, MATRICES, UNKNOWN_ROWS):
        for name, make in layouts.items():
            for dtype in FLOATS:
                yield Stratum(name, dtype, make(dtype))
    for name, make in NARROW_MATRICES.items():
        for dtype in NARROW:
            yield Stratum(name, dtype, make(dtype))
    yield Stratum("tf32, linear", DType.F32, linear(296, 264, 256))
    yield Stratum("tf32, mm", DType.F32, row_major(296, 264, 256))


def unary(
    target: str,
    dtype: DType,
    size: tuple[Size, ...],
    made: tuple[Size, ...],
    *args: object,
    stride: tuple[int, ...] | None = None,
) -> Schedule:
    """One op of one tensor."""
    tensors = {"x": meta(dtype, *size, stride=stride), "y": meta(dtype, *made)}
    op: Node = node("y", target, Ref("x"), *args)  # type: ignore[arg-type]
    symbols = SYMBOLS if any(isinstance(one, sympy.Expr) for one in size) else None
    return schedule(lower(graph([GraphInput("x", InputKind.USER)], [op], tensors, ("y",), symbols)))


def attention(dtype: DType, depth: int, *, causal: bool = False) -> Schedule:
    """Two sequences of 128, four heads."""
    tensors = {name: meta(dtype, 2, 4, 128, depth) for name in "qkvo"}
    op = node(
        "o",
        "aten.scaled_dot_product_attention.default",
        *(Ref(name) for name in "qkv"),
        **({"is_causal": True} if causal else {}),
    )
    inputs = [GraphInput(name, InputKind.USER) for name in "qkv"]
    return schedule(lower(graph(inputs, [op], tensors, ("o",))))


LOOPS: dict[str, Callable[[DType], Schedule]] = {
    "pointwise": lambda t: unary("aten.tanh.default", t, (96, 768), (96, 768)),
    "pointwise, turned": lambda t: unary(
        "aten.tanh.default", t, (96, 768), (96, 768), stride=(1, 96)
    ),
    "reduction, rows": lambda t: unary("aten.sum.dim_IntList", t, (96, 768), (96,), (1,)),
    "reduction, columns": lambda t: unary("aten.sum.dim_IntList", t, (768, 96), (96,), (0,)),
    "reduction, odd rows": lambda t: unary("aten.sum.dim_IntList", t, (96, 767), (96,), (1,)),
    "reduction, softmax": lambda t: unary("aten.softmax.int", t, (96, 768), (96, 768), -1),
    "reduction, layer norm": lambda t: unary(
        "aten.layer_norm.default", t, (96, 768), (96, 768), [768], None, None, 1e-5
    ),
    "scan": lambda t: unary("aten.cumsum.default", t, (96, 768), (96, 768), 1),
    "attention, 32 deep": lambda t: attention(t, 32),
    "attention, 64 deep": lambda t: attention(t, 64),
}
# Rows and channels that fill no tile, and an axis along which loads may be wide.
MATRICES: dict[str, Callable[[DType], Schedule]] = {
    "mm": lambda t: matmul(296, 264, 256, t),
    "linear": lambda t: matmul(296, 264, 256, t, b_transposed=True),
    "strided": lambda t: matmul(296, 264, 256, t, a_stride=(1, 320)),
    "bmm": lambda t: matmul(296, 264, 256, t, batch=3, b_transposed=True),
    "conv2d": lambda t: convolution((1, 8, 56, 56), (72, 8, 7, 7), t, padding=3),
    "conv2d_channels_last": lambda t: convolution(
        (1, 8, 56, 56), (72, 8, 7, 7), t, padding=3, channels_last=True
    ),
}
NARROW_MATRICES: dict[str, Callable[[DType], Schedule]] = {
    "8 bits, mm": lambda t: narrow_product(296, 264, 256, t, row_major=True),
    "8 bits, linear": lambda t: narrow_product(296, 264, 256, t, out=DType.BF16),
    "8 bits, any rows": lambda t: narrow_product(ROWS, 264, 256, t, symbols=SYMBOLS),
}
UNKNOWN_ROWS: dict[str, Callable[[DType], Schedule]] = {
    "linear, any rows": lambda t: matmul(
        ROWS, 264, 256, t, b_transposed=True, bias=[264], relu=True, symbols=SYMBOLS
    ),
    "pointwise, any rows": lambda t: unary("aten.tanh.default", t, (ROWS, 768), (ROWS, 768)),
    "reduction, any rows": lambda t: unary("aten.sum.dim_IntList", t, (ROWS, 768), (ROWS,), (1,)),
    "reduction, any length": lambda t: unary("aten.sum.dim_IntList", t, (ROWS, 96), (96,), (0,)),
    "scan, any rows": lambda t: unary("aten.cumsum.default", t, (ROWS, 96), (ROWS, 96), 1),
    "attention, causal": lambda t: attention(t, 64, causal=True),
}
