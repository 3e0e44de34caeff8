"""Random models: graphs of many ops over random shapes, strides and types, with one symbolic size.

A graph is grown op by op. The reference runs each new node at several values of the symbol, and
the node's sizes follow from what came out: those that grow with the symbol are affine in it. What
the reference cannot do, what leaves the range of its type, and what has too many elements is not
added. Every choice is the generator's, so that one seed is one graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
import sympy

from scheduler.errors import UserError
from scheduler.ir.dtypes import DType
from scheduler.ir.encoding import round_to_dtype
from scheduler.ir.graph import (
    Argument,
    Frame,
    Graph,
    GraphInput,
    InputKind,
    Node,
    Origin,
    Ref,
    SymbolInfo,
    TensorMeta,
)
from scheduler.ir.index.functions import evaluate as evaluate_expr
from scheduler.ir.ops import UnsupportedOpError
from scheduler.ir.promotion import Operand, result_type
from scheduler.reference import evaluate
from tests.support.memory import contiguous

SYMBOL = sympy.Symbol("s0", positive=True, integer=True)
BINDINGS = ({"s0": 5}, {"s0": 8}, {"s0": 33})
_FLOATS = (DType.F32, DType.F32, DType.F16, DType.BF16)
_INTEGERS = (DType.I64, DType.I32, DType.I16, DType.I8, DType.U8)
_MOST_ELEMENTS = 20_000
# The largest values that are let through: sums and products of a few of them stay in range.
_LARGEST = {DType.F16: 60.0, DType.BF16: 1e3, DType.F32: 1e3, DType.F64: 1e3}

_REFUSALS = (UserError, UnsupportedOpError, ArithmeticError, LookupError, ValueError)

_UNARY = (
    *("neg", "abs", "tanh", "sigmoid", "relu", "silu", "gelu", "square", "sin", "cos", "erf"),
    *("exp", "expm1", "hardswish", "mish", "selu", "atan", "floor", "ceil", "trunc", "round"),
    *("sign", "log_sigmoid", "softplus", "elu", "leaky_relu", "hardtanh", "relu6", "sinh"),
)
_OF_POSITIVE = ("sqrt", "rsqrt", "log", "log2", "log1p", "reciprocal")
_BINARY = ("add.Tensor", "sub.Tensor", "mul.Tensor", "maximum.default", "minimum.default")
_SCALAR = ("add.Tensor", "sub.Tensor", "mul.Tensor", "rsub.Scalar", "div.Tensor")
_ORDER = ("gt", "ge", "lt", "le")


class RandomModel:
    """A graph that grows. ``values`` holds an array for each of ``BINDINGS``, by value."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.numbers = np.random.default_rng(rng.getrandbits(32))
        self.tensors: dict[str, TensorMeta] = {}
        self.values: dict[str, tuple[Any, ...]] = {}
        self.inputs: list[GraphInput] = []
        self.nodes: list[Node] = []
        self.float = rng.choice(_FLOATS)

    def graph(self) -> Graph:
        """The whole graph: its outputs are the last value and all that nothing reads."""
        read = {part.name for node in self.nodes for part in _refs((*node.args,))}
        ends = [node.outputs[0] for node in self.nodes if node.outputs[0] not in read]
        more = [node.outputs[0] for node in self.nodes if self.rng.random() < 0.1]
        return Graph(
            "random",
            "0" * 64,
            {"s0": SymbolInfo("s0", 8, 2, 64)},
            tuple(self.inputs),
            tuple(dict.fromkeys([*ends, *more])),
            tuple(self.nodes),
            self.tensors,
            {},
        )

    # -- growing ---------------------------------------------------------------------------------

    def input(self, size: Sequence[Any], dtype: DType, below: int | None = None) -> Ref:
        """A new input: dense in a random order of its dimensions, or with a gap between rows."""
        sizes = tuple(sympy.sympify(extent) for extent in size)
        name = f"x{len(self.inputs)}"
        self.inputs.append(GraphInput(name, InputKind.USER))
        self.tensors[name] = TensorMeta(dtype, sizes, self._stride(sizes))
        self.values[name] = tuple(
            self._random(tuple(evaluate_expr(extent, at) for extent in sizes), dtype, below)
            for at in BINDINGS
        )
        return Ref(name)

    def _stride(self, sizes: tuple[sympy.Expr, ...]) -> tuple[sympy.Expr, ...]:
        order = list(range(len(sizes)))
        if self.rng.random() < 0.4:
            self.rng.shuffle(order)
        stride = [sympy.Integer(0)] * len(sizes)
        step = sympy.Integer(self.rng.choice((1, 1, 1, 1, 2)))
        for d in reversed(order):
            stride[d] = step
            step = step * sizes[d] + self.rng.choice((0, 0, 0, 0, 0, 3))
        return tuple(stride)

    def _random(self, shape: tuple[int, ...], dtype: DType, below: int | None) -> Any:
        if dtype is DType.BOOL:
            return self.numbers.integers(0, 2, shape).astype(bool)
        if not dtype.is_float:
            low, high = (0, below) if below else (-9 if dtype is not DType.U8 else 0, 10)
            return self.numbers.integers(low, high, shape).astype(dtype.numpy)
        return round_to_dtype(self.numbers.standard_normal(shape), dtype)

    def call(self, target: str, dtype: DType | None, *args: Argument, **kwargs: Argument) -> Ref:
        """A node of one result. Raises ``RejectedNode`` where it is better not added."""
        name = f"n{len(self.nodes)}"
        origin = Origin((Frame("model.py", len(self.nodes) + 1, "forward", target),), "m")
        node = Node(name, f"aten.{target}", args, kwargs, (name,), origin)
        dtypes = {n: m.dtype for n, m in self.tensors.items()}
        made = []
        for k, at in enumerate(BINDINGS):
            known = {n: v[k] for n, v in self.values.items()}
            try:
                made.append(np.asarray(evaluate(node, known, at, dtypes=dtypes)[name]))
            except (
                UserError,
                UnsupportedOpError,
                ArithmeticError,
                LookupError,
                ValueError,
            ) as error:
                raise RejectedNode(str(error)) from error
        own = dtype or _dtype_of(made[0])
        self._check(made, own)
        sizes = _affine([value.shape for value in made])
        self.nodes.append(node)
        self.tensors[name] = TensorMeta(own, sizes, contiguous(sizes))
        self.values[name] = tuple(value if own.is_float else value.astype(own.numpy)
                                  for value in made)  # fmt: skip
        return Ref(name)

    def _check(self, made: list[Any], dtype: DType) -> None:
        for value in made:
            if value.size > _MOST_ELEMENTS or value.ndim > 6:
                raise RejectedNode("too large")
            if dtype.is_float and value.size:
                if not np.isfinite(value).all() or np.abs(value).max() > _LARGEST[dtype]:
                    raise RejectedNode("out of range")
            elif dtype is not DType.BOOL and value.size and np.abs(value).max() > 2**30:
                raise RejectedNode("out of range")

    def step(self) -> None:
        """Try ops until one is added."""
        for _ in range(40):
            nodes, inputs = len(self.nodes), len(self.inputs)
            try:
                self.rng.choice(_STEPS)(self)
            except RejectedNode:
                if len(self.nodes) == nodes:
                    self._forget(inputs)
            if len(self.nodes) > nodes:
                return

    def _forget(self, inputs: int) -> None:
        for given in self.inputs[inputs:]:
            del self.tensors[given.name], self.values[given.name]
        del self.inputs[inputs:]

    # -- choosing --------------------------------------------------------------------------------

    def size(self, ref: Ref) -> tuple[sympy.Expr, ...]:
        return self.tensors[ref.name].size

    def dtype(self, ref: Ref) -> DType:
        return self.tensors[ref.name].dtype

    def some(self, fits: Callable[[DType, tuple[sympy.Expr, ...]], bool]) -> Ref:
        """An earlier value, the latest ones more often."""
        found = [n for n, m in self.tensors.items() if fits(m.dtype, m.size)]
        if not found:
            raise RejectedNode("nothing fits")
        return Ref(self.rng.choice(found[-4:] if self.rng.random() < 0.6 else found))

    def floats(self, rank: int = 0) -> Ref:
        return self.some(lambda dtype, size: dtype.is_float and len(size) >= rank)

    def dim(self, ref: Ref) -> int:
        return self.rng.randrange(len(self.size(ref)))

    def extent(self) -> Any:
        return self.rng.choice((1, 2, 3, 4, 6, 7, 8, 16, 17, 33, SYMBOL, SYMBOL))

    def other(self, x: Ref, dtype: DType) -> Ref:
        """What broadcasts with ``x``: an earlier value, or a new input."""
        size = self.size(x)
        fits = [
            n
            for n, m in self.tensors.items()
            if m.dtype is dtype and n != x.name and _broadcasts(m.size, size)
        ]
        if fits and self.rng.random() < 0.7:
            return Ref(self.rng.choice(fits[-6:]))
        kept = [extent if self.rng.random() < 0.7 else 1 for extent in size]
        return self.input(kept[self.rng.randrange(len(kept) + 1) :] if kept else [], dtype)


