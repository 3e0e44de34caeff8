"""All forms of matrix multiplication, as one kind of operation: ``Contraction``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr, MatmulPrecision
from scheduler.ir.index.facts import is_equal
from scheduler.ir.index.functions import variable
from scheduler.ir.index.simplify import simplify
from scheduler.ir.index.substitute import substitute, substitute_expr
from scheduler.ir.index.trees import access_offset, flat_offset, simplify_tree
from scheduler.ir.operations import Axis, Buffer, Contraction, ReductionKind, Store
from scheduler.ir.values import Accumulator, Value, loads, upcast
from scheduler.lowering import layout, trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.pointwise import Argument, times
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.views import broadcast, reshape, transpose

_ONE, _ZERO = sympy.Integer(1), sympy.Integer(0)
# 8-bit floats that some hardware can multiply.
_MATRIX_FLOAT8_DTYPES = (DType.F8E4M3FN, DType.F8E5M2)

#: Maps the accumulator and the index of the result to the stored value.
Epilogue = Callable[[Value, Index], Value]


@dataclass(frozen=True)
class Operand:
    """One side of a contraction: the sizes of its own axes, and its element at all indices."""

    sizes: tuple[Expr, ...]
    read: Callable[[Index, Index, Index], Value]  # batch, own, k


def contract(
    b: Builder,
    *,
    problem: str,
    template: str,
    batch: tuple[Expr, ...],
    k: tuple[Expr, ...],
    left: Operand,
    right: Operand,
    size: tuple[Expr, ...],
    result_index: Callable[[Index, Index, Index], Index],
    dtype: DType,
    epilogue: Epilogue | None = None,
    merge: bool = True,
) -> Tensor:
    """out[result_index(batch, m, n)] = sum over k of left * right, then ``epilogue``.

    ``size`` is the shape of the result. With ``merge``, neighbouring axes are merged where they are
    contiguous in every operand's memory and the result's, so that the usual problem has one axis of
    each kind.
    """
    buffer = b.buffer(dtype, size)
    axes = [
        tuple(Axis(variable(name, j), extent) for j, extent in enumerate(sizes))
        for sizes, name in zip((batch, left.sizes, right.sizes, k), "bmnk", strict=True)
    ]
    batch_i, m_i, n_i, k_i = (tuple(a.var for a in group) for group in axes)
    ranges = b.sizes.over(axis for group in axes for axis in group)
    a_value = simplify_tree(left.read(batch_i, m_i, k_i), ranges)
    b_value = simplify_tree(right.read(batch_i, n_i, k_i), ranges)
    # A computed operand (ones, a mask) is held in f32; both are multiplied in the other's type.
    if a_value.dtype is b_value.dtype.compute_dtype:
        a_value = trees.cast(a_value, b_value.dtype)
    else:
        b_value = trees.cast(b_value, a_value.dtype)
    index = result_index(batch_i, m_i, n_i)
    accumulate = a_value.dtype.product_sum if a_value.dtype.is_integer else dtype.accumulator
    result: Value = Accumulator(accumulate)
    if epilogue is not None:
        result = epilogue(result, index)
    merged_groups, exprs = axes, dict[sympy.Symbol, Expr]()
    if merge:
        merged_groups, exprs = _merge(b, axes, (a_value, b_value), index, buffer)
    merged_axes = [axis for group in merged_groups for axis in group]
    a_value, b_value, result = (
        b.finish(substitute(value, exprs), merged_axes) for value in (a_value, b_value, result)
    )
    store_ranges = b.sizes.over(merged_axes)
    store_index = tuple(simplify(substitute_expr(i, exprs), store_ranges) for i in index)
    store = Store(buffer.name, store_index, upcast(result, dtype), b.nodes)
    batch_axes, m_axes, n_axes, k_axes = merged_groups
    # Depthwise convolutions use no matrix instructions.
    allows_tf32 = (
        b.graph.float32_matmul_precision is MatmulPrecision.HIGH
        and a_value.dtype is DType.F32
        and template != "depthwise"
    )
    b.add(
        Contraction(
            b.operation_name(),
            template,
            problem,
            batch_axes,
            m_axes,
            n_axes,
            k_axes,
            a_value,
            b_value,
            (store,),
            b.nodes,
            allow_tf32=allows_tf32,
        )
    )
    return b.tensor(buffer)


def _merge(
    b: Builder,
    axes: list[tuple[Axis, ...]],
    operands: tuple[Value, Value],
    index: Index,
    buffer: Buffer,
) -> tuple[list[tuple[Axis, ...]], dict[sympy.Symbol, Expr]]:
    """Merge each group of axes where all memory that it runs over is contiguous."""
    ranges = b.sizes.over(axis for group in axes for axis in group)
    a_offsets, b_offsets = (
        [access_offset(load, b.buffers[load.buffer], ranges) for load in loads(value)]
        for value in operands
    )
    out = [simplify(flat_offset(index, buffer.stride), ranges)]
    relevant = (
        a_offsets + b_offsets + out,
        a_offsets + out,
        b_offsets + out,
        a_offsets + b_offsets,
    )
    merged: list[tuple[Axis, ...]] = []
    exprs: dict[sympy.Symbol, Expr] = {}
    for group, offsets, name in zip(axes, relevant, "bmnk", strict=True):
        if name == "b" and all(axis.size == 1 for axis in group):
            exprs.update({axis.var: _ZERO for axis in group})
            merged.append(())
            continue
        merged_group, group_exprs = layout.merge_axes(group, offsets, name)
        merged.append(merged_group)
        exprs.update(group_exprs)
    return merged, exprs


def matmul(
    b: Builder, problem: str, left: Tensor, right: Tensor, epilogue: Epilogue | None = None
) -> Tensor:
    """``left @ right`` by torch.matmul's rules, including vectors and broadcasting."""
    meta = b.output_meta()
    if left.rank == 0 or right.rank == 0:
        raise Unsupported("a matrix product of a 0-dimensional tensor is not supported")
    x = left if left.rank > 1 else left.view((_ONE, *left.size), lambda i: i[1:])
    y = right if right.rank > 1 else right.view((*right.size, _ONE), lambda i: i[:-1])
    if not is_equal(x.size[-1], y.size[-2]):
        raise Unsupported(f"inner sizes {x.size[-1]} and {y.size[-2]} differ")
    # The result for a vector lacks the dimension that is added to the vector here.
    row_dim = (_ONE,) if left.rank == 1 else ()
    column_dim = (_ONE,) if right.rank == 1 else ()
    leading_rank = len(meta.size) - (not column_dim)
    size = (*meta.size[:leading_rank], *row_dim, *meta.size[leading_rank:], *column_dim)
    added_dims = {*((len(size) - 2,) if row_dim else ()), *((len(size) - 1,) if column_dim else ())}

    def after(acc: Value, index: Index) -> Value:
        assert epilogue is not None
        return epilogue(acc, tuple(x for d, x in enumerate(index) if d not in added_dims))

    result = product(b, problem, x, y, size, meta.dtype, after if epilogue else None)
    return reshape(b, result, meta.size) if added_dims else result


