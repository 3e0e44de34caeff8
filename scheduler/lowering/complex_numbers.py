"""Complex numbers: their parts, construction from parts, and complex counterparts of real
functions."""

# ruff: noqa: ARG001 - rules have the signature of their op

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.values import Value, call
from scheduler.lowering import matmul, special, trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.pointwise import elementwise
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.views import transpose_last

_TWO = sympy.Integer(2)


def lazy_unary(self: Tensor, dtype: DType, function: Callable[[Value], Value]) -> Tensor:
    """A function of each element without memory: torch returns a view of the argument's memory."""
    return replace(self, dtype=dtype, at=lambda i: function(self.at(i)), buffer="")


def part(op: str) -> Callable[..., Tensor]:
    """``real`` or ``imag``; the real part of real numbers is the tensor itself."""

    def rule(b: Builder, self: Tensor) -> Tensor:
        if self.dtype.is_complex:
            return lazy_unary(self, self.dtype.real, lambda x: call(op, x))
        if op == "imag":
            raise Unsupported(f"the imaginary part of {self.dtype.label} is not supported")
        return self

    return rule


def conj(b: Builder, self: Tensor) -> Tensor:
    if not self.dtype.is_complex:
        return self
    return lazy_unary(self, self.dtype, lambda x: call("conj", x))


def adjoint(b: Builder, self: Tensor) -> Tensor:
    """The conjugates, with the last two dimensions exchanged."""
    return conj(b, transpose_last(b, self)) if self.rank else conj(b, self)


def neg_view(b: Builder, self: Tensor) -> Tensor:
    return lazy_unary(self, self.dtype, lambda x: -x)


def view_as_real(b: Builder, self: Tensor) -> Tensor:
    """[..., 2]: the real part, the imaginary part."""

    def at(index: Index) -> Value:
        *number_index, component = index
        number = self.at(tuple(number_index))
        parts = call("real", number), call("imag", number)
        if component.is_Integer:
            return parts[int(component)]
        is_real = trees.equal(component, 0)
        return call("where", is_real, *parts)

    return Tensor((*self.size, _TWO), self.dtype.real, at, "", self.nodes)


def view_as_complex(b: Builder, self: Tensor) -> Tensor:
    """[..., 2] as complex numbers."""

    def at(index: Index) -> Value:
        return call("complex", *(self.at((*index, sympy.Integer(i))) for i in range(2)))

    return Tensor(self.size[:-1], self.dtype.complex, at, "", self.nodes)


def complex_op(b: Builder, real: Tensor, imag: Tensor) -> Tensor:
    parts = b.output_meta().dtype.real
    return elementwise(b, (real, imag), lambda x, y: call("complex", x, y), parts)


def polar(b: Builder, abs: Tensor, angle: Tensor) -> Tensor:
    def number(magnitude: Value, angle: Value) -> Value:
        parts = (magnitude * call(function, angle) for function in ("cos", "sin"))
        return call("complex", *parts)

    return elementwise(b, (abs, angle), number, b.output_meta().dtype.real)


def absolute(b: Builder, self: Tensor) -> Tensor:
    """Magnitude, computed in the element's type; that of a complex number is real."""
    return elementwise(b, (self,), lambda x: call("abs", x), self.dtype)


def angle(b: Builder, self: Tensor) -> Tensor:
    if not self.dtype.is_complex:
        return special.angle(b, self)
    return elementwise(b, (self,), lambda x: call("angle", x), self.dtype)


def sgn(b: Builder, self: Tensor) -> Tensor:
    """``sign`` of real numbers; complex numbers divided by their magnitude, 0 for 0."""

    def direction(x: Value) -> Value:
        if not x.dtype.is_complex:
            return x if x.dtype is DType.BOOL else call("sign", x)
        magnitude = call("abs", x)
        parts = (call(op, x) / magnitude for op in ("real", "imag"))
        is_zero = call("eq", magnitude, 0)
        return call("where", is_zero, 0, call("complex", *parts))

    return elementwise(b, (self,), direction)


def vdot(b: Builder, self: Tensor, other: Tensor) -> Tensor:
    return matmul.dot(b, conj(b, self), other)