class RejectedNode(Exception):  # noqa: N818
    """An op that is not added."""


def random_model(rng: Random, steps: int) -> RandomModel:
    """A graph of about so many ops."""
    model = RandomModel(rng)
    for _ in range(rng.choice((1, 1, 2))):
        model.input([model.extent() for _ in range(rng.choice((1, 2, 2, 3, 3, 4)))], model.float)
    for _ in range(steps):
        model.step()
    while not model.nodes:
        _unary(model)
    return model


# -- the ops ------------------------------------------------------------------------------------


def _unary(m: RandomModel) -> None:
    x = m.floats()
    m.call(f"{m.rng.choice(_UNARY)}.default", m.dtype(x), x)


def _of_positive(m: RandomModel) -> None:
    x = m.floats()
    positive = m.call("add.Tensor", m.dtype(x), m.call("abs.default", m.dtype(x), x), 0.5)
    m.call(f"{m.rng.choice(_OF_POSITIVE)}.default", m.dtype(x), positive)


def _binary(m: RandomModel) -> None:
    x = m.some(lambda dtype, _: dtype is not DType.BOOL)
    if m.rng.random() < 0.25:
        y = m.some(lambda dtype, size: dtype is not DType.BOOL and _broadcasts(size, m.size(x)))
    else:
        y = m.other(x, m.dtype(x))
    m.call(m.rng.choice(_BINARY), _promoted(m, x, y), x, y)


