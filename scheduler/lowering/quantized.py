"""Quantized tensors: products with scales applied afterwards, and conversions from and to them."""

# ruff: noqa: ARG001 - rules have the signature of their op

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.facts import is_equal
from scheduler.ir.index.functions import FloorDiv, Mod, as_expr
from scheduler.ir.index.simplify import simplify
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Value, call, const, upcast
from scheduler.lowering import trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.matmul import matmul
from scheduler.lowering.pointwise import element, materialize
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.views import broadcast, reshape

_ONE, _ZERO = sympy.Integer(1), sympy.Integer(0)


def scaled_mm(
    b: Builder,
    self: Tensor,
    mat2: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None = None,
    scale_result: Tensor | None = None,
    out_dtype: Any = None,
    use_fast_accum: bool = False,
) -> Tensor:
    """``(self * scale_a) @ (mat2 * scale_b) + bias`` for matrices of 8-bit floats.

    A scale is one number, or one for each row of ``self`` and each column of ``mat2``.
    ``use_fast_accum`` permits less exact hardware; ``scale_result`` only matters for 8-bit results,
    and only on NVIDIA GPUs.
    """
    dtype = b.meta().dtype
    if scale_result is not None and dtype.is_float8:
        raise Unsupported(
            "scale_result is not supported: torch applies it on GPUs and ignores it on CPUs"
        )
    rows = _scale(scale_a, (self.size[0], _ONE))
    columns = _scale(scale_b, (_ONE, mat2.size[1]))

    def epilogue(accumulator: Value, index: Index) -> Value:
        held = accumulator.dtype
        result = accumulator
        for factor in (rows.at((index[0], _ZERO)), columns.at((_ZERO, index[1]))):
            result = result * upcast(factor, held)
        if bias is not None:
            added = broadcast(bias, b.meta().size).at(index)
            result = result + upcast(added, held)
        return trees.cast(result, dtype) if dtype.is_float8 else result

    return matmul(b, "scaled_mm", self, mat2, epilogue)


# torch's ScalingType: one scale for all, or one for each row or column.
_WHOLE = ((0,), (1,))


def scaled_mm_v2(
    b: Builder,
    self: Tensor,
    mat2: Tensor,
    scale_a: Any,
    recipe_a: Any,
    scale_b: Any,
    recipe_b: Any,
    swizzle_a: Any = (),
    swizzle_b: Any = (),
    bias: Tensor | None = None,
    contraction_dim: Any = (),
    **_: Any,
) -> Tensor:
    """``scaled_mm`` with lists of scales of named kinds; scales of blocks are unsupported."""
    plain = not any((*swizzle_a, *swizzle_b)) and not contraction_dim
    if not plain or tuple(recipe_a) not in _WHOLE or tuple(recipe_b) not in _WHOLE:
        raise Unsupported("a block-scaled matrix product is not supported")
    return scaled_mm(b, self, mat2, scale_a[0], scale_b[0], bias)


def _scale(scale: Tensor, by_line: tuple[Expr, ...]) -> Tensor:
    """A scale broadcast over rows or columns; ``by_line`` is the shape of a scale with one for
    each."""
    if all(extent == 1 for extent in scale.size):
        first = (_ZERO,) * scale.rank
        return scale.view(by_line, lambda _: first)
    fits = scale.rank == 2 and all(map(is_equal, scale.size, by_line))
    if not fits:
        raise Unsupported("block scales are not supported")
    return scale


# ---- affine quantization: integers, with a scale and a zero point for each block of elements -----


@dataclass(frozen=True)
class Blocks:
    """Blocks of elements that share a scale: their extent along each dimension of a tensor of
    ``size``."""

    size: tuple[Expr, ...]
    extent: tuple[Expr, ...]

    @property
    def counts(self) -> tuple[Expr, ...]:
        """The number of blocks along each dimension."""
        pairs = zip(self.size, self.extent, strict=True)
        return tuple(simplify(FloorDiv(size, extent)) for size, extent in pairs)

    def place(self, index: Index) -> Index:
        """The block of an element."""
        return tuple(
            _ZERO if extent == size else FloorDiv(i, extent) if extent != 1 else i
            for i, size, extent in zip(index, self.size, self.extent, strict=True)
        )


#: A scale or zero point: one number, one for each block in order, or None.
Parameter: TypeAlias = Tensor | int | float | Expr | None


