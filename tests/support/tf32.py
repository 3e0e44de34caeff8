"""Products of f32 that may be rounded to tf32, and what that makes of operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from scheduler import pipeline
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Graph, GraphInput, InputKind, MatmulPrecision, Ref
from tests.unit.lowering.graphs import graph, meta, node

Array = npt.NDArray[Any]
HIGH, HIGHEST = MatmulPrecision.HIGH, MatmulPrecision.HIGHEST


def linear(
    m: int, n: int, k: int, precision: MatmulPrecision = HIGH, dtype: DType = DType.F32
) -> Schedule:
    """``y = x @ w.T`` of x [m, k] and w [n, k]."""
    tensors = {"x": meta(dtype, m, k), "w": meta(dtype, n, k), "y": meta(dtype, m, n)}
    nodes = [node("y", "aten.linear.default", Ref("x"), Ref("w"))]
    return _planned(graph(_inputs("x", "w"), nodes, tensors, ("y",)), precision)


def row_major(m: int, n: int, k: int, precision: MatmulPrecision = HIGH) -> Schedule:
    """``y = x @ w`` of x [m, k] and w [k, n]."""
    tensors = {"x": meta(DType.F32, m, k), "w": meta(DType.F32, k, n), "y": meta(DType.F32, m, n)}
    nodes = [node("y", "aten.mm.default", Ref("x"), Ref("w"))]
    return _planned(graph(_inputs("x", "w"), nodes, tensors, ("y",)), precision)


def convolution(
    channels: int, out: int, *, groups: int = 1, precision: MatmulPrecision = HIGH
) -> Schedule:
    """``y = conv2d(x, w)``: 3x3, padded by 1, of x [1, channels, 8, 8]."""
    tensors = {
        "x": meta(DType.F32, 1, channels, 8, 8),
        "w": meta(DType.F32, out, channels // groups, 3, 3),
        "y": meta(DType.F32, 1, out, 8, 8),
    }
    each = (1, 1)
    arguments = (Ref("x"), Ref("w"), None, each, each, each, False, (0, 0), groups)
    nodes = [node("y", "aten.convolution.default", *arguments)]
    return _planned(graph(_inputs("x", "w"), nodes, tensors, ("y",)), precision)


def _inputs(*names: str) -> list[GraphInput]:
    return [GraphInput(name, InputKind.USER) for name in names]


def _planned(made: Graph, precision: MatmulPrecision) -> Schedule:
    return pipeline.schedule(pipeline.lower(pipeline.with_precision(made, precision)))


def rounded(values: Array) -> Array:
    """To 11 significant bits, ties away from zero, by arithmetic alone."""
    mantissa, exponent = np.frexp(values.astype(np.float64))
    whole = np.trunc(np.abs(mantissa) * 2**11 + 0.5)
    return np.ldexp(np.copysign(whole, mantissa), exponent - 11)