def _scalar(m: RandomModel) -> None:
    x = m.floats()
    m.call(m.rng.choice(_SCALAR), m.dtype(x), x, m.rng.choice((0.5, 2, -1.25, 3)))


def _division(m: RandomModel) -> None:
    x = m.floats()
    divisor = m.rng.choice((0.75, 2.5, -1.5, 3))
    kind = m.rng.choice(("floor_divide.default", "remainder.Scalar", "fmod.Scalar", "trunc"))
    if kind == "trunc":
        m.call("div.Tensor_mode", m.dtype(x), x, divisor, rounding_mode="trunc")
    else:
        m.call(kind, m.dtype(x), x, divisor)


def _integers(m: RandomModel) -> None:
    x = m.some(lambda dtype, _: dtype in _INTEGERS)
    kind = m.rng.choice(("add", "sub", "mul", "and", "or", "xor", "floor", "rem", "trunc", "neg"))
    dtype, number = m.dtype(x), m.rng.choice((1, 2, 3, 7))
    if kind in ("add", "sub", "mul"):
        m.call(f"{kind}.Tensor", dtype, x, m.other(x, dtype))
    elif kind in ("and", "or", "xor"):
        m.call(f"bitwise_{kind}.Tensor", dtype, x, m.other(x, dtype))
    elif kind == "floor":
        m.call("floor_divide.default", dtype, x, number)
    elif kind == "rem":
        m.call("remainder.Scalar", dtype, x, -number if dtype is not DType.U8 else number)
    elif kind == "trunc":
        m.call("div.Tensor_mode", dtype, x, number, rounding_mode="trunc")
    else:
        m.call("neg.default", dtype, x)


def _new_integers(m: RandomModel) -> None:
    like = m.some(lambda _, size: len(size) > 0)
    m.input(m.size(like), m.rng.choice(_INTEGERS))