def product(
    b: Builder,
    problem: str,
    x: Tensor,
    y: Tensor,
    size: tuple[Expr, ...],
    dtype: DType,
    epilogue: Epilogue | None,
) -> Tensor:
    """x [..., M, K] @ y [..., K, N] into ``size`` [..., M, N]."""
    is_int8 = x.dtype is y.dtype is DType.I8
    if not dtype.is_float and not is_int8:
        return _sum_products(b, x, y, size, dtype, epilogue)
    if x.dtype not in _MATRIX_FLOAT8_DTYPES or y.dtype is not x.dtype:
        # bfloat16 represents all values of the 8-bit floats.
        x, y = (_as_bf16(operand) if operand.dtype.is_float8 else operand for operand in (x, y))
    leading = size[:-2]
    if all(extent == 1 for extent in y.size[:-2]):
        # One matrix for all: fold the leading dimensions into rows.
        x = broadcast(x, (*leading, *x.size[-2:]))
        zeros = (_ZERO,) * (y.rank - 2)
        left = Operand(size[:-1], lambda _, m, k: x.at((*m, *k)))
        right = Operand(size[-1:], lambda _, n, k: y.at((*zeros, *k, *n)))
        batch: tuple[Expr, ...] = ()
    else:
        x = broadcast(x, (*leading, *x.size[-2:]))
        y = broadcast(y, (*leading, *y.size[-2:]))
        left = Operand(size[-2:-1], lambda i, m, k: x.at((*i, *m, *k)))
        right = Operand(size[-1:], lambda i, n, k: y.at((*i, *k, *n)))
        batch = leading
    return contract(
        b,
        problem=problem,
        template="gemm",
        batch=batch,
        k=(x.size[-1],),
        left=left,
        right=right,
        size=size,
        result_index=lambda i, m, n: (*i, *m, *n),
        dtype=dtype,
        epilogue=epilogue,
    )


