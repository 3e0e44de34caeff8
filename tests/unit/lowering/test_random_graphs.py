"""Random graphs of many ops, shapes, strides and types agree with the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.fusion import schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Ref
from scheduler.lowering import lower
from tests.support.missed_fusions import missed_fusions
from tests.unit.lowering.graphs import GraphBuilder
from tests.unit.lowering.running import run_lowered, run_schedule

_UNARY = ("neg", "abs", "tanh", "sigmoid", "relu", "sin", "silu", "gelu", "square")
_BINARY = ("add.Tensor", "sub.Tensor", "mul.Tensor", "maximum.default", "minimum.default")
_COMPARE = ("gt.Tensor", "le.Tensor", "ne.Tensor")
_REDUCE = ("sum.dim_IntList", "mean.dim", "amax.default", "var.correction")
_FLOATS = (DType.F64, DType.F32, DType.F16, DType.BF16)
# All values stay small, and no reduction is over nothing.
_SIZES = st.sampled_from([1, 2, 3, 4, 6])


class Draw:
    """One random graph, op by op."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.b = GraphBuilder()
        self.rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
        self.dtype = data.draw(st.sampled_from(_FLOATS))

    def pick(self, options: Any) -> Any:
        return self.data.draw(st.sampled_from(list(options)))

    def size(self, name: str) -> tuple[int, ...]:
        return tuple(int(s) for s in self.b.tensors[name].size)

    def input(self) -> str:
        shape = tuple(self.data.draw(st.lists(_SIZES, min_size=1, max_size=4)))
        order = self.data.draw(st.permutations(range(len(shape))))
        strides = [0] * len(shape)
        step = 1
        for d in order:
            strides[d] = step
            step *= shape[d]
        return self.b.input(self.rng.standard_normal(shape), self.dtype, tuple(strides))

    def floats(self) -> list[str]:
        return [n for n, m in self.b.tensors.items() if m.dtype is self.dtype]

    def like(self, name: str) -> str:
        """A value that broadcasts with ``name``: an earlier one, or a new input."""
        size = self.size(name)
        fits = [n for n in self.floats() if _broadcasts(self.size(n), size)]
        return self.pick(fits)

    def step(self) -> None:
        x = self.pick(self.floats())
        choice = self.pick(
            (
                "unary",
                "binary",
                "binary",
                "view",
                "reduce",
                "matmul",
                "where",
                "cat",
                "norm",
                "scan",
            )
        )
        getattr(self, f"_{choice}")(x)

    def call(self, target: str, *args: Any, **kwargs: Any) -> str:
        return self.b.call(f"aten.{target}", *args, dtype=self.dtype, **kwargs)

    def _unary(self, x: str) -> None:
        self.call(f"{self.pick(_UNARY)}.default", Ref(x))

    def _binary(self, x: str) -> None:
        self.call(self.pick(_BINARY), Ref(x), Ref(self.like(x)))

    def _where(self, x: str) -> None:
        y = self.like(x)
        test = self.b.call(f"aten.{self.pick(_COMPARE)}", Ref(x), Ref(y))
        self.call("where.self", Ref(test), Ref(x), Ref(y))

    def _view(self, x: str) -> None:
        size = self.size(x)
        rank = len(size)
        kind = self.pick(("permute", "reshape", "slice", "expand", "select", "flip", "repeat"))
        d = self.pick(range(rank)) if rank else 0
        if kind == "permute":
            self.call(
                "permute.default", Ref(x), tuple(self.data.draw(st.permutations(range(rank))))
            )
        elif kind == "reshape":
            self.call("reshape.default", Ref(x), self._factors(int(np.prod(size))))
        elif kind == "expand":
            self.call("expand.default", Ref(x), (2, *size))
        elif not rank:
            return
        elif kind == "slice":
            start = self.data.draw(st.integers(0, size[d] - 1))
            self.call("slice.Tensor", Ref(x), d, start, size[d], self.pick((1, 2)))
        elif kind == "select":
            self.call("select.int", Ref(x), d, self.data.draw(st.integers(-size[d], size[d] - 1)))
        elif kind == "flip":
            self.call("flip.default", Ref(x), (d,))
        elif int(np.prod(size)) <= 64:
            self.call("repeat.default", Ref(x), (2, *([1] * (rank - 1))))

    def _factors(self, number: int) -> tuple[int, ...]:
        factors = []
        while number > 1 and len(factors) < 3:
            factor = self.pick([f for f in range(1, number + 1) if number % f == 0])
            factors.append(factor)
            number //= factor
        return (*factors, number)

    def _reduce(self, x: str) -> None:
        size = self.size(x)
        if not size:
            return
        d = self.pick(range(len(size)))
        target = self.pick(_REDUCE)
        if target == "var.correction":
            self.call(target, Ref(x), (d,), correction=0, keepdim=self.pick((True, False)))
        else:
            self.call(target, Ref(x), (d,), self.pick((True, False)))

    def _norm(self, x: str) -> None:
        size = self.size(x)
        if not size:
            return
        if self.pick((True, False)):
            self.call("softmax.int", Ref(x), self.pick(range(len(size))))
        else:
            self.call("layer_norm.default", Ref(x), size[-1:])

    def _scan(self, x: str) -> None:
        size = self.size(x)
        if size:
            self.call("cumsum.default", Ref(x), self.pick(range(len(size))))

    def _matmul(self, x: str) -> None:
        size = self.size(x)
        if not size:
            return
        weight = self.b.input(
            self.rng.standard_normal((size[-1], self.data.draw(_SIZES))), self.dtype
        )
        self.call("matmul.default", Ref(x), Ref(weight))

    def _cat(self, x: str) -> None:
        size = self.size(x)
        fits = [n for n in self.floats() if self.size(n) == size]
        if size and int(np.prod(size)) <= 64:
            d = self.pick(range(len(size)))
            self.call("cat.default", (Ref(x), Ref(self.pick(fits))), d)


def _broadcasts(size: tuple[int, ...], other: tuple[int, ...]) -> bool:
    pairs = zip(reversed(size), reversed(other), strict=False)
    return all(a == b or 1 in (a, b) for a, b in pairs)


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_graphs_agree_with_the_reference(data: st.DataObject) -> None:
    draw = Draw(data)
    for _ in range(data.draw(st.integers(1, 2))):
        draw.input()
    for _ in range(data.draw(st.integers(1, 9))):
        draw.step()
    names = [n.name for n in draw.b.nodes]
    if not names:
        return
    more = data.draw(st.lists(st.sampled_from(names), max_size=2))
    graph = draw.b.graph(*dict.fromkeys([names[-1], *more]))
    inputs = {i.name: draw.b.values[i.name] for i in draw.b.inputs}
    lowered = lower(graph)
    fused = schedule(lowered)
    for what, got in (
        ("lowered", run_lowered(lowered, inputs, {})),
        ("unfused", run_schedule(schedule(lowered, fuse=False), inputs, {})),
        ("fused", run_schedule(fused, inputs, {})),
    ):
        for output, value in got.items():
            np.testing.assert_allclose(
                value, draw.b.values[output], rtol=1e-8, atol=1e-8, err_msg=f"{what} {output}"
            )
    assert missed_fusions(fused) == []