def _compare(m: RandomModel) -> None:
    x = m.some(lambda dtype, _: dtype is not DType.BOOL)
    # Whether rounded results are equal says nothing: floats are compared by order.
    op = m.rng.choice(_ORDER if m.dtype(x).is_float else (*_ORDER, "eq", "ne"))
    if m.rng.random() < 0.5:
        m.call(f"{op}.Scalar", DType.BOOL, x, m.rng.choice((0, 1, 2)))
    else:
        m.call(f"{op}.Tensor", DType.BOOL, x, m.other(x, m.dtype(x)))


def _where(m: RandomModel) -> None:
    x = m.floats()
    test = m.some(lambda dtype, size: dtype is DType.BOOL and _broadcasts(size, m.size(x)))
    if m.rng.random() < 0.4:
        m.call("masked_fill.Scalar", m.dtype(x), x, test, m.rng.choice((0.0, -2.5)))
    else:
        m.call("where.self", m.dtype(x), test, x, m.other(x, m.dtype(x)))


def _logic(m: RandomModel) -> None:
    x = m.some(lambda dtype, _: dtype is DType.BOOL)
    if m.rng.random() < 0.4:
        m.call("logical_not.default", DType.BOOL, x)
    else:
        op = m.rng.choice(("logical_and.default", "logical_or.default", "bitwise_xor.Tensor"))
        m.call(op, DType.BOOL, x, m.other(x, DType.BOOL))


def _clamp(m: RandomModel) -> None:
    x = m.floats()
    m.call("clamp.default", m.dtype(x), x, m.rng.choice((None, -0.5)), 0.75)


def _convert(m: RandomModel) -> None:
    x = m.some(lambda _, size: True)
    dtype = m.rng.choice((*_FLOATS, DType.F32, DType.F64, DType.I32, DType.I64, DType.BOOL))
    m.call("to.dtype", dtype, x, dtype)


def _permute(m: RandomModel) -> None:
    x = m.some(lambda _, size: len(size) > 1)
    order = list(range(len(m.size(x))))
    m.rng.shuffle(order)
    m.call("permute.default", m.dtype(x), x, tuple(order))


def _flatten(m: RandomModel) -> None:
    x = m.some(lambda _, size: len(size) > 1)
    first = m.rng.randrange(len(m.size(x)) - 1)
    m.call("flatten.using_ints", m.dtype(x), x, first, m.rng.randrange(first, len(m.size(x))))


def _reshape(m: RandomModel) -> None:
    x = m.some(lambda _, size: len(size) > 0)
    d = m.dim(x)
    extent = m.size(x)[d]
    coefficient = int(extent.as_coeff_Mul()[0]) if extent else 0
    factors = [f for f in (2, 3, 4, 8) if coefficient and coefficient % f == 0]
    if not factors:
        raise RejectedNode("prime")
    factor = m.rng.choice(factors)
    parts = [extent / factor, sympy.Integer(factor)]
    m.rng.shuffle(parts)
    size = (*m.size(x)[:d], *parts, *m.size(x)[d + 1 :])
    m.call("reshape.default", m.dtype(x), x, tuple(_plain(extent) for extent in size))


def _slice(m: RandomModel) -> None:
    x = m.some(lambda _, size: len(size) > 0)
    d = m.dim(x)
    start, end = m.rng.choice(((0, 2), (1, 2**63 - 1), (0, -1), (-3, 2**63 - 1), (1, -1)))
    m.call("slice.Tensor", m.dtype(x), x, d, start, end, m.rng.choice((1, 1, 2, 3)))


def _select(m: RandomModel) -> None:
    x = m.some(lambda _, size: len(size) > 0)
    m.call("select.int", m.dtype(x), x, m.dim(x), m.rng.choice((0, -1, 1)))


def _expand(m: RandomModel) -> None:
    x = m.some(lambda _, size: len(size) < 4)
    size = tuple(
        m.rng.choice((3, SYMBOL)) if extent == 1 else _plain(extent) for extent in m.size(x)
    )
    m.call("expand.default", m.dtype(x), x, (m.rng.choice((1, 2)), *size))


def _unsqueeze(m: RandomModel) -> None:
    x = m.some(lambda _, size: len(size) < 5)
    m.call("unsqueeze.default", m.dtype(x), x, m.rng.randrange(len(m.size(x)) + 1))


