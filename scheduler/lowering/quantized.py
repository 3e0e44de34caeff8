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
from scheduler.lowering.errors import ContradictionError, Unsupported
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
    dtype = b.output_meta().dtype
    if scale_result is not None and dtype.is_float8:
        raise Unsupported(
            "scale_result is not supported: torch applies it on GPUs and ignores it on CPUs"
        )
    rows = _scale(scale_a, (self.size[0], _ONE))
    columns = _scale(scale_b, (_ONE, mat2.size[1]))

    def epilogue(accumulator: Value, index: Index) -> Value:
        compute_dtype = accumulator.dtype
        result = accumulator
        for factor in (rows.at((index[0], _ZERO)), columns.at((_ZERO, index[1]))):
            result = result * upcast(factor, compute_dtype)
        if bias is not None:
            bias_element = broadcast(bias, b.output_meta().size).at(index)
            result = result + upcast(bias_element, compute_dtype)
        return trees.cast(result, dtype) if dtype.is_float8 else result

    return matmul(b, "scaled_mm", self, mat2, epilogue)


# torch's ScalingType: one scale for all, or one for each row or column.
_SUPPORTED_RECIPES = ((0,), (1,))


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
    is_plain = not any((*swizzle_a, *swizzle_b)) and not contraction_dim
    if (
        not is_plain
        or tuple(recipe_a) not in _SUPPORTED_RECIPES
        or tuple(recipe_b) not in _SUPPORTED_RECIPES
    ):
        raise Unsupported("a block-scaled matrix product is not supported")
    return scaled_mm(b, self, mat2, scale_a[0], scale_b[0], bias)


def _scale(scale: Tensor, per_line_size: tuple[Expr, ...]) -> Tensor:
    """A scale broadcast over rows or columns; ``per_line_size`` is the shape of a scale with one
    number for each."""
    if all(extent == 1 for extent in scale.size):
        first = (_ZERO,) * scale.rank
        return scale.view(per_line_size, lambda _: first)
    fits = scale.rank == 2 and all(map(is_equal, scale.size, per_line_size))
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

    def block_index(self, index: Index) -> Index:
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
        dim_size if block_extent == -1 else as_expr(block_extent)
        for block_extent, dim_size in zip(block_size, size, strict=True)
    )
    for dim_size, block in zip(size, extent, strict=True):
        if block != dim_size and (block == 0 or not is_equal(Mod(dim_size, block), _ZERO)):
            raise Unsupported(f"blocks of {block} do not divide a dimension of {dim_size}")
    return Blocks(size, extent)


def _parameter_reader(
    b: Builder, parameter: Parameter, blocks: Blocks
) -> Callable[[Index], Value] | None:
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
    return lambda index: upcast(grid.at(blocks.block_index(index)), DType.F32)


def _quantize(
    b: Builder,
    input: Tensor,
    blocks: Blocks,
    scale: Parameter,
    zero_point: Parameter,
    limits: tuple[Any, Any],
) -> Tensor:
    """clamp(round(x * (1 / scale)) + zero point) in the type of the node's result."""
    dtype = b.output_meta().dtype
    lowest, highest = (const(limit, DType.F32) for limit in _limits(dtype, limits))
    scales, zeros = _parameter_reader(b, scale, blocks), _parameter_reader(b, zero_point, blocks)
    if scales is None:
        raise Unsupported("affine quantization without a scale is not supported")

    def at(index: Index) -> Value:
        value = upcast(input.at(index), DType.F32)
        steps = value * call("reciprocal", scales(index))
        quantized = call("round", steps)
        if zeros is not None:
            quantized = quantized + zeros(index)
        quantized = call("minimum", call("maximum", quantized, lowest), highest)
        return trees.cast(quantized, dtype)

    return materialize(b, Tensor(input.size, dtype, at))


def _limits(dtype: DType, stated: tuple[Any, Any]) -> tuple[float, float]:
    """The given limits, or those of the type where None."""
    if dtype.is_float:
        type_limits = -dtype.largest, dtype.largest
    else:
        bits = 8 * dtype.itemsize
        type_limits = (
            (0, 2**bits - 1) if dtype.is_unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        )
    low, high = (
        type_limit if limit is None else limit
        for limit, type_limit in zip(stated, type_limits, strict=True)
    )
    if isinstance(low, Tensor) or isinstance(high, Tensor):
        raise Unsupported("limits that are read from memory are not supported")
    return float(low), float(high)


