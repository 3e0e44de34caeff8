"""Window functions of signal processing, and weight normalisation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import sympy

from scheduler.ir.values import Value, call, const, index_value, upcast
from scheduler.lowering.builder import Builder
from scheduler.lowering.pointwise import materialize
from scheduler.lowering.reductions import reduce_norm
from scheduler.lowering.tensor import Index, Tensor

_ZERO = sympy.Integer(0)


def _window(b: Builder, length: int, periodic: bool, function: Callable[[Value], Value]) -> Tensor:
    """``function`` of the position as a fraction, from 0 to below 1 (``periodic``) or to 1."""
    meta = b.output_meta()
    intervals = length if periodic else length - 1

    def read(i: Index) -> Value:
        if length == 1:
            return const(1, meta.dtype)
        position = upcast(index_value(i[0]), meta.dtype)
        return function(position * const(1 / intervals, meta.dtype))

    return materialize(b, Tensor(meta.size, meta.dtype, read))


def _cosine(x: Value, turns: int, factor: float) -> Value:
    angle = x * (2 * math.pi * turns)
    return call("cos", angle) * factor


def cosines(alpha: float, beta: float, third: float = 0.0) -> Callable[..., Tensor]:
    """alpha - beta cos(2 pi x) + third cos(4 pi x): the Hann, Hamming and Blackman windows."""
    defaults = alpha, beta

    def rule(
        b: Builder,
        window_length: int,
        periodic: bool = True,
        alpha: float | None = None,
        beta: float | None = None,
        **_: Any,
    ) -> Tensor:
        first = defaults[0] if alpha is None else alpha
        second = defaults[1] if beta is None else beta

        def function(x: Value) -> Value:
            value = first - _cosine(x, 1, second)
            return value + _cosine(x, 2, third) if third else value

        return _window(b, window_length, periodic, function)

    return rule


def bartlett(b: Builder, window_length: int, periodic: bool = True, **_: Any) -> Tensor:
    """A triangular window."""

    def function(x: Value) -> Value:
        return 1 - call("abs", _from_middle(x))

    return _window(b, window_length, periodic, function)


def kaiser(
    b: Builder, window_length: int, periodic: bool = True, beta: float = 12.0, **_: Any
) -> Tensor:
    """I0(beta sqrt(1 - y^2)) / I0(beta), y from -1 to 1."""

    def function(x: Value) -> Value:
        y = _from_middle(x)
        radicand = 1 - y * y
        radicand = call("maximum", radicand, 0)
        numerator = call("i0", call("sqrt", radicand) * beta)
        return numerator / call("i0", const(beta, x.dtype))

    return _window(b, window_length, periodic, function)


def _from_middle(x: Value) -> Value:
    return x * 2 - 1


# Weight normalisation.


def norm_except(b: Builder, v: Tensor, pow: Any = 2, dim: int = 0) -> Tensor:
    """The norm over all dimensions except one; over all for -1."""
    kept_dim = None if dim == -1 else dim
    dims = tuple(d for d in range(v.rank) if d != kept_dim)
    size = () if dim == -1 else None
    return reduce_norm(b, v, dims, float(pow), b.output_meta().dtype, size)


def weight_norm(b: Builder, v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    return weight_norm_interface(b, v, g, dim)[0]


def weight_norm_interface(b: Builder, v: Tensor, g: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """v g / |v|, and the norms."""
    dtype = b.output_meta().dtype
    kept_dim = None if dim == -1 else dim % v.rank
    dims = tuple(d for d in range(v.rank) if d != kept_dim)
    norms = reduce_norm(b, v, dims, 2.0, dtype.compute_dtype, None)

    def read(index: Index) -> Value:
        norm_index = tuple(i if d == kept_dim else _ZERO for d, i in enumerate(index))
        gain = g.at(norm_index[len(norm_index) - g.rank :] if g.rank else ())
        factor = upcast(gain, dtype) / norms.at(norm_index)
        return upcast(v.at(index), dtype) * factor

    result = b.pointwise(v.size, dtype, read)
    assert b.node is not None
    if len(b.node.outputs) == 1:
        return (result,)
    norm_meta = b.output_meta(1)
    return result, b.pointwise(
        norm_meta.size,
        norm_meta.dtype,
        lambda i: norms.at(tuple(i[d] if d == kept_dim else _ZERO for d in range(v.rank))),
    )