def _as_bf16(tensor: Tensor) -> Tensor:
    element_at = tensor.at
    return replace(
        tensor, dtype=DType.BF16, at=lambda i: trees.cast(element_at(i), DType.BF16), buffer=""
    )


def _sum_products(
    b: Builder,
    x: Tensor,
    y: Tensor,
    size: tuple[Expr, ...],
    dtype: DType,
    epilogue: Epilogue | None,
) -> Tensor:
    """A plain sum of products. Matrix instructions only support floats and 8-bit integers, not
    other integers or complex numbers."""
    accumulate = dtype.accumulator
    x = broadcast(x, (*size[:-2], *x.size[-2:]))
    y = broadcast(y, (*size[:-2], *y.size[-2:]))

    def read(i: Index, k: Index) -> Value:
        left = upcast(x.at((*i[:-1], *k)), accumulate)
        right = upcast(y.at((*i[:-2], *k, i[-1])), accumulate)
        return left * right

    return b.reduction(
        size,
        (x.size[-1],),
        ReductionKind.SUM,
        read,
        dtype=dtype,
        accumulate=accumulate,
        after=epilogue,
    )


def _bias_epilogue(
    b: Builder, bias: Tensor | None, beta: Argument = 1, alpha: Argument = 1
) -> Epilogue | None:
    """``alpha * accumulator + beta * bias``."""
    if bias is None and alpha == 1:
        return None

    def epilogue(accumulator: Value, index: Index) -> Value:
        compute_dtype = accumulator.dtype
        result = trees.scale_value(accumulator, alpha, compute_dtype)
        if bias is None or trees.is_zero_factor(beta, compute_dtype):
            return result
        broadcast_bias = broadcast(bias, b.output_meta().size)
        return result + trees.scale_value(
            upcast(broadcast_bias.at(index), compute_dtype), beta, compute_dtype
        )

    return epilogue


def mm(b: Builder, self: Tensor, mat2: Tensor, **_: Any) -> Tensor:
    return matmul(b, "mm", self, mat2)


def bmm(b: Builder, self: Tensor, mat2: Tensor, **_: Any) -> Tensor:
    return matmul(b, "bmm", self, mat2)


def matmul_op(b: Builder, self: Tensor, other: Tensor) -> Tensor:
    return matmul(b, "matmul", self, other)


def mv(b: Builder, self: Tensor, vec: Tensor) -> Tensor:
    return matmul(b, "mv", self, vec)


def dot(b: Builder, self: Tensor, tensor: Tensor) -> Tensor:
    return matmul(b, "dot", self, tensor)


def linear(b: Builder, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    if weight.rank == 1:
        return matmul(b, "linear", input, weight, _bias_epilogue(b, bias))
    return matmul(b, "linear", input, transpose(weight, 0, 1), _bias_epilogue(b, bias))


def addmm(
    b: Builder, self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Argument = 1, alpha: Argument = 1
) -> Tensor:
    return matmul(b, "addmm", mat1, mat2, _bias_epilogue(b, self, beta, alpha))


def baddbmm(
    b: Builder,
    self: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *,
    beta: Argument = 1,
    alpha: Argument = 1,
) -> Tensor:
    return matmul(b, "baddbmm", batch1, batch2, _bias_epilogue(b, self, beta, alpha))


def addmv(
    b: Builder, self: Tensor, mat: Tensor, vec: Tensor, *, beta: Argument = 1, alpha: Argument = 1
) -> Tensor:
    return matmul(b, "addmv", mat, vec, _bias_epilogue(b, self, beta, alpha))


def outer(b: Builder, self: Tensor, vec2: Tensor) -> Tensor:
    dtype = b.output_meta().dtype
    return b.pointwise(
        b.output_meta().size,
        dtype,
        lambda i: times(upcast(self.at(i[:1]), dtype), upcast(vec2.at(i[1:]), dtype)),
    )
