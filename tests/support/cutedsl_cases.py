"""Small problems that CuteDSL serves or not: every kind of node, with types, sizes (none, odd,
symbolic), layouts and epilogues drawn at random."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

import sympy

from scheduler.fusion import schedule
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Argument, GraphInput, InputKind, Node, Ref, SymbolInfo
from scheduler.ir.index.functions import symbol
from scheduler.lowering import lower
from tests.support.narrow import NARROW, converted_weight, narrow_product
from tests.support.strata import attention
from tests.unit.codegen.test_attention_kernels import attention_node
from tests.unit.lowering.graphs import graph, meta, node
from tests.unit.matrix.contractions import (
    Size,
    convolution,
    gathered_gelu,
    matmul,
    scores,
    shared_input,
)

SYMBOL = symbol("s0")
BINDINGS: Mapping[str, int] = {"s0": 5}
_SYMBOLS = {"s0": SymbolInfo("s0", 5, 0, None)}
_SIZES: tuple[Size, ...] = (0, 1, 3, 7, 129, SYMBOL)
_FLOATS = (DType.F16, DType.F16, DType.BF16, DType.F32, DType.F64)
_TYPES = tuple(DType)


def _sizes(random: Random, count: int) -> list[Size]:
    """At most one of them symbolic."""
    found = [random.choice(_SIZES) for _ in range(count)]
    symbolic = [place for place, size in enumerate(found) if isinstance(size, sympy.Expr)]
    for place in symbolic[1:]:
        found[place] = 7
    return found


def _of(nodes: list[Node], tensors: Mapping[str, object], inputs: str) -> Schedule:
    given = [GraphInput(name, InputKind.USER) for name in inputs]
    return schedule(lower(graph(given, nodes, dict(tensors), (nodes[-1].name,), _SYMBOLS)))  # type: ignore[arg-type]


def _product(random: Random) -> Schedule:
    m, n, k = _sizes(random, 3)
    dtype = random.choice(_TYPES if random.random() < 0.4 else _FLOATS)
    rows = m if isinstance(m, int) else 129
    options = random.choice(
        [
            {},
            {"b_transposed": True},
            {"bias": (n,), "relu": dtype.is_float},
            {"bias": (m, 1), "b_transposed": True},
            {"a_stride": (1, max(rows, 1))},
            {"batch": 2},
        ]
    )
    return matmul(m, n, k, dtype, symbols=_SYMBOLS, **options)  # type: ignore[arg-type]


def _grouped(random: Random) -> Schedule:
    dtype = random.choice(_FLOATS)
    columns = [random.choice((0, 1, 7, 16)) for _ in range(3)]
    return random.choice(
        [
            shared_input(3, columns, 7, dtype),
            scores(2, 3, 2, SYMBOL, SYMBOL, 7, dtype, symbols=_SYMBOLS),
            gathered_gelu(3, 7, 5, 9, dtype),
        ]
    )


def _epilogue(random: Random) -> Schedule:
    """A linear and what follows it, as fusion puts them together."""
    m, n, k = _sizes(random, 3)
    dtype = random.choice((DType.F16, DType.BF16))
    made = random.choice(("tanh", "erfinv", "gelu", "lgamma", "cast"))
    stored = random.choice((DType.F8E4M3FN, DType.U64, DType.C64, DType.F64, DType.BOOL))
    after: Node = node("z", f"aten.{made}.default", Ref("y"))
    if made == "cast":
        after = node("z", "aten._to_copy.default", Ref("y"), dtype=stored)
    tensors = {"x": meta(dtype, m, k), "w": meta(dtype, n, k), "y": meta(dtype, m, n)}
    tensors["z"] = meta(stored if made == "cast" else dtype, m, n)
    return _of([node("y", "aten.linear.default", Ref("x"), Ref("w")), after], tensors, "xw")


def _windows(random: Random) -> Schedule:
    images, channels = random.choice((0, 1, 2)), random.choice((1, 3, 64))
    groups, kernel = random.choice((1, channels)), random.choice((1, 3))
    return convolution(
        (images, channels, 7, 5),
        (groups * random.choice((1, 3)), channels // groups, kernel, kernel),
        random.choice(_FLOATS),
        padding=random.choice((0, 1, 3)),
        stride=random.choice((1, 2)),
        groups=groups,
        channels_last=random.random() < 0.5,
        bias=random.random() < 0.5,
    )


def _narrow(random: Random) -> Schedule:
    m, n, k = (random.choice((1, 3, 7, 16)) for _ in range(3))
    if random.random() < 0.5:
        return narrow_product(m, n, k, random.choice(NARROW), row_major=random.random() < 0.5)
    weight = random.choice((*NARROW, DType.U8))
    return converted_weight(m, n, k, weight, random.choice(_FLOATS))


def _attention(random: Random) -> Schedule:
    dtype = random.choice(_FLOATS)
    if random.random() < 0.5:
        return attention(
            dtype, random.choice((0, 1, 7, 64, 129, 300)), causal=random.random() < 0.5
        )
    depth, value_depth = (random.choice((0, 1, 7, 40, 129, 257)) for _ in range(2))
    made, lowered = attention_node(
        *(dtype, random.choice((0, 1, 7)), random.choice((0, 1, 129)), depth, value_depth),
        mask=random.choice((None, DType.BOOL, DType.F16, DType.F64)),
        computed=random.random() < 0.5,
        scale=random.choice((0.0, -0.2, 0.5)),
    )
    return Schedule(lowered, (made,), (), {}, {})


_ONE: Mapping[str, tuple[Argument, ...]] = {
    **{f"aten.{name}.default": () for name in ("tanh", "erfinv", "neg", "lgamma", "sigmoid")},
    "aten.softmax.int": (-1, None),
    "aten.cumsum.default": (0, None),
    "aten.mul.Scalar": (3,),
}


def _loops(random: Random) -> Schedule:
    dtype = random.choice(_FLOATS)
    size = _sizes(random, random.choice((1, 2)))
    target = random.choice(sorted(_ONE))
    return _of(
        [node("y", target, Ref("x"), *_ONE[target])],
        {"x": meta(dtype, *size), "y": meta(dtype, *size)},
        "x",
    )


def _converted(random: Random) -> Schedule:
    """From every type to every other, rows to columns."""
    source, target = random.choice(_TYPES), random.choice(_TYPES)
    rows, columns = random.choice((0, 1, 7)), random.choice((1, 3))
    return _of(
        [node("y", "aten._to_copy.default", Ref("x"), dtype=target)],
        {
            "x": meta(source, rows, columns, stride=(1, max(rows, 1))),
            "y": meta(target, rows, columns),
        },
        "x",
    )


KINDS: Mapping[str, Callable[[Random], Schedule]] = {
    "product": _product,
    "grouped": _grouped,
    "epilogue": _epilogue,
    "windows": _windows,
    "8 bits": _narrow,
    "attention": _attention,
    "loops": _loops,
    "converted": _converted,
}
