"""Random numbers as a pointwise function of the seed, the op's stream and the element's position.

docs/random.md specifies the numbers; the reference is written from it independently.
"""

# ruff: noqa: ARG001 - rules have the signature of their op

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import symbol
from scheduler.ir.random import SEED, stream_id
from scheduler.ir.values import Cast, Const, Value, call, const, index_value, upcast
from scheduler.lowering import layout, trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.pointwise import Argument, element
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.views import broadcast

#: The negated minimum of SELU.
SELU_NEGATED_MIN = 1.7580993408473766
#: Maps the index of an element to its value.
NumberReader = Callable[[Index], Value]


def _word_reader(b: Builder, size: tuple[Expr, ...], word_number: int) -> NumberReader:
    """One of the four 32-bit words of each element."""
    assert b.node is not None
    key = call(
        "bitwise_or",
        index_value(symbol(SEED)),
        Const(stream_id(b.node.outputs[0]) << 32, DType.I64),
    )

    def read(index: Index) -> Value:
        strides = layout.contiguous_strides(size)
        position = sympy.Add(*(i * s for i, s in zip(index, strides, strict=True)))
        counter = index_value(position)
        if word_number > 1:
            return call(
                "philox_word", counter, Const(0, DType.I64), key, Const(word_number, DType.I64)
            )
        return call(("philox_word0", "philox_word1")[word_number], counter, key)

    return read


def _shift_right(word: Value, bits: int) -> Value:
    return call("rshift", word, Const(bits, DType.I64))


def _fraction(word: Value, bits: int, dtype: DType, offset: float = 0.0) -> Value:
    """The highest bits as a fraction of 1, plus ``offset`` units in the last of them."""
    value: Value = Cast(_shift_right(word, 32 - bits), dtype)
    if offset:
        value = value + offset
    return value * 2.0 ** (-bits)


def uniform_numbers(b: Builder, size: tuple[Expr, ...], dtype: DType) -> NumberReader:
    """Numbers in [0, 1), with as many bits as the type represents there; for complex numbers, both
    parts."""
    words = [_word_reader(b, size, word_number) for word_number in range(4)]
    compute_dtype = dtype.compute_dtype
    if dtype is DType.F64:
        return _join_53_bits(words[0], words[1])
    if dtype is DType.C128:
        real, imaginary = _join_53_bits(words[0], words[1]), _join_53_bits(words[2], words[3])
        return lambda i: call("complex", real(i), imaginary(i))
    if dtype is DType.C64:
        return lambda i: call("complex", *(_fraction(word(i), 24, DType.F32) for word in words[:2]))
    bits = {DType.F16: 11, DType.BF16: 8}.get(dtype, 24)
    return lambda i: _fraction(words[0](i), bits, compute_dtype)


def _join_53_bits(first: NumberReader, second: NumberReader) -> NumberReader:
    def read(index: Index) -> Value:
        high, low = _shift_right(first(index), 5), _shift_right(second(index), 6)
        joined = high * Const(1 << 26, DType.I64) + low
        return Cast(joined, DType.F64) * 2.0 ** (-53)

    return read


def _above_zero_reader(b: Builder, size: tuple[Expr, ...], dtype: DType) -> NumberReader:
    """Numbers in (0, 1], for use as arguments of a logarithm."""
    first = _word_reader(b, size, 0)
    return lambda i: _fraction(first(i), 24, dtype, 1.0)


def normal_numbers(b: Builder, size: tuple[Expr, ...], dtype: DType) -> NumberReader:
    """The cosine of the Box-Muller transform; for complex numbers also the sine, each with variance
    one half."""
    compute_dtype = dtype.real.compute_dtype
    uniform, second = _above_zero_reader(b, size, compute_dtype), _word_reader(b, size, 1)

    def read(index: Index) -> Value:
        angle = _fraction(second(index), 24, compute_dtype) * (2 * math.pi)
        log_factor = const(-1 if dtype.is_complex else -2, compute_dtype)
        radius = call("sqrt", call("log", uniform(index)) * log_factor)
        if not dtype.is_complex:
            return radius * call("cos", angle)
        return call("complex", *(radius * call(f, angle) for f in ("cos", "sin")))

    return read


def _fill_random(
    b: Builder, make_numbers: Callable[[Builder, tuple[Expr, ...], DType], NumberReader]
) -> Tensor:
    meta = b.output_meta()
    if not meta.dtype.is_inexact:
        raise Unsupported(f"random numbers of type {meta.dtype.label} are not supported")
    return b.pointwise(meta.size, meta.dtype, make_numbers(b, meta.size, meta.dtype))


