"""What lowering makes of a graph: operations over buffers, in order.

An operation has loop axes and a value tree over them (``ir/values.py``). Every operation writes
whole buffers; nothing aliases, because views are index expressions and in-place forms were made
functional. Each keeps the names of the graph nodes it computes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr, Graph
from scheduler.ir.values import Value


class BufferKind(StrEnum):
    """What a buffer is for; the manifest's ``kind``."""

    INPUT = "input"
    PARAMETER = "parameter"
    CONSTANT = "constant"
    INTERMEDIATE = "intermediate"
    OUTPUT = "output"


@dataclass(frozen=True)
class Buffer:
    """Memory with a shape: element type, sizes and strides in elements.

    ``source_name`` is the name in the model's state dictionary (parameters), or of the graph's
    value (inputs and outputs).
    """

    name: str
    dtype: DType
    size: tuple[Expr, ...]
    stride: tuple[Expr, ...]
    kind: BufferKind
    source_name: str = ""


@dataclass(frozen=True)
class Axis:
    """One loop: its variable and how many steps it makes."""

    var: sympy.Symbol
    size: Expr


@dataclass(frozen=True)
class Store:
    """Write ``value`` to ``buffer`` at ``index`` (one expression for each of its dimensions)."""

    buffer: str
    index: tuple[Expr, ...]
    value: Value
    nodes: tuple[str, ...] = ()  # graph nodes that this store computes


@dataclass(frozen=True)
class Pointwise:
    """One store at each point of ``axes``."""

    name: str
    axes: tuple[Axis, ...]
    store: Store
    nodes: tuple[str, ...]


class ReductionKind(StrEnum):
    """How values along the reduction axes become one."""

    SUM = "sum"
    PROD = "prod"
    MAX = "max"
    MIN = "min"
    ANY = "any"
    ALL = "all"
    ARGMAX = "argmax"
    ARGMIN = "argmin"


@dataclass(frozen=True)
class Reduction:
    """``value`` reduced over ``reduction_axes``; ``store.value`` holds the ``Accumulator``.

    The accumulator's type is ``accumulate``; arg-reductions give the flat index over
    ``reduction_axes`` in row-major order (i64), the first of equals, NaN winning as in torch.
    """

    name: str
    axes: tuple[Axis, ...]
    reduction_axes: tuple[Axis, ...]
    kind: ReductionKind
    value: Value
    accumulate: DType
    store: Store
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Scan:
    """Running ``kind`` (sum, prod) of ``value`` along ``scan_axis``, stored at every step."""

    name: str
    axes: tuple[Axis, ...]
    scan_axis: Axis
    kind: ReductionKind
    value: Value
    accumulate: DType
    store: Store
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Contraction:
    """A matrix multiplication in general form: a template node (gemm, convolution).

    out[batch, m, n] = sum over k of a[batch, m, k] * b[batch, k, n], accumulated in f32 (f64 for
    f64), then stored through ``stores`` whose values hold the ``Accumulator``. Each of batch, m,
    n, k is any number of axes (m, n, k at least one). ``a`` and ``b`` are trees over the axes: a
    plain strided ``Load`` takes the vector path; anything else (a convolution's masked window, a
    fused prologue) is computed element by element.

    ``problem`` is the op as users name it: ``linear``, ``addmm``, ``mm``, ``bmm``, ``conv2d``.
    """

    name: str
    template: str  # "gemm" | "convolution"
    problem: str
    batch: tuple[Axis, ...]
    m: tuple[Axis, ...]
    n: tuple[Axis, ...]
    k: tuple[Axis, ...]
    a: Value
    b: Value
    stores: tuple[Store, ...]
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Attention:
    """softmax(scale * q k^T + mask) v with an online softmax: a template node.

    ``q`` is a tree over (batch, row, depth), ``k`` over (batch, column, depth), ``v`` over
    (batch, column, value_depth), ``mask`` an additive (float) or selecting (bool) tree over
    (batch, row, column) or None. Grouped queries are index expressions in ``k`` and ``v``.
    ``causal``: column <= row (top-left aligned, as torch's is_causal).
    """

    name: str
    batch: tuple[Axis, ...]
    row: Axis
    column: Axis
    depth: Axis
    value_depth: Axis
    q: Value
    k: Value
    v: Value
    mask: Value | None
    causal: bool
    scale: float
    stores: tuple[Store, ...]
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Extern:
    """A graph node that no kernel was made for: it runs through the reference.

    ``reason`` says why, for the user; ``inputs`` maps the node's tensor values to the buffer and
    index expressions (over ``axes`` of its sizes) that hold them.
    """

    name: str
    op: str
    reason: str
    node: str
    inputs: Mapping[str, ViewOf]
    outputs: tuple[str, ...]
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class ViewOf:
    """A value of the graph as an indexing of trees: element [axes] is ``value``."""

    axes: tuple[Axis, ...]
    value: Value


Operation: TypeAlias = Pointwise | Reduction | Scan | Contraction | Attention | Extern


@dataclass(frozen=True)
class Lowered:
    """A graph as operations over buffers, in an order that can be run.

    ``outputs`` name buffers in the model's order (the same buffer may stand twice, or be an
    input). ``inputs`` name the buffers of user inputs in the model's order.
    """

    graph: Graph
    buffers: Mapping[str, Buffer]
    operations: tuple[Operation, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
