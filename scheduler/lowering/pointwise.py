"""Pointwise ops: one store per element, for any shapes that broadcast."""

# ruff: noqa: ARG001 - rules have the signature of their op

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from inspect import Parameter, Signature, signature
from typing import Any, TypeAlias

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import Mod
from scheduler.ir.promotion import Operand, result_type
from scheduler.ir.values import (
    Cast,
    Const,
    IndexValue,
    Load,
    Value,
    call,
    const,
    index_value,
    upcast,
)
from scheduler.lowering import trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.tensor import Index, Scalar, Tensor
from scheduler.lowering.views import broadcast

Number: TypeAlias = int | float | complex | bool | Expr
Argument: TypeAlias = Tensor | Number


def elementwise(
    b: Builder,
    args: Sequence[Argument],
    function: Callable[..., Value],
    compute: DType | None = None,
) -> Tensor:
    """``function`` of the arguments' elements, each held as ``compute`` (the result's type).

    A result that needs no memory (index arithmetic, an unchanged operand) stays a view.
    """
    meta = b.output_meta()
    dtype = compute or meta.dtype
    b.check_broadcast([a.size for a in args if isinstance(a, Tensor)] or [meta.size])
    operands = [broadcast(a, meta.size) if isinstance(a, Tensor) else a for a in args]

    def read(index: Index) -> Value:
        return function(*(element(a, index, dtype) for a in operands))

    return materialize(b, Tensor(meta.size, meta.dtype, read))


def element(arg: Argument, index: Index, dtype: DType) -> Value:
    """An argument's element in the compute type of ``dtype``."""
    if isinstance(arg, Tensor):
        return upcast(arg.at(index), dtype)
    if isinstance(arg, int | float | complex):
        return const(arg, dtype)
    return upcast(index_value(arg), dtype)


def materialize(b: Builder, tensor: Tensor) -> Tensor:
    """The tensor in a separate buffer, unless reading it costs no more than a view."""
    _, index = b.loops(tensor.size, "i")
    value = tensor.at(index)
    is_free = isinstance(value, IndexValue | Const | Load)
    if isinstance(value, Cast) and isinstance(value.value, IndexValue):
        is_free = value.dtype is value.dtype.compute_dtype
    if is_free and value.dtype.compute_dtype is tensor.dtype.compute_dtype:
        return tensor
    return b.pointwise(tensor.size, tensor.dtype, tensor.at)


def promoted_type(args: Sequence[Argument]) -> DType:
    """The type in which torch compares or combines these arguments."""
    return result_type(_operand(arg) for arg in args)


def _operand(arg: Argument) -> Operand:
    if isinstance(arg, Scalar):
        return Operand(DType.F32 if arg.dtype.is_float else arg.dtype, 0)
    if isinstance(arg, Tensor):
        return Operand(arg.dtype, 2 if arg.rank else 1)
    if isinstance(arg, bool):
        return Operand(DType.BOOL, 0)
    if isinstance(arg, complex):
        return Operand(DType.C64, 0)
    return Operand(DType.F32 if isinstance(arg, float) else DType.I64, 0)


def formula_rule(
    formula: Callable[..., Value], parameters: str, apply: Callable[..., Tensor] = elementwise
) -> Callable[..., Tensor]:
    """The rule of a formula that has the op's parameters, in order.

    Those annotated as ``Value`` are elements of tensors. Parameters that the formula lacks go to
    ``apply``, which makes the tensor.
    """
    names = [part.partition("=")[0] for part in parameters.split(", ") if part != "*"]
    apply_parameters = {name: p for name, p in signature(apply).parameters.items() if name in names}
    formula_parameters = dict(
        zip(
            (name for name in names if name not in apply_parameters),
            signature(formula).parameters.values(),
            strict=True,
        )
    )
    elements = [n for n, p in formula_parameters.items() if p.annotation.startswith("Value")]

    def rule(b: Builder, **arguments: Any) -> Tensor:
        tensors = [name for name in elements if arguments[name] is not None]
        fixed_arguments = {
            p.name: arguments[n] for n, p in formula_parameters.items() if n not in tensors
        }

        def function(*values: Value) -> Value:
            element_values = zip(tensors, values, strict=True)
            return formula(
                **fixed_arguments,
                **{formula_parameters[n].name: value for n, value in element_values},
            )

        apply_arguments = {name: arguments[name] for name in apply_parameters}
        return apply(b, [arguments[name] for name in tensors], function, **apply_arguments)

    rule.__module__, rule.__qualname__ = formula.__module__, formula.__qualname__
    typed_parameters = [
        Parameter(name, Parameter.KEYWORD_ONLY, annotation=p.annotation.replace("Value", "Tensor"))
        for name, p in (formula_parameters | apply_parameters).items()
    ]
    builder = Parameter("b", Parameter.POSITIONAL_OR_KEYWORD)
    rule.__signature__ = Signature([builder, *typed_parameters])  # type: ignore[attr-defined]
    return rule


