"""Convolutions as graphs that lowering takes: layouts, residuals, and what is right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from scheduler.fusion import schedule
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import GraphInput, InputKind, Ref, SymbolInfo, TensorMeta
from scheduler.ir.index.functions import symbol
from scheduler.lowering import lower
from tests.unit.lowering.graphs import graph, meta, node

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Convolution:
    """conv2d of x [n, c, h, w] with weight [o, c / groups, kh, kw] as a graph of its own.

    ``channels_last``: x, the weight, the residual and the result lie with channels innermost.
    ``dynamic``: n is a symbol whose hint is the size given.
    """

    x: tuple[int, int, int, int]
    w: tuple[int, int, int, int]
    dtype: DType = DType.F16
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    groups: int = 1
    channels_last: bool = False
    bias: bool = False
    residual: bool = False
    relu: bool = False
    dynamic: bool = False

    @property
    def y(self) -> tuple[int, int, int, int]:
        reach = [self.dilation * (k - 1) + 1 for k in self.w[2:]]
        sides = [
            (size + 2 * self.padding - each) // self.stride + 1
            for size, each in zip(self.x[2:], reach, strict=True)
        ]
        return (self.x[0], self.w[0], sides[0], sides[1])

    def _meta(self, size: tuple[int, int, int, int], *, batched: bool = True) -> TensorMeta:
        n, c, h, w = size
        stride = (c * h * w, 1, w * c, c) if self.channels_last else (c * h * w, h * w, w, 1)
        outer = symbol("s0") if self.dynamic and batched else n
        return meta(self.dtype, outer, c, h, w, stride=stride)

    def schedule(self) -> Schedule:
        """Lowered and fused."""
        tensors = {"x": self._meta(self.x), "w": self._meta(self.w, batched=False)}
        steps = [(each, each) for each in (self.stride, self.padding, self.dilation)]
        tensors["y"] = self._meta(self.y)
        shift = None
        if self.bias:
            tensors["bias"], shift = meta(self.dtype, self.w[0]), Ref("bias")
        conv = node("y", "aten.conv2d.default", Ref("x"), Ref("w"), shift, *steps, self.groups)
        nodes, last = [conv], "y"
        if self.residual:
            tensors["residual"] = tensors["sum"] = tensors["y"]
            nodes.append(node("sum", "aten.add.Tensor", Ref(last), Ref("residual")))
            last = "sum"
        if self.relu:
            tensors["positive"] = tensors["y"]
            nodes.append(node("positive", "aten.relu.default", Ref(last)))
            last = "positive"
        given = [name for name in ("x", "w", "bias", "residual") if name in tensors]
        inputs = [GraphInput(name, InputKind.USER) for name in given]
        symbols = {"s0": SymbolInfo("s0", self.x[0], 1, 64)} if self.dynamic else None
        return schedule(lower(graph(inputs, nodes, tensors, (last,), symbols)))

    def expected(self, values: Mapping[str, Array]) -> Array:
        """In float64, from x, w, and what is added."""
        out = direct(values["x"], values["w"], self.stride, self.padding, self.dilation)
        if self.bias:
            out += values["bias"][:, None, None]
        if self.residual:
            out += values["residual"]
        return np.maximum(out, 0) if self.relu else out


def direct(x: Array, w: Array, stride: int, padding: int, dilation: int) -> Array:
    """A sum over the window; as many groups as the weight's channels say."""
    n, c, height, width = x.shape
    oc, cg, kh, kw = w.shape
    padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    oh = (height + 2 * padding - dilation * (kh - 1) - 1) // stride + 1
    ow = (width + 2 * padding - dilation * (kw - 1) - 1) // stride + 1
    out = np.zeros((n, oc, oh, ow))
    groups = c // cg
    for g in range(groups):
        own = slice(g * oc // groups, (g + 1) * oc // groups)
        for i in range(kh):
            for j in range(kw):
                rows = slice(i * dilation, i * dilation + stride * (oh - 1) + 1, stride)
                columns = slice(j * dilation, j * dilation + stride * (ow - 1) + 1, stride)
                part = padded[:, g * cg : (g + 1) * cg, rows, columns]
                out[:, own] += np.einsum("nchw,oc->nohw", part, w[own, :, i, j])
    return out