def rand(b: Builder, **_: Any) -> Tensor:
    return _fill_random(b, uniform_numbers)


def randn(b: Builder, **_: Any) -> Tensor:
    return _fill_random(b, normal_numbers)


def randint(b: Builder, high: int, low: int = 0, **_: Any) -> Tensor:
    """63 bits modulo the range, with torch's modulus."""
    meta = b.output_meta()
    if not isinstance(high, int) or not isinstance(low, int) or not low < high:
        raise Unsupported(f"random integers from {low} to below {high} are not supported")
    first, second = _word_reader(b, meta.size, 0), _word_reader(b, meta.size, 1)

    def read(index: Index) -> Value:
        upper = call("lshift", first(index), Const(31, DType.I64))
        bits = call("bitwise_or", upper, _shift_right(second(index), 1))
        offset = call("remainder", bits, Const(high - low, DType.I64))
        return upcast(offset + Const(low, DType.I64), meta.dtype)

    return b.pointwise(meta.size, meta.dtype, read)


def bernoulli(b: Builder, self: Tensor, p: Any = None, **_: Any) -> Tensor:
    """1 with probability ``p``, or the element's own probability, else 0."""
    meta = b.output_meta()
    probability = self if p is None else p
    broadcast_probability = (
        broadcast(probability, meta.size) if isinstance(probability, Tensor) else probability
    )
    compute_dtype = (
        broadcast_probability.dtype.compute_dtype
        if isinstance(broadcast_probability, Tensor) and broadcast_probability.dtype.is_float
        else DType.F32
    )
    uniform = uniform_numbers(b, meta.size, DType.F32)

    def read(index: Index) -> Value:
        below = upcast(uniform(index), compute_dtype) < element(
            broadcast_probability, index, compute_dtype
        )
        return upcast(below, meta.dtype)

    return b.pointwise(meta.size, meta.dtype, read)


def uniform(b: Builder, self: Tensor, **options: Any) -> Tensor:
    meta = b.output_meta()
    low: float = options.get("from", 0.0)
    width: float = options["to"] - low
    uniform_at = uniform_numbers(b, meta.size, meta.dtype)
    return b.pointwise(meta.size, meta.dtype, lambda index: uniform_at(index) * width + low)


def normal(b: Builder, mean: Argument = 0.0, std: Argument = 1.0, **_: Any) -> Tensor:
    return _normal_like(b, mean, std, lambda x: x)


def log_normal(b: Builder, mean: Argument = 1.0, std: Argument = 2.0, **_: Any) -> Tensor:
    return _normal_like(b, mean, std, lambda x: call("exp", x))


def _normal_like(
    b: Builder, mean: Argument, std: Argument, function: Callable[[Value], Value]
) -> Tensor:
    meta = b.output_meta()
    normal_at = normal_numbers(b, meta.size, meta.dtype)
    parameters = [broadcast(a, meta.size) if isinstance(a, Tensor) else a for a in (mean, std)]

    def read(index: Index) -> Value:
        centre, width = (element(parameter, index, meta.dtype) for parameter in parameters)
        return function(centre + width * normal_at(index))

    return b.pointwise(meta.size, meta.dtype, read)


def exponential(b: Builder, self: Tensor, lambd: float = 1.0, **_: Any) -> Tensor:
    meta = b.output_meta()
    compute_dtype = meta.dtype.compute_dtype
    uniform_at = _above_zero_reader(b, meta.size, compute_dtype)

    def read(index: Index) -> Value:
        return -call("log", uniform_at(index)) / lambd

    return b.pointwise(meta.size, meta.dtype, read)


def cauchy(b: Builder, self: Tensor, median: float = 0.0, sigma: float = 1.0, **_: Any) -> Tensor:
    meta = b.output_meta()
    compute_dtype = meta.dtype.compute_dtype
    uniform_at = uniform_numbers(b, meta.size, DType.F32)

    def read(index: Index) -> Value:
        centred = upcast(uniform_at(index), compute_dtype) - 0.5
        tangent = call("tan", centred * math.pi)
        return tangent * sigma + median

    return b.pointwise(meta.size, meta.dtype, read)