def unary(op: str) -> Callable[..., Tensor]:
    """The rule of the pointwise function of that name."""

    def formula(x: Value) -> Value:
        return call(op, x)

    return formula_rule(formula, "self")


def times(x: Value, y: Value) -> Value:
    """A product; for booleans, logical and."""
    return call("logical_and" if x.dtype is DType.BOOL else "mul", x, y)


def binary_function(function: Callable[..., Value]) -> Callable[..., Tensor]:
    """The rule of a function of the trees of two elements."""

    def rule(b: Builder, self: Argument, other: Argument) -> Tensor:
        return elementwise(b, (self, other), function)

    return rule


def identity_on_integers(op: str) -> Callable[..., Tensor]:
    """The rule of floor, ceil, round and trunc, which are the identity on integers."""

    def rule(b: Builder, self: Tensor, decimals: int = 0) -> Tensor:
        if not self.dtype.is_float:
            return self
        if not decimals:
            return elementwise(b, (self,), lambda x: call(op, x))
        ten = 10.0 ** abs(decimals)
        if decimals > 0:
            return elementwise(b, (self,), lambda x: call("round", x * ten) / ten)
        return elementwise(b, (self,), lambda x: call("round", x / ten) * ten)

    return rule


def sign(b: Builder, self: Tensor) -> Tensor:
    """-1, 0 or 1; a boolean is its own sign."""
    return self if self.dtype is DType.BOOL else elementwise(b, (self,), lambda x: call("sign", x))


def binary(op: str) -> Callable[..., Tensor]:
    """The rule of the pointwise function of that name."""

    return binary_function(lambda x, y: call(op, x, y))


def extreme_function(op: str, dtype: DType) -> str:
    """The function for ``maximum`` or ``minimum`` of a type; for booleans logical "or" and
    "and"."""
    return {"maximum": "logical_or", "minimum": "logical_and"}[op] if dtype is DType.BOOL else op


def maximum_or_minimum(op: str) -> Callable[..., Tensor]:
    """The rule of ``maximum`` or ``minimum``."""
    return binary_function(lambda x, y: call(extreme_function(op, x.dtype), x, y))


def scaled_binary(op: str, *, reverse: bool = False) -> Callable[..., Tensor]:
    """add, sub and rsub: ``self op alpha * other``."""

    def rule(b: Builder, self: Argument, other: Argument, alpha: Argument = 1) -> Tensor:
        dtype = b.output_meta().dtype

        def function(x: Value, y: Value) -> Value:
            if reverse:
                x, y = y, x
            return call(op, x, trees.scale_value(y, alpha, dtype))

        if dtype is DType.BOOL and op == "add":
            if not alpha:
                return elementwise(b, (self, other), lambda x, _: x)
            return elementwise(b, (self, other), lambda x, y: x | y)
        return elementwise(b, (self, other), function)

    return rule


def mul(b: Builder, self: Argument, other: Argument) -> Tensor:
    return elementwise(b, (self, other), times)


def div(b: Builder, self: Argument, other: Argument, rounding_mode: str | None = None) -> Tensor:
    is_integer = not b.output_meta().dtype.is_float
    if rounding_mode is None:
        return elementwise(b, (self, other), lambda x, y: x / y)
    if rounding_mode == "floor":
        return elementwise(b, (self, other), lambda x, y: call("floordiv", x, y))
    if is_integer:
        return elementwise(b, (self, other), lambda x, y: call("truncdiv", x, y))

    def truncated(x: Value, y: Value) -> Value:
        quotient = x / y
        return call("trunc", Cast(quotient, quotient.dtype, decides=True))

    return elementwise(b, (self, other), truncated)