def _squeeze(m: RandomModel) -> None:
    x = m.some(lambda _, size: 1 in size)
    m.call("squeeze.dim", m.dtype(x), x, m.size(x).index(sympy.Integer(1)))


def _moved(m: RandomModel) -> None:
    x = m.some(lambda _, size: len(size) > 0)
    d = m.dim(x)
    kind = m.rng.choice(("flip", "roll", "repeat", "tril", "pad", "diagonal"))
    if kind == "flip":
        m.call("flip.default", m.dtype(x), x, (d,))
    elif kind == "roll":
        m.call("roll.default", m.dtype(x), x, (m.rng.choice((1, -2)),), (d,))
    elif kind == "repeat":
        m.call("repeat.default", m.dtype(x), x, (2, *([1] * (len(m.size(x)) - 1))))
    elif kind == "pad":
        m.call("constant_pad_nd.default", m.dtype(x), x, m.rng.choice(((1, 2), (0, 3), (2, -1))), 1)
    elif len(m.size(x)) > 1:
        op = m.rng.choice(("tril.default", "triu.default", "diagonal.default"))
        m.call(op, m.dtype(x), x, m.rng.choice((-1, 0, 1)))


def _join(m: RandomModel) -> None:
    x = m.some(lambda _, size: len(size) > 0)
    same = m.some(lambda dtype, size: dtype is m.dtype(x) and size == m.size(x))
    d = m.dim(x)
    if m.rng.random() < 0.3:
        m.call("stack.default", m.dtype(x), (x, same), d)
        return
    size = list(m.size(x))
    size[d] = m.rng.choice((1, 3, SYMBOL))
    parts = [x, same, m.input(size, m.dtype(x))]
    m.rng.shuffle(parts)
    m.call("cat.default", m.dtype(x), tuple(parts[: m.rng.choice((2, 3))]), d)


def _reduce(m: RandomModel) -> None:
    x = m.floats(1)
    op = m.rng.choice(("sum.dim_IntList", "mean.dim", "amax.default", "amin.default", "var"))
    dims = tuple(m.rng.sample(range(len(m.size(x))), m.rng.choice((1, 1, 1, 2)) % 3 or 1)) \
        if len(m.size(x)) > 1 else (0,)  # fmt: skip
    keep = m.rng.random() < 0.5
    if op == "var":
        m.call("var.correction", m.dtype(x), x, dims, correction=m.rng.choice((0, 1)), keepdim=keep)
    else:
        m.call(op, m.dtype(x), x, dims, keep)


def _reduce_exactly(m: RandomModel) -> None:
    kind = m.rng.choice(("argmax", "argmin", "any", "all", "sum", "amax", "sum of bools"))
    if kind in ("argmax", "argmin"):
        x = m.floats(1)
        m.call(f"{kind}.default", DType.I64, x, m.dim(x), m.rng.random() < 0.5)
    elif kind in ("any", "all"):
        x = m.some(lambda dtype, size: dtype is DType.BOOL and len(size) > 0)
        m.call(f"{kind}.dim", DType.BOOL, x, m.dim(x), m.rng.random() < 0.5)
    elif kind == "sum of bools":
        x = m.some(lambda dtype, size: dtype is DType.BOOL and len(size) > 0)
        m.call("sum.dim_IntList", DType.I64, x, (m.dim(x),), False)
    else:
        x = m.some(lambda dtype, size: dtype in _INTEGERS and len(size) > 0)
        if kind == "sum":
            m.call("sum.dim_IntList", DType.I64, x, (m.dim(x),), m.rng.random() < 0.5)
        else:
            m.call("amax.default", m.dtype(x), x, (m.dim(x),), m.rng.random() < 0.5)


def _scan(m: RandomModel) -> None:
    x = m.some(lambda dtype, size: dtype in (*_FLOATS, DType.I64) and len(size) > 0)
    m.call("cumsum.default", m.dtype(x), x, m.dim(x))


def _norm(m: RandomModel) -> None:
    x = m.floats(2)
    dtype, last = m.dtype(x), m.size(x)[-1]
    kind = m.rng.choice(("softmax", "log_softmax", "layer_norm", "rms_norm"))
    if kind in ("softmax", "log_softmax"):
        m.call(f"{kind}.int", dtype, x, m.dim(x))
    elif kind == "layer_norm":
        weight = (m.input([last], dtype), m.input([last], dtype)) if m.rng.random() < 0.6 else ()
        m.call("layer_norm.default", dtype, x, (_plain(last),), *weight)
    else:
        m.call("rms_norm.default", dtype, x, (_plain(last),), m.input([last], dtype), 1e-3)