def _dequantize(
    b: Builder, input: Tensor, blocks: Blocks, scale: Parameter, zero_point: Parameter
) -> Tensor:
    """(q - zero point) * scale in the type of the node's result. It uses no memory, so that it can
    become a product's operand."""
    dtype = b.output_meta().dtype
    scales, zeros = _parameter_reader(b, scale, blocks), _parameter_reader(b, zero_point, blocks)
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

    # As in the ops' schemas.
    zero_is_optional = form == "block" or (form in ("channel", "group") and not quantize)

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
        if factor is None or (zero is None and not zero_is_optional):
            raise ContradictionError("it has no scale or no zero point")
        if quantize and form != "block" and None in (quant_min, quant_max):
            raise ContradictionError("it has no limits")
        if quantize:
            return _quantize(b, input, blocks, factor, zero, (quant_min, quant_max))
        return _dequantize(b, input, blocks, factor, zero)

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
    blocked_dims = [d for d, extent in enumerate(blocks.extent) if extent != 1]

    def read(index: Index, step_index: Index) -> Value:
        element_index = list(index)
        for d, step in zip(blocked_dims, step_index, strict=True):
            element_index[d] = index[d] * blocks.extent[d] + step
        return upcast(input.at(tuple(element_index)), DType.F32)

    steps = tuple(blocks.extent[d] for d in blocked_dims)
    minimum, maximum = (
        b.reduction(blocks.counts, steps, kind, read, dtype=DType.F32)
        for kind in (ReductionKind.MIN, ReductionKind.MAX)
    )
    smallest_normal = 2.0**-14 if input.dtype is DType.F16 else 2.0**-126
    min_scale = smallest_normal if eps is None else eps

    def scale_and_zero(index: Index) -> tuple[Value, Value]:
        below = call("minimum", minimum.at(index), 0)
        above = call("maximum", maximum.at(index), 0)
        return scale_and_zero_point(mapping_type, below, above, low, high, min_scale)

    results = []
    for output in range(2):
        meta = b.output_meta(output)
        part = Tensor(
            blocks.counts,
            meta.dtype,
            lambda i, o=output, d=meta.dtype: trees.cast(scale_and_zero(i)[o], d),  # type: ignore[misc]
        )
        results.append(reshape(b, b.realize(part), meta.size))
    return results[0], results[1]


def scale_and_zero_point(
    mapping: str, minimum: Value, maximum: Value, low: float, high: float, min_scale: float
) -> tuple[Value, Value]:
    """Trees in f32, from the minimum (at most 0) and the maximum (at least 0)."""
    if mapping == "ASYMMETRIC":
        scale = (maximum - minimum) / (high - low)
    elif mapping == "SYMMETRIC":
        scale = call("maximum", -minimum, maximum) / ((high - low) / 2)
    elif mapping == "SYMMETRIC_NO_CLIPPING_ERR":
        scale = call("maximum", minimum / low, maximum / high)
    else:
        raise Unsupported(f"a mapping of kind {mapping!r} is not supported")
    scale = call("maximum", scale, min_scale)
    if mapping != "ASYMMETRIC":
        return scale, const(int((high + low + 1) / 2), DType.F32)
    zero_point = low - call("round", minimum / scale)
    return scale, call("minimum", call("maximum", zero_point, low), high)


# ---- integer products ----------------------------------------------------------------------------


def int_mm(b: Builder, self: Tensor, mat2: Tensor) -> Tensor:
    return matmul(b, "int_mm", self, mat2)


def weight_int8pack_mm(b: Builder, self: Tensor, mat2: Tensor, scales: Tensor) -> Tensor:
    """``self @ mat2.T * scales``, with a scale for each row of ``mat2``."""
    weight_at, dtype = mat2.at, self.dtype
    weight = Tensor(
        (mat2.size[1], mat2.size[0]), dtype, lambda i: trees.cast(weight_at((i[1], i[0])), dtype)
    )

    def epilogue(accumulator: Value, index: Index) -> Value:
        factor = upcast(scales.at(index[-1:]), accumulator.dtype)
        return accumulator * factor

    return matmul(b, "int8pack_mm", self, weight, epilogue)