def comparison_rule(op: str) -> Callable[..., Tensor]:
    def rule(b: Builder, self: Argument, other: Argument) -> Tensor:
        common_dtype = promoted_type((self, other))
        return elementwise(b, (self, other), lambda x, y: call(op, x, y), common_dtype)

    return rule


def logical(op: str) -> Callable[..., Tensor]:
    def rule(b: Builder, self: Argument, other: Argument) -> Tensor:
        return elementwise(b, (self, other), lambda *x: call(op, *x), DType.BOOL)

    return rule


def bitwise(op: str) -> Callable[..., Tensor]:
    """A bitwise function; on booleans it is the logical one."""

    def rule(b: Builder, self: Argument, other: Argument | None = None) -> Tensor:
        name = f"logical_{op}" if b.output_meta().dtype is DType.BOOL else f"bitwise_{op}"
        args = (self,) if other is None else (self, other)
        return elementwise(b, args, lambda *x: call(name, *x))

    return rule


def float_test(op: str) -> Callable[..., Tensor]:
    def rule(b: Builder, self: Tensor) -> Tensor:
        if not self.dtype.is_inexact:
            answer = Const(op == "isfinite", DType.BOOL)
            return Tensor(self.size, DType.BOOL, lambda _: answer)
        return elementwise(b, (self,), lambda x: call(op, x), self.dtype)

    return rule


def where(
    b: Builder, condition: Tensor, self: Argument | None = None, other: Argument | None = None
) -> Tensor:
    if self is None or other is None:
        raise Unsupported("which elements are true depends on data")
    meta = b.output_meta()
    tensors = [x for x in (condition, self, other) if isinstance(x, Tensor)]
    b.check_broadcast([x.size for x in tensors])
    broadcast_condition = broadcast(condition, meta.size)
    branches = [broadcast(x, meta.size) if isinstance(x, Tensor) else x for x in (self, other)]

    def read(index: Index) -> Value:
        selected, other_value = (element(part, index, meta.dtype) for part in branches)
        return call(
            "where", upcast(broadcast_condition.at(index), DType.BOOL), selected, other_value
        )

    return materialize(b, Tensor(meta.size, meta.dtype, read))


def masked_fill(b: Builder, self: Tensor, mask: Tensor, value: Argument) -> Tensor:
    return where(b, mask, value, self)


def integer_power(x: Value, exponent: int) -> Value:
    """``x`` to a small integer power by multiplications."""
    result = x
    for _ in range(exponent - 1):
        result = result * x
    return result


def square(b: Builder, self: Tensor) -> Tensor:
    return elementwise(b, (self,), lambda x: integer_power(x, 2))


def frac(b: Builder, self: Tensor) -> Tensor:
    return elementwise(b, (self,), lambda x: x - call("trunc", x))


def pow_op(b: Builder, self: Argument, exponent: Argument) -> Tensor:
    special_cases: dict[complex, Callable[[Value], Value]] = {
        0.5: lambda x: call("sqrt", x),
        1: lambda x: x,
        2: lambda x: integer_power(x, 2),
        3: lambda x: integer_power(x, 3),
        4: lambda x: integer_power(integer_power(x, 2), 2),
    }
    if b.output_meta().dtype.is_inexact:
        special_cases[-1] = lambda x: call("reciprocal", x)
        special_cases[-0.5] = lambda x: call("rsqrt", x)
        special_cases[-2] = lambda x: call("reciprocal", integer_power(x, 2))
    if (
        isinstance(exponent, int | float | complex)
        and isinstance(self, Tensor)
        and exponent in special_cases
    ):
        return elementwise(b, (self,), special_cases[exponent])
    return elementwise(b, (self, exponent), lambda x, y: call("pow", x, y))


def clamp(
    b: Builder, self: Tensor, min: Argument | None = None, max: Argument | None = None
) -> Tensor:
    bounds = [(op, x) for op, x in (("maximum", min), ("minimum", max)) if x is not None]

    def function(x: Value, *limits: Value) -> Value:
        for (op, _), limit in zip(bounds, limits, strict=True):
            x = call(extreme_function(op, x.dtype), x, limit)
        return x

    return elementwise(b, (self, *(x for _, x in bounds)), function)


def clamp_min(b: Builder, self: Tensor, min: Argument) -> Tensor:
    return clamp(b, self, min)


def clamp_max(b: Builder, self: Tensor, max: Argument) -> Tensor:
    return clamp(b, self, None, max)