def _matmul(m: RandomModel) -> None:
    x = m.floats(2)
    dtype, size = m.dtype(x), m.size(x)
    columns = m.rng.choice((1, 5, 16, 24, SYMBOL))
    kind = m.rng.choice(("matmul", "linear", "bmm", "addmm", "self"))
    if kind == "linear":
        bias = (m.input([columns], dtype),) if m.rng.random() < 0.6 else ()
        m.call("linear.default", dtype, x, m.input([columns, size[-1]], dtype), *bias)
    elif kind == "addmm" and len(size) == 2:
        bias = m.input(m.rng.choice(([columns], [size[0], 1], [size[0], columns])), dtype)
        m.call("addmm.default", dtype, bias, x, m.input([size[1], columns], dtype))
    elif kind == "bmm" and len(size) == 3:
        m.call("bmm.default", dtype, x, m.input([size[0], size[2], columns], dtype))
    elif kind == "self":
        turned = m.call("transpose.int", dtype, x, -2, -1)
        m.call("matmul.default", dtype, x, turned)
    else:
        m.call("matmul.default", dtype, x, m.input([size[-1], columns], dtype))


def _attention(m: RandomModel) -> None:
    q = m.floats(3)
    dtype, size = m.dtype(q), m.size(q)
    if not size[-1].is_Integer or dtype is DType.F64:
        raise RejectedNode("the depth must be static")
    columns, depth = m.rng.choice((4, 19, SYMBOL)), m.rng.choice((int(size[-1]), 8, 24))
    k = m.input([*size[:-2], columns, size[-1]], dtype)
    v = m.input([*size[:-2], columns, depth], dtype)
    kind = m.rng.choice(("plain", "mask", "bias", "causal"))
    mask = {"mask": DType.BOOL, "bias": dtype}.get(kind)
    extra: list[Argument] = [] if mask is None else [m.input([size[-2], columns], mask)]
    if kind == "causal":
        extra = [None, 0.0, True]
    m.call("scaled_dot_product_attention.default", dtype, q, k, v, *extra)