def make_blocks(size: tuple[Expr, ...], block_size: tuple[int, ...]) -> Blocks:
    """Blocks from torchao's ``block_size``, where -1 is a whole dimension."""
    if len(block_size) != len(size):
        raise Unsupported(
            f"blocks of {len(block_size)} dimensions do not fit a tensor of {len(size)} dimensions"
        )
    extent = tuple(
        whole if given == -1 else as_expr(given)
        for given, whole in zip(block_size, size, strict=True)
    )
    for whole, part in zip(size, extent, strict=True):
        if part != whole and (part == 0 or not is_equal(Mod(whole, part), _ZERO)):
            raise Unsupported(f"blocks of {part} do not divide a dimension of {whole}")
    return Blocks(size, extent)


def _reader(b: Builder, parameter: Parameter, blocks: Blocks) -> Callable[[Index], Value] | None:
    """Read the parameter of the element at an index, in f32; None if there is no parameter."""
    if parameter is None:
        return None
    if not isinstance(parameter, Tensor):
        number = element(parameter, (), DType.F32)
        return lambda _: number
    if all(extent == 1 for extent in parameter.size):
        first = parameter.at((_ZERO,) * parameter.rank)
        return lambda _: upcast(first, DType.F32)
    grid = reshape(b, parameter, blocks.counts)
    return lambda index: upcast(grid.at(blocks.place(index)), DType.F32)


def _quantized(
    b: Builder,
    input: Tensor,
    blocks: Blocks,
    scale: Parameter,
    zero_point: Parameter,
    limits: tuple[Any, Any],
) -> Tensor:
    """clamp(round(x * (1 / scale)) + zero point) in the type of the node's result."""
    dtype = b.meta().dtype
    lowest, highest = (const(limit, DType.F32) for limit in _limits(dtype, limits))
    scales, zeros = _reader(b, scale, blocks), _reader(b, zero_point, blocks)
    if scales is None:
        raise Unsupported("affine quantization without a scale is not supported")

    def at(index: Index) -> Value:
        value = upcast(input.at(index), DType.F32)
        steps = value * call("reciprocal", scales(index))
        whole = call("round", steps)
        if zeros is not None:
            whole = whole + zeros(index)
        whole = call("minimum", call("maximum", whole, lowest), highest)
        return trees.cast(whole, dtype)

    return materialize(b, Tensor(input.size, dtype, at))


def _limits(dtype: DType, given: tuple[Any, Any]) -> tuple[float, float]:
    """The given limits, or those of the type where None."""
    if dtype.is_float:
        own = -dtype.largest, dtype.largest
    else:
        bits = 8 * dtype.itemsize
        own = (0, 2**bits - 1) if dtype.is_unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    low, high = (mine if limit is None else limit for limit, mine in zip(given, own, strict=True))
    if isinstance(low, Tensor) or isinstance(high, Tensor):
        raise Unsupported("limits that are read from memory are not supported")
    return float(low), float(high)


def _dequantized(
    b: Builder, input: Tensor, blocks: Blocks, scale: Parameter, zero_point: Parameter
) -> Tensor:
    """(q - zero point) * scale in the type of the node's result. It uses no memory, so that it can
    become a product's operand."""
    dtype = b.meta().dtype
    scales, zeros = _reader(b, scale, blocks), _reader(b, zero_point, blocks)
    if scales is None:
        raise Unsupported("affine quantization without a scale is not supported")

    def at(index: Index) -> Value:
        value = upcast(input.at(index), DType.F32)
        if zeros is not None:
            value = value - zeros(index)
        return trees.cast(value * scales(index), dtype)

    return materialize(b, Tensor(input.size, dtype, at))