def fused_multiply(op: str) -> Callable[..., Tensor]:
    """addcmul, addcdiv: ``self + value * tensor1 op tensor2``."""

    def rule(
        b: Builder, self: Tensor, tensor1: Tensor, tensor2: Tensor, value: Argument = 1
    ) -> Tensor:
        return elementwise(
            b,
            (self, tensor1, tensor2),
            lambda x, y, z: x + trees.scale_value(call(op, y, z), value, x.dtype),
        )

    return rule


def lerp(b: Builder, self: Tensor, end: Tensor, weight: Argument) -> Tensor:
    """Interpolate from the nearer end, as torch does: a weight of 1 gives ``end`` exactly."""

    def interpolate(x: Value, y: Value, w: Value) -> Value:
        difference, weight_size = y - x, call("abs", w)
        complement = 1 - w
        return call("where", weight_size < 0.5, x + w * difference, y - difference * complement)

    return elementwise(b, (self, end, weight), interpolate)


def to(b: Builder, self: Tensor, **_: Any) -> Tensor:
    """All forms of ``to``: the element type is the result's; device and layout are ignored."""
    return convert_result(b, self)


def convert_result(b: Builder, tensor: Tensor) -> Tensor:
    """The tensor converted to the element type of the node's result."""
    dtype = b.output_meta().dtype
    if dtype is tensor.dtype:
        return tensor
    return materialize(b, Tensor(tensor.size, dtype, lambda i: trees.cast(tensor.at(i), dtype)))


def copy(b: Builder, self: Tensor, src: Tensor, **_: Any) -> Tensor:
    """The values of ``src`` with the shape and type of ``self``."""
    return convert_result(b, broadcast(src, self.size))


def assertion(b: Builder, self: Argument, assert_msg: str = "") -> tuple[()]:
    """Record an assertion. Assertions in inner graphs are dropped: the failing code may never
    run."""
    if b.outer is None:
        b.assert_true(element(self, (), DType.BOOL), str(assert_msg))
    return ()


def no_op(b: Builder, **_: Any) -> tuple[()]:
    return ()


def nan_to_num(
    b: Builder, self: Tensor, nan: Any = None, posinf: Any = None, neginf: Any = None
) -> Tensor:
    if not self.dtype.is_float:
        return self
    largest = self.dtype.largest

    def function(x: Value) -> Value:
        def number(value: Any, default: float) -> Const:
            return const(default if value is None else value, x.dtype)

        infinity = const(math.inf, x.dtype)
        x = call("where", call("isnan", x), number(nan, 0.0), x)
        x = call("where", call("eq", x, infinity), number(posinf, largest), x)
        return call("where", call("eq", x, -math.inf), number(neginf, -largest), x)

    return elementwise(b, (self,), function)


def triangle(keep: str) -> Callable[..., Tensor]:
    """tril keeps column - row <= diagonal, triu >=."""

    def rule(b: Builder, self: Tensor, diagonal: Argument = 0) -> Tensor:
        limit = (
            element(diagonal, (), DType.I64)
            if isinstance(diagonal, Tensor)
            else index_value(diagonal)
        )

        def read(index: Index) -> Value:
            distance = index_value(index[-1] - index[-2])
            is_inside = call(keep, distance, limit)
            value = self.at(index)
            return trees.masked_value(is_inside, value, const(0, value.dtype))

        return materialize(b, Tensor(self.size, self.dtype, read))

    return rule


def fill_diagonal(
    b: Builder, self: Tensor, fill_value: Argument, *, wrap: Argument = False
) -> Tensor:
    """Fill the diagonal. With ``wrap``, the diagonal of a tall matrix restarts one row below its
    end."""

    def read(index: Index) -> Value:
        first = index[0]
        if wrap and len(index) == 2:
            first = Mod(first, self.size[1] + 1)
        on_diagonal = (trees.equal(first, other) for other in index[1:])
        value = self.at(index)
        return trees.masked_value(
            trees.all_of(*on_diagonal), element(fill_value, (), self.dtype), value
        )

    return materialize(b, Tensor(self.size, self.dtype, read))


def logical_not(b: Builder, self: Tensor) -> Tensor:
    if self.dtype is DType.BOOL:
        return elementwise(b, (self,), lambda x: ~x)
    return elementwise(b, (self,), lambda x: call("eq", x, 0), self.dtype)