def geometric(b: Builder, self: Tensor, p: float, **_: Any) -> Tensor:
    """The number of trials, each with probability ``p``, until the first success."""
    meta = b.output_meta()
    compute_dtype = meta.dtype.compute_dtype if meta.dtype.is_float else DType.F32
    uniform_at = _above_zero_reader(b, meta.size, compute_dtype)

    def read(index: Index) -> Value:
        trials = call("log", uniform_at(index)) / math.log1p(-p)
        return upcast(call("maximum", call("ceil", trials), 1), meta.dtype)

    return b.pointwise(meta.size, meta.dtype, read)


def _keep_mask(b: Builder, size: tuple[Expr, ...], p: float) -> NumberReader:
    uniform_at = uniform_numbers(b, size, DType.F32)
    return lambda i: uniform_at(i) >= p


def dropout(b: Builder, input: Tensor, p: float, train: bool) -> Tensor:
    """In training, set elements to 0 with probability ``p`` and scale the others by 1 / (1 - p)."""
    return native_dropout(b, input, p, train)[0] if train and p != 0 else input


def noise_dropout(*, feature: bool, alpha: bool) -> Callable[..., Tensor]:
    """Dropout of whole channels (``feature``), or with dropped elements set to SELU's minimum and
    all scaled to preserve mean and variance (``alpha``)."""

    def rule(b: Builder, input: Tensor, p: float, train: bool) -> Tensor:
        if not train or p == 0:
            return input
        if feature and input.rank < 2:
            raise Unsupported("dropping channels of a tensor without channels is not supported")
        size, dtype = input.size, input.dtype
        if p == 1:
            return Tensor(size, dtype, lambda _: const(0, dtype))
        channels = size[:2] if feature else size
        keeps = _keep_mask(b, channels, p)
        scale, dropped_value, shift = dropout_factors(p, alpha)

        def read(index: Index) -> Value:
            scaled = trees.scale_value(upcast(input.at(index), dtype), scale, dtype)
            scaled = scaled + const(shift, dtype) if shift else scaled
            return call("where", keeps(index[: len(channels)]), scaled, const(dropped_value, dtype))

        return b.pointwise(size, dtype, read)

    return rule


def dropout_factors(p: float, alpha: bool) -> tuple[float, float, float]:
    """(scale, dropped, shift): a kept element is multiplied by ``scale`` and increased by
    ``shift``; a dropped element becomes ``dropped``."""
    if not alpha:
        return 1 / (1 - p), 0.0, 0.0
    scale = 1 / math.sqrt((SELU_NEGATED_MIN**2 * p + 1) * (1 - p))
    shift = SELU_NEGATED_MIN * scale * p
    return scale, shift - SELU_NEGATED_MIN * scale, shift


def native_dropout(
    b: Builder, input: Tensor, p: float, train: bool | None = None
) -> tuple[Tensor, Tensor]:
    """The result of dropout, and the mask of the kept elements."""
    size, dtype = input.size, input.dtype
    if train is False or p == 0:
        return input, Tensor(size, DType.BOOL, lambda _: Const(True, DType.BOOL))
    if p == 1:
        empty_mask = Tensor(size, DType.BOOL, lambda _: Const(False, DType.BOOL))
        return Tensor(size, dtype, lambda _: const(0, dtype)), empty_mask
    keeps = _keep_mask(b, size, p)

    def read(index: Index) -> Value:
        scaled = upcast(input.at(index), dtype) / const(1 - p, dtype)
        return call("where", keeps(index), scaled, 0)

    return b.pointwise(size, dtype, read), b.pointwise(size, DType.BOOL, keeps)


def native_dropout_backward(b: Builder, grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    meta = b.output_meta()

    def read(index: Index) -> Value:
        gradient = call("mul", *(upcast(t.at(index), meta.dtype) for t in (grad_output, mask)))
        return trees.scale_value(gradient, scale, meta.dtype)

    return b.pointwise(meta.size, meta.dtype, read)


def rrelu(
    b: Builder,
    self: Tensor,
    lower: float = 0.125,
    upper: float = 1 / 3,
    training: bool = False,
    **_: Any,
) -> Tensor:
    """A random slope below 0 in training, otherwise the mean of both bounds."""
    meta = b.output_meta()
    uniform_at = uniform_numbers(b, meta.size, DType.F32)
    compute_dtype = meta.dtype.compute_dtype

    def read(index: Index) -> Value:
        x = upcast(self.at(index), compute_dtype)
        slope: Value = const((lower + upper) / 2, compute_dtype)
        if training:
            scaled = upcast(uniform_at(index), compute_dtype) * (upper - lower)
            slope = scaled + lower
        return call("where", x > 0, x, x * slope)

    return b.pointwise(meta.size, meta.dtype, read)