def affine_rule(form: str, *, quantize: bool) -> Callable[..., Tensor]:
    """The rule of an affine quantization, or of its inverse.

    ``form`` says which elements share a scale: "tensor" (all), "channel" (a position along
    ``axis``), "token" (a row), "group" (``group_size`` elements of a row) or "block".
    """

    def rule(
        b: Builder,
        input: Tensor,
        scale: Tensor | float | None = None,
        scales: Tensor | None = None,
        zero_point: Tensor | int | None = None,
        zero_points: Tensor | None = None,
        axis: int = 0,
        group_size: int = 1,
        block_size: tuple[int, ...] = (),
        quant_min: Any = None,
        quant_max: Any = None,
        **_: Any,
    ) -> Tensor:
        size = input.size
        if form == "tensor":
            blocks = Blocks(size, size)
        elif form == "channel":
            dim = axis % max(1, input.rank)
            blocks = Blocks(size, tuple(_ONE if d == dim else n for d, n in enumerate(size)))
        elif form == "token":
            blocks = Blocks(size, (*(_ONE for _ in size[:-1]), size[-1]))
        else:
            blocks = make_blocks(size, (1, group_size) if form == "group" else block_size)
        factor = scale if scales is None else scales
        zero = zero_point if zero_points is None else zero_points
        if quantize:
            return _quantized(b, input, blocks, factor, zero, (quant_min, quant_max))
        return _dequantized(b, input, blocks, factor, zero)

    return rule


def choose_qparams_affine(
    b: Builder,
    input: Tensor,
    mapping_type: str,
    block_size: tuple[int, ...],
    target_dtype: Any,
    quant_min: Any = None,
    quant_max: Any = None,
    eps: Any = None,
    **_: Any,
) -> tuple[Tensor, Tensor]:
    """The scale and zero point of each block, from its minimum and maximum."""
    blocks = make_blocks(input.size, block_size)
    low, high = _limits(target_dtype, (quant_min, quant_max))
    inside = [d for d, extent in enumerate(blocks.extent) if extent != 1]

    def read(index: Index, along: Index) -> Value:
        at = list(index)
        for d, step in zip(inside, along, strict=True):
            at[d] = index[d] * blocks.extent[d] + step
        return upcast(input.at(tuple(at)), DType.F32)

    steps = tuple(blocks.extent[d] for d in inside)
    least, greatest = (
        b.reduction(blocks.counts, steps, kind, read, dtype=DType.F32)
        for kind in (ReductionKind.MIN, ReductionKind.MAX)
    )
    smallest_normal = 2.0**-14 if input.dtype is DType.F16 else 2.0**-126
    tiny = smallest_normal if eps is None else eps

    def numbers(index: Index) -> tuple[Value, Value]:
        below = call("minimum", least.at(index), 0)
        above = call("maximum", greatest.at(index), 0)
        return scale_and_zero_point(mapping_type, below, above, low, high, tiny)

    results = []
    for output in range(2):
        meta = b.meta(output)
        part = Tensor(
            blocks.counts,
            meta.dtype,
            lambda i, o=output, d=meta.dtype: trees.cast(numbers(i)[o], d),  # type: ignore[misc]
        )
        results.append(reshape(b, b.realize(part), meta.size))
    return results[0], results[1]


def scale_and_zero_point(
    mapping: str, below: Value, above: Value, low: float, high: float, tiny: float
) -> tuple[Value, Value]:
    """Trees in f32, from the minimum (at most 0) and the maximum (at least 0)."""
    if mapping == "ASYMMETRIC":
        scale = (above - below) / (high - low)
    elif mapping == "SYMMETRIC":
        scale = call("maximum", -below, above) / ((high - low) / 2)
    elif mapping == "SYMMETRIC_NO_CLIPPING_ERR":
        scale = call("maximum", below / low, above / high)
    else:
        raise Unsupported(f"a mapping of kind {mapping!r} is not supported")
    scale = call("maximum", scale, tiny)
    if mapping != "ASYMMETRIC":
        return scale, const(int((high + low + 1) / 2), DType.F32)
    zero_point = low - call("round", below / scale)
    return scale, call("minimum", call("maximum", zero_point, low), high)


# ---- integer products ----------------------------------------------------------------------------


def int_mm(b: Builder, self: Tensor, mat2: Tensor) -> Tensor:
    return matmul(b, "int_mm", self, mat2)


def weight_int8pack_mm(b: Builder, self: Tensor, mat2: Tensor, scales: Tensor) -> Tensor:
    """``self @ mat2.T * scales``, with a scale for each row of ``mat2``."""
    at, held = mat2.at, self.dtype
    weight = Tensor(
        (mat2.size[1], mat2.size[0]), held, lambda i: trees.cast(at((i[1], i[0])), held)
    )

    def epilogue(accumulator: Value, index: Index) -> Value:
        factor = upcast(scales.at(index[-1:]), accumulator.dtype)
        return accumulator * factor

    return matmul(b, "int8pack_mm", self, weight, epilogue)