def _convolution(m: RandomModel) -> None:
    x = m.some(lambda dtype, size: dtype.is_float and len(size) == 4)
    dtype, channels = m.dtype(x), m.size(x)[1]
    if not channels.is_Integer or channels == 0:
        raise RejectedNode("channels must be static")
    groups = int(channels) if m.rng.random() < 0.3 else 1
    weight = m.input([groups * 2, int(channels) // groups, m.rng.choice((1, 3)), 3], dtype)
    m.call(
        *("conv2d.default", dtype, x, weight, None),
        *(m.rng.choice(((1, 1), (2, 1))), (1, 1), m.rng.choice(((1, 1), (1, 2))), groups),
    )


def _pool(m: RandomModel) -> None:
    x = m.some(lambda dtype, size: dtype.is_float and len(size) in (3, 4))
    op = m.rng.choice(("max_pool2d.default", "avg_pool2d.default"))
    m.call(op, m.dtype(x), x, (2, 3), m.rng.choice(((1, 1), (2, 2))), (1, 1))


def _tables(m: RandomModel) -> None:
    x = m.floats(2)
    dtype, size = m.dtype(x), m.size(x)
    least = min(evaluate_expr(size[0], at) for at in BINDINGS)
    kind = m.rng.choice(("embedding", "index_select", "gather", "index"))
    rows = [m.rng.choice((2, 5, SYMBOL))]
    if kind == "embedding" and len(size) == 2:
        m.call("embedding.default", dtype, x, m.input([3, *rows], DType.I64, least))
    elif kind == "gather":
        m.call("gather.default", dtype, x, 0, m.input([*rows, *size[1:]], DType.I64, least))
    elif kind == "index":
        m.call("index.Tensor", dtype, x, (m.input(rows, DType.I64, least),))
    else:
        m.call("index_select.default", dtype, x, 0, m.input(rows, DType.I64, least))


def _made(m: RandomModel) -> None:
    x = m.floats(1)
    last = _plain(m.size(x)[-1])
    kind = m.rng.choice(("arange", "full", "zeros_like"))
    if kind == "arange":
        positions = m.call("arange.default", DType.I64, last)
        m.call("mul.Tensor", m.dtype(x), x, positions)
    elif kind == "full":
        constant = m.call("full.default", DType.F32, (last,), 0.5)
        m.call("add.Tensor", _promoted(m, x, constant), x, constant)
    else:
        m.call("add.Tensor", m.dtype(x), x, m.call("ones_like.default", m.dtype(x), x))


def _in_place(m: RandomModel) -> None:
    x = m.some(lambda dtype, size: dtype.is_float and len(size) > 1)
    dtype = m.dtype(x)
    own = m.call("clone.default", dtype, x)
    part = m.call("slice.Tensor", dtype, own, m.dim(x), 0, 1)
    twice = m.call("mul_.Tensor", dtype, part, 2.0)
    for memory, written in zip(m.values[part.name], m.values[twice.name], strict=True):
        memory[...] = written
    m.call("add.Tensor", dtype, own, x)


def _without_kernel(m: RandomModel) -> None:
    """Ops that run through the reference, between kernels."""
    x = m.floats(1)
    d = m.dim(x)
    least = min(evaluate_expr(m.size(x)[d], at) for at in BINDINGS)
    index = m.input([1 if axis == d else n for axis, n in enumerate(m.size(x))], DType.I64, least)
    m.call("scatter.value", m.dtype(x), x, d, index, 2.0)


_STEPS: tuple[Callable[[RandomModel], None], ...] = (
    *(_unary, _unary, _of_positive, _binary, _binary, _binary, _scalar, _division, _integers),
    *(_new_integers, _compare, _where, _where, _logic, _clamp, _convert, _permute, _permute),
    *(_flatten, _reshape, _reshape, _slice, _slice, _select, _expand, _unsqueeze, _squeeze),
    *(_moved, _moved, _join, _join, _reduce, _reduce, _reduce_exactly, _scan, _norm, _norm),
    *(
        _matmul,
        _matmul,
        _attention,
        _convolution,
        _pool,
        _tables,
        _made,
        _in_place,
        _without_kernel,
    ),
)


# -- shapes and types -----------------------------------------------------------------------------


def _affine(shapes: list[tuple[int, ...]]) -> tuple[sympy.Expr, ...]:
    """Sizes as ``a * s0 + b`` through those at ``BINDINGS``."""
    if len({len(shape) for shape in shapes}) != 1:
        raise RejectedNode("the rank depends on the size")
    at = [one["s0"] for one in BINDINGS]
    sizes = []
    for extents in zip(*shapes, strict=True):
        slope = sympy.Rational(extents[1] - extents[0], at[1] - at[0])
        size = slope * SYMBOL + (extents[0] - slope * at[0])
        if not slope.is_Integer or size.subs({SYMBOL: at[2]}) != extents[2]:
            raise RejectedNode("a size is not affine in the symbol")
        sizes.append(sympy.sympify(size))
    return tuple(sizes)


def _plain(extent: Any) -> Any:
    expr = sympy.sympify(extent)
    return int(expr) if expr.is_Integer else expr


def _broadcasts(one: tuple[sympy.Expr, ...], other: tuple[sympy.Expr, ...]) -> bool:
    """Whether ``one`` fits into ``other`` without making it larger."""
    pairs = zip(reversed(one), reversed(other), strict=False)
    return len(one) <= len(other) and all(a in (b, 1) for a, b in pairs)


def _promoted(m: RandomModel, *refs: Ref) -> DType:
    return result_type(Operand(m.dtype(ref), 2 if m.size(ref) else 1) for ref in refs)


def _dtype_of(value: Any) -> DType:
    return next(dtype for dtype in DType if dtype.numpy == value.dtype.name)


def _refs(arguments: tuple[Argument, ...]) -> list[Ref]:
    found: list[Ref] = []
    for argument in arguments:
        if isinstance(argument, Ref):
            found.append(argument)
        elif isinstance(argument, tuple):
            found += _refs(argument)
    return found
