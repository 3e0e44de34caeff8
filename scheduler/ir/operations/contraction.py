"""Matrix multiplications and convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from scheduler.ir.graph import Expr
from scheduler.ir.operations.base import (
    Axes,
    GroupKind,
    MultiStoreOperation,
    OperandView,
    Products,
    Store,
    numel,
)
from scheduler.ir.values import Value


@dataclass(frozen=True)
class Contraction(MultiStoreOperation):
    """A matrix multiplication in general form: a template node (gemm, convolution).

    out[batch, m, n] = sum over k of a[batch, m, k] * b[batch, k, n], accumulated in f32 (f64 for
    f64, i32 for i8), then stored through ``stores`` whose values use the ``Accumulator``. Each of
    batch, m, n, k is any number of axes (m, n, k at least one). ``a`` and ``b`` are trees over the
    axes: a plain strided ``Load`` takes the vector path; anything else (a convolution's masked
    window, a fused prologue) is computed element by element.

    ``problem`` is the op's name for users: ``linear``, ``addmm``, ``mm``, ``bmm``, ``conv2d``.
    ``allow_tf32``: operands of f32 may be rounded to 10 bits of mantissa before they are
    multiplied (TF32 of NVIDIA, XF32 of AMD); sums stay in f32.
    """

    name: str
    template: str  # "gemm" | "convolution" | "depthwise"
    problem: str
    batch: Axes
    m: Axes
    n: Axes
    k: Axes
    a: Value
    b: Value
    stores: tuple[Store, ...]
    nodes: tuple[str, ...]
    allow_tf32: bool = False

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind(self.template)

    @property
    def nest(self) -> tuple[Axes, Axes]:
        return self.points, ()

    @property
    def points(self) -> Axes:
        return (*self.batch, *self.m, *self.n)

    @property
    def loops(self) -> Axes:
        return (*self.points, *self.k)

    @property
    def operands(self) -> tuple[OperandView, ...]:
        return (
            OperandView((*self.batch, *self.m, *self.k), self.a),
            OperandView((*self.batch, *self.k, *self.n), self.b),
        )

    def with_operands(self, values: Sequence[Value]) -> Self:
        a, b = values
        return replace(self, a=a, b=b)

    @property
    def template_op(self) -> str:
        return self.problem

    @property
    def dimensions(self) -> tuple[Axes, ...]:
        return tuple(axes for axes in (self.batch, self.m, self.n, self.k) if axes)

    @property
    def products(self) -> Products:
        return Products(numel(self.loops), self.a.dtype, self.allow_tf32)

    @property
    def matrix_operands(self) -> tuple[Value, ...]:
        return self.a, self.b

    @property
    def accumulation_length(self) -> Expr:
        return numel(self.k)

    def type_fault(self) -> str:
        if self.a.dtype is self.b.dtype:
            return ""
        return f"multiplies {self.a.dtype.label} by {self.b.dtype.label}"
